"""``/mcp``: HTTP in, HTTP out, for both eras on one address.

The ``MCP-Protocol-Version`` header alone selects the era: absent, or a version that has ``initialize``, is the
handshake era; anything else is the stateless one, which then says what it supports. Any replica serves any request.
"""

from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from starlette.types import Receive, Scope, Send

from mcptasks_service import body, guard
from mcptasks_service.answers import Answers
from mcptasks_service.core import Core
from mcptasks_service.cursors import Cursors
from mcptasks_service.handshake import Handshake
from mcptasks_service.replies import Refused, send_empty, send_error
from mcptasks_service.server import Methods, new_sdk_server, stamp
from mcptasks_service.sessions import Sessions
from mcptasks_service.settings import Settings
from mcptasks_service.signing import Signer
from mcptasks_service.stateless import Stateless
from mcptasks_service.stream import Streams
from mcptasks_service.wire import Wire


class Entry:
    """The ASGI application behind ``/mcp``."""

    def __init__(self, core: Core, settings: Settings, signer: Signer, closing: anyio.Event) -> None:
        self._core, self._settings = core, settings
        server = new_sdk_server()
        wire = Wire(core.tasks, Cursors(signer), closing, core.clock, stamp(server))
        Methods(server, wire)
        streams = Streams(settings.ping_seconds, closing, core.metrics.streams)
        answers = Answers(server, streams, core.metrics)
        sessions = Sessions(signer, settings.session_days, core.clock)
        self._handshake = Handshake(server, wire, sessions, answers, streams)
        self._stateless = Stateless(core.tasks.catalogue, answers)
        self._ready = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        # Blanks around a value are none of it (RFC 9110 §5.5); not every HTTP server takes them off.
        lines = [(name.decode("latin-1"), value.decode("latin-1").strip(" \t")) for name, value in scope["headers"]]
        headers = dict(lines)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER, LATEST_HANDSHAKE_VERSION)
        stateless = version not in HANDSHAKE_PROTOCOL_VERSIONS
        try:
            self._admit(headers)
            if scope["method"] == "POST":
                message = await self._message(headers, receive)
                if stateless:
                    await self._stateless.post(headers, lines, message, receive, send)
                else:
                    await self._handshake.post(headers, message, receive, send)
            elif scope["method"] == "GET" and not stateless:
                await self._handshake.get(headers, receive, send)
            else:
                # A signed session id can't be taken back, so there is nothing to DELETE.
                await send_empty(send, 405, [(b"allow", b"POST" if stateless else b"GET, POST")])
        except Refused as refused:
            await send_error(send, refused.status, refused.error, refused.request_id, refused.headers)
        except body.Disconnected:
            return

    def _admit(self, headers: Mapping[str, str]) -> None:
        if (why := guard.foreign(headers, self._settings.allowed_hosts, self._settings.allowed_origins)) is not None:
            raise Refused(403, INVALID_REQUEST, why)
        if not self._ready:
            self._ready, waiting = self._core.ready()
        if not self._ready:
            raise Refused(
                503, INTERNAL_ERROR, f"Starting: {waiting}; try again in a moment", headers=[(b"retry-after", b"1")]
            )

    async def _message(self, headers: Mapping[str, str], receive: Receive) -> dict[str, Any]:
        """The one JSON-RPC message of a POST."""
        if not guard.accepts(headers)[0]:
            raise Refused(406, INVALID_REQUEST, "Not Acceptable: Accept must have application/json")
        if not guard.is_json(headers):
            raise Refused(415, INVALID_REQUEST, "Unsupported Media Type: Content-Type must be application/json")
        limit = self._settings.body_limit
        try:
            message = body.parse(await body.read(receive, headers.get("content-length"), limit))
        except body.BodyTooLarge:
            why = f"The request is larger than {limit} bytes; pass large data by reference"
            raise Refused(413, INVALID_REQUEST, why) from None
        except body.NotJSON as error:
            raise Refused(400, PARSE_ERROR, f"Parse error: {error}") from None
        if isinstance(message, list):
            raise Refused(400, INVALID_REQUEST, "JSON-RPC batches are not served: send one message in each POST")
        if not isinstance(message, dict):
            raise Refused(400, INVALID_REQUEST, "The body must be one JSON-RPC message, an object")
        return message
