"""Sessions of the handshake era. A session id is a signed token that carries what a session must know: no replica
keeps a session, and none has to be asked."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from mcptasks_service.signing import Signer

DAY = 86_400
CARRIED_CAPABILITIES = ("elicitation", "sampling", "tasks")
"""The client capabilities that a server acts on; a header has 4–8 KiB, and clients declare more than fits."""
CAPABILITIES_LIMIT = 1024
INFO_LIMIT = 64
REMEMBERED = 2048
"""Session ids whose signature need not be checked again: that would take a tenth of a poll."""
EVENT_ID_LIMIT = 4096
"""Characters of an event id; a longer one would not come back through every proxy, so the stream has none."""


@dataclass(frozen=True, slots=True)
class Session:
    """What the client and we agreed on in ``initialize``."""

    sid: str
    """The session's own name; with the request id it finds the task of a call."""
    version: str
    """The protocol version."""
    info: Mapping[str, Any]
    """The client's name and version."""
    capabilities: Mapping[str, Any]
    """What the client can answer."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """What the first event of a stream carries, so that another replica can go on with it."""

    request_id: str | int
    task_id: str
    kind: str
    """Which request it was, as the dialects name it: decides the words of the answer."""


class Sessions:
    """Makes and reads session ids and event ids."""

    def __init__(self, signer: Signer, days: float, clock: Callable[[], float]) -> None:
        self._signer, self._seconds, self._clock = signer, days * DAY, clock
        self._claims = lru_cache(REMEMBERED)(partial(signer.verify, "session"))

    def new_sid(self) -> str:
        """A session's name: 128 random bits."""
        return secrets.token_urlsafe(16)

    def token(self, session: Session) -> str:
        """The ``Mcp-Session-Id``: a few hundred characters."""
        claims = {
            "s": session.sid,
            "v": session.version,
            "i": session.info,
            "c": session.capabilities,
            "e": int(self._clock() + self._seconds),
        }
        return self._signer.sign("session", claims)

    def read(self, token: str) -> Session | None:
        """The session of a token that is ours and has not run out."""
        claims = self._claims(token)
        if claims is None or claims["e"] <= self._clock():
            return None
        return Session(sid=claims["s"], version=claims["v"], info=claims["i"], capabilities=claims["c"])

    def event_id(self, session: Session, resumption: Resumption) -> str | None:
        """The id of a stream's first event; None if it would be too long for a header."""
        claims = {"s": session.sid, "r": resumption.request_id, "t": resumption.task_id, "k": resumption.kind}
        token = self._signer.sign("event", claims)
        return token if len(token) <= EVENT_ID_LIMIT else None

    def resumption(self, session: Session, event_id: str) -> Resumption | None:
        """What an event id of this very session stands for."""
        claims = self._signer.verify("event", event_id)
        if claims is None or claims["s"] != session.sid:
            return None
        return Resumption(request_id=claims["r"], task_id=claims["t"], kind=claims["k"])


def carried_info(info: Mapping[str, Any]) -> dict[str, str]:
    """The part of ``clientInfo`` that a session carries."""
    return {key: str(info.get(key, ""))[:INFO_LIMIT] for key in ("name", "version")}


def carried_capabilities(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the client's capabilities that a session carries: without their details if those are large."""
    kept = {key: capabilities[key] for key in CARRIED_CAPABILITIES if isinstance(capabilities.get(key), Mapping)}
    return kept if len(json.dumps(kept)) <= CAPABILITIES_LIMIT else {key: {} for key in kept}
