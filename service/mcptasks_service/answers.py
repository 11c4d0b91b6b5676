"""From a parsed request to its HTTP response, the same in both eras."""

import time
from functools import partial
from typing import Any

from mcp.server.connection import Connection
from mcp_types import INVALID_REQUEST, JSONRPCRequest
from pydantic import ValidationError
from starlette.types import Receive, Send

from mcptasks_service import exchange as exchanges
from mcptasks_service import guard
from mcptasks_service.exchange import Exchange, Outcome, SDKServer
from mcptasks_service.metrics import Metrics
from mcptasks_service.replies import Refused, send_json
from mcptasks_service.stream import Streams
from mcptasks_service.wire_errors import http_headers, http_status

WAITING = frozenset({"tools/call", "tasks/result", "subscriptions/listen"})
"""Methods that may take long or say more than their answer; all others are answered at once, as JSON."""

COUNTED = WAITING | {
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "tasks/delete",
    "tasks/update",
}
"""Methods that the metrics name; a client's inventions are ``other``."""


class Answers:
    """Runs requests, measures them, and sends what comes out."""

    def __init__(self, server: SDKServer, streams: Streams, metrics: Metrics) -> None:
        self._server, self._streams, self._metrics = server, streams, metrics

    async def send(
        self, exchange: Exchange, connection: Connection, request: JSONRPCRequest, receive: Receive, send: Send
    ) -> None:
        """Answer a request with JSON, or with a stream where it may take long and the client takes one."""
        if request.method in WAITING and guard.accepts(exchange.headers)[1]:
            work = partial(self._run, exchange, connection, request)
            await self._streams.respond(exchange, work, receive, send, at_once=False)
            return
        outcome = await self.now(exchange, connection, request)
        status = http_status(outcome.error, modern=exchange.modern)
        await send_json(send, status, outcome.message, http_headers(outcome.error, modern=exchange.modern))

    async def now(self, exchange: Exchange, connection: Connection, request: JSONRPCRequest) -> Outcome:
        """Run a request, with the time it took in the metrics."""
        began = time.perf_counter()
        outcome = await self._run(exchange, connection, request)
        self._metrics.seconds.labels(method=_counted(request.method)).observe(time.perf_counter() - began)
        return outcome

    async def _run(self, exchange: Exchange, connection: Connection, request: JSONRPCRequest) -> Outcome:
        outcome = await exchanges.answer(self._server, exchange, connection, request)
        self._metrics.requests.labels(
            method=_counted(request.method),
            era="modern" if exchange.modern else "legacy",
            code=str(outcome.error.code) if outcome.error else "0",
        ).inc()
        return outcome


def read_request(message: dict[str, Any]) -> JSONRPCRequest:
    """The request that a message is.

    Raises:
        Refused: it is none.
    """
    try:
        return JSONRPCRequest.model_validate(message)
    except ValidationError:
        raise Refused(
            400,
            INVALID_REQUEST,
            'Invalid request: a JSON-RPC request has "jsonrpc": "2.0", an id (text or integer), a method, and params '
            "that are an object",
        ) from None


def _counted(method: str) -> str:
    return method if method in COUNTED else "other"
