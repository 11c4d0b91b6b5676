"""Signed tokens: what a client carries for us between requests, so that any replica can serve any of them."""

import base64
import binascii
import hmac
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import SecretStr

logger = logging.getLogger(__name__)

KEY_LENGTH = 32
"""Characters that a signing key has at least."""

MAC_BYTES = 24


class Signer:
    """HMAC-SHA-256 over a purpose and claims. The first key signs, all of them verify: so keys are rotated."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = keys

    @classmethod
    def of(cls, keys: Sequence[SecretStr]) -> Self:
        """With the configured keys, or with one of this process alone.

        Raises:
            ValueError: a key is too short to be a secret.
        """
        if not keys:
            logger.warning("no MCPTASKS_SIGNING_KEYS: sessions end with this process, and no other replica knows them")
            return cls([secrets.token_bytes(32)])
        if any(len(key.get_secret_value()) < KEY_LENGTH for key in keys):
            raise ValueError(f"MCPTASKS_SIGNING_KEYS: every key needs {KEY_LENGTH} characters or more")
        return cls([key.get_secret_value().encode() for key in keys])

    def sign(self, purpose: str, claims: Mapping[str, Any]) -> str:
        """A token of visible ASCII, good for ``purpose`` only."""
        payload = _encode(json.dumps(claims, separators=(",", ":")).encode())
        return f"{payload}.{_encode(_mac(self._keys[0], purpose, payload))}"

    def verify(self, purpose: str, token: str) -> dict[str, Any] | None:
        """The claims of a token that one of the keys has signed for ``purpose``, else None."""
        payload, _, mac = token.partition(".")
        try:
            given = base64.urlsafe_b64decode(f"{mac}{'=' * (-len(mac) % 4)}")
            if not any(hmac.compare_digest(given, _mac(key, purpose, payload)) for key in self._keys):
                return None
            claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(f"{payload}{'=' * (-len(payload) % 4)}"))
        except (binascii.Error, ValueError):
            return None
        return claims


def _mac(key: bytes, purpose: str, payload: str) -> bytes:
    return hmac.digest(key, f"{purpose}\0{payload}".encode(errors="surrogatepass"), "sha256")[:MAC_BYTES]


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
