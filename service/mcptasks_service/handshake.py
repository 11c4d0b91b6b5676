"""The handshake era: ``initialize``, sessions, GET streams and resumption, up to 2025-11-25."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mcp.server.connection import Connection
from mcp_types import INVALID_REQUEST
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from starlette.types import Receive, Send

from mcptasks_service import guard, push
from mcptasks_service.answers import Answers, read_request
from mcptasks_service.callers import anonymous
from mcptasks_service.exchange import Exchange, SDKServer, take
from mcptasks_service.replies import Refused, send_empty, send_json
from mcptasks_service.sessions import Session, Sessions, carried_capabilities, carried_info
from mcptasks_service.stream import Streams
from mcptasks_service.wire import Wire

SESSION_HEADER = "mcp-session-id"


class Handshake:
    """POST and GET of this era."""

    def __init__(self, server: SDKServer, wire: Wire, sessions: Sessions, answers: Answers, streams: Streams) -> None:
        self._server, self._wire, self._sessions = server, wire, sessions
        self._answers, self._streams = answers, streams

    async def post(self, headers: Mapping[str, str], message: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one message.

        Raises:
            Refused
        """
        if message.get("method") == "initialize" and "id" in message:
            await self._initialize(headers, message, send)
            return
        session = self._session(headers)
        connection = Connection.from_envelope(session.version, session.info, session.capabilities)
        if "id" not in message and isinstance(method := message.get("method"), str):
            params = message.get("params")
            exchange = self._exchange(headers, session, None, None)
            await take(self._server, exchange, connection, method, params if isinstance(params, dict) else None)
            await send_empty(send, 202)
            return
        request = read_request(message)
        exchange = self._exchange(headers, session, request.id, request.params)
        await self._answers.send(exchange, connection, request, receive, send)

    async def get(self, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        """A stream of news, or with ``Last-Event-ID`` the rest of one that broke off.

        Raises:
            Refused
        """
        if not guard.accepts(headers)[1]:
            raise Refused(406, INVALID_REQUEST, "Not Acceptable: Accept must have text/event-stream")
        session = self._session(headers)
        event_id = headers.get("last-event-id")
        if event_id is None:
            exchange = self._exchange(headers, session, None, None)
            news = partial(push.news, self._wire, exchange, session.version)
            await self._streams.respond(exchange, news, receive, send, at_once=True)
            return
        if (resumption := self._sessions.resumption(session, event_id)) is None:
            raise Refused(400, INVALID_REQUEST, "Unknown Last-Event-ID: this session has no such stream")
        exchange = self._exchange(headers, session, resumption.request_id, None)
        rest = partial(push.resumed, self._wire, exchange, resumption)
        await self._streams.respond(exchange, rest, receive, send, at_once=True)

    async def _initialize(self, headers: Mapping[str, str], message: dict[str, Any], send: Send) -> None:
        request, sid = read_request(message), self._sessions.new_sid()
        connection = Connection.from_envelope(LATEST_HANDSHAKE_VERSION, None, None)
        exchange = Exchange(
            headers=headers, modern=False, caller=anonymous(sid), request_id=request.id, params=request.params
        )
        outcome = await self._answers.now(exchange, connection, request)
        session_id: list[tuple[bytes, bytes]] = []
        if outcome.error is None:
            asked = request.params or {}
            session = Session(
                sid=sid,
                version=connection.protocol_version,
                info=carried_info(asked["clientInfo"]),
                capabilities=carried_capabilities(asked["capabilities"]),
            )
            session_id = [(SESSION_HEADER.encode(), self._sessions.token(session).encode())]
        await send_json(send, 200, outcome.message, session_id)

    def _session(self, headers: Mapping[str, str]) -> Session:
        token = headers.get(SESSION_HEADER)
        if token is None:
            raise Refused(400, INVALID_REQUEST, "Missing Mcp-Session-Id: begin with initialize")
        if (session := self._sessions.read(token)) is None:
            raise Refused(404, INVALID_REQUEST, "Session not found: begin again with initialize")
        return session

    def _exchange(
        self,
        headers: Mapping[str, str],
        session: Session,
        request_id: str | int | None,
        params: Mapping[str, Any] | None,
    ) -> Exchange:
        # Clients of earlier versions can't read an event without data.
        resumable = session.version == LATEST_HANDSHAKE_VERSION
        return Exchange(
            headers=headers,
            modern=False,
            caller=anonymous(session.sid),
            request_id=request_id,
            params=params,
            event_id=partial(self._sessions.event_id, session) if resumable else None,
        )
