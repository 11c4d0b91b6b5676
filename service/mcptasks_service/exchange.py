"""One request of a client on its way through the SDK: the same in both eras."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.runner import ServerRunner, aclose_shielded, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCRequest

from mcptasks_crds.names import call_hash
from mcptasks_service import frames
from mcptasks_service.callers import Caller
from mcptasks_service.sessions import Resumption
from mcptasks_service.wire_errors import error_data

logger = logging.getLogger(__name__)

SDKServer = Server[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a request, ready to be sent."""

    message: bytes
    """The JSON-RPC response or error."""
    error: ErrorData | None = None


class Exchange:
    """What the SDK's dispatch context asks for, and what our methods know of the request.

    The SDK hands it on to them as ``ctx.request``.
    """

    can_send_request = False

    def __init__(
        self,
        *,
        headers: Mapping[str, str],
        modern: bool,
        caller: Caller,
        request_id: str | int | None,
        params: Mapping[str, Any] | None,
        event_id: Callable[[Resumption], str | None] | None = None,
    ) -> None:
        self.headers, self.modern, self.caller = headers, modern, caller
        self.request_id = request_id
        self.transport = TransportContext(kind="streamable-http", can_send_request=False, headers=headers)
        self.message_metadata = ServerMessageMetadata(request_context=self)
        self.cancel_requested = anyio.Event()
        self.sink: MemoryObjectSendStream[bytes] | None = None
        """Where events go; None where the response is JSON and nothing but the answer can be sent."""
        self.resumable = False
        """Whether the client can come back to this stream on another replica."""
        self._progress_token = progress_token_from_params(params)
        self._event_id = event_id

    @property
    def call(self) -> str:
        """Names this request of its session, so that a cancel of it finds its task on any replica."""
        return call_hash(self.caller.session, "" if self.request_id is None else self.request_id)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification on the response stream, if there is one."""
        await self._send(frames.event(frames.notification(method, params)))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: nothing here asks the client anything.

        Raises:
            NoBackChannelError
        """
        raise NoBackChannelError(method)

    async def progress(
        self,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Tell the client how far its request is, if it gave a token to be told by."""
        if self._progress_token is None:
            return
        said = {"total": total, "message": message, "_meta": meta}
        params = {"progressToken": self._progress_token, "progress": progress}
        await self.notify("notifications/progress", {**params, **{k: v for k, v in said.items() if v is not None}})

    async def prime(self, task_id: str, kind: str) -> None:
        """Begin the stream with an event id by which any replica can go on with it (2025-11-25 sessions)."""
        if self._event_id is None or self.sink is None or self.request_id is None:
            return
        token = self._event_id(Resumption(self.request_id, task_id, kind))
        if token is not None:
            await self._send(frames.priming(token))
            self.resumable = True

    async def _send(self, event: bytes) -> None:
        if self.sink is None:
            return
        try:
            await self.sink.send(event)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            logger.debug("an event was dropped: the response stream is closed")


async def answer(server: SDKServer, exchange: Exchange, connection: Connection, request: JSONRPCRequest) -> Outcome:
    """Run one request through the SDK."""
    try:
        result = await serve_one(
            server, exchange, request.method, request.params, connection=connection, lifespan_state={}
        )
        return Outcome(frames.response(request.id, result))
    except Exception as error:
        data = error_data(error)
        return Outcome(frames.failure(request.id, data), data)


async def take(
    server: SDKServer, exchange: Exchange, connection: Connection, method: str, params: Mapping[str, Any] | None
) -> None:
    """Run one notification through the SDK, which logs what goes wrong: nobody waits for an answer."""
    try:
        await ServerRunner(server, connection, {}).on_notify(exchange, method, params)
    finally:
        await aclose_shielded(connection)


def too_large(request_id: str | int, size: int) -> Outcome:
    """What ends a stream whose answer no event can carry."""
    error = ErrorData(
        code=INTERNAL_ERROR,
        message=f"The answer has {size} bytes, too many for a stream; ask again now that the task has ended "
        "(tasks/result, or tasks/get), and it comes whole",
        data={"reason": "AnswerTooLarge", "size": size, "limit": frames.EVENT_LIMIT},
    )
    return Outcome(frames.failure(request_id, error), error)
