"""A response that may wait: JSON if the answer comes in silence, else a stream of events that ends with it."""

from collections.abc import Awaitable, Callable

import anyio
from prometheus_client import Gauge
from starlette.types import Receive, Send

from mcptasks_service import frames
from mcptasks_service.exchange import Exchange, Outcome, too_large
from mcptasks_service.replies import EVENT_STREAM, send_json
from mcptasks_service.wire_errors import http_headers, http_status

Work = Callable[[], Awaitable[Outcome | None]]


class Streams:
    """How streams behave: seconds of silence before a comment, and the event that ends them at a shutdown."""

    def __init__(self, ping: float, closing: anyio.Event, open_streams: Gauge) -> None:
        self.ping, self.closing, self._open = ping, closing, open_streams

    async def respond(self, exchange: Exchange, work: Work, receive: Receive, send: Send, *, at_once: bool) -> None:
        """Run ``work`` and send what it tells the exchange, and its outcome.

        The headers go out with the first event, after the first silence, or, with ``at_once``, at once. A client that
        closes the stream cancels ``work``. At a shutdown a stream that can be resumed ends without its answer, which
        the client then gets from another replica.
        """
        sink, events = anyio.create_memory_object_stream[bytes](0)
        exchange.sink = sink
        outcomes: list[Outcome | None] = []
        started = False

        async def run() -> None:
            async with sink:
                outcomes.append(await work())

        async def watch_disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        async def watch_closing() -> None:
            await self.closing.wait()
            if exchange.resumable:
                group.cancel_scope.cancel()

        async def write(event: bytes, *, more: bool = True) -> None:
            nonlocal started
            if not started:
                started = True
                await send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
            await send({"type": "http.response.body", "body": event, "more_body": more})

        with self._open.track_inprogress():
            async with events, anyio.create_task_group() as group:
                group.start_soon(run)
                group.start_soon(watch_disconnect)
                group.start_soon(watch_closing)
                if at_once:
                    await write(frames.PING)
                while not outcomes:
                    event = frames.PING
                    with anyio.move_on_after(self.ping):
                        try:
                            event = await events.receive()
                        except anyio.EndOfStream:
                            break
                    await write(event)
                group.cancel_scope.cancel()
            outcome = outcomes[0] if outcomes else None
            if started or outcome is None:
                await write(_last(exchange, outcome), more=False)
            else:
                status = http_status(outcome.error, modern=exchange.modern)
                await send_json(send, status, outcome.message, http_headers(outcome.error, modern=exchange.modern))


def _last(exchange: Exchange, outcome: Outcome | None) -> bytes:
    if outcome is None:
        return b""
    event = frames.event(outcome.message)
    if len(event) > frames.EVENT_LIMIT and exchange.request_id is not None:
        return frames.event(too_large(exchange.request_id, len(outcome.message)).message)
    return event
