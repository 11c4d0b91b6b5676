"""HTTP responses of ``/mcp``, in plain ASGI."""

from collections.abc import Iterable
from typing import Any

from mcp_types import ErrorData
from starlette.types import Send

from mcptasks_service import frames

RawHeaders = Iterable[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
EVENT_STREAM: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""What a stream needs so that no proxy holds it back."""


async def send_json(send: Send, status: int, body: bytes, headers: RawHeaders = ()) -> None:
    """One JSON text."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, headers: RawHeaders = ()) -> None:
    """A status and nothing else."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]})
    await send({"type": "http.response.body", "body": b""})


async def send_error(
    send: Send, status: int, error: ErrorData, request_id: str | int | None = None, headers: RawHeaders = ()
) -> None:
    """A JSON-RPC error for a request that reached no method."""
    await send_json(send, status, frames.failure(request_id, error), headers)


class Refused(Exception):
    """A request that reaches no method: its HTTP status and its JSON-RPC error."""

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        data: Any = None,
        *,
        request_id: str | int | None = None,
        headers: RawHeaders = (),
    ) -> None:
        super().__init__(message)
        self.status, self.request_id, self.headers = status, request_id, headers
        self.error = ErrorData(code=code, message=message, data=data)
