"""JSON-RPC messages and server-sent events as bytes."""

from collections.abc import Mapping
from typing import Any

from mcp_types import ErrorData

from mcptasks_service.stored import encode, plain

EVENT_LIMIT = 1024 * 1024 - 64
"""Bytes of one event: `mcp` 2.3 refuses more than 1 MiB and ends the stream."""

PING = b": ping\r\n\r\n"
"""A comment, which readers skip: it keeps proxies from closing an idle stream."""

RETRY_MS = 200
"""Milliseconds after which a client comes back to a stream that broke off."""


def response(request_id: str | int, result: Mapping[str, Any]) -> bytes:
    """A JSON-RPC response."""
    return b'{"jsonrpc":"2.0","id":' + plain(request_id) + b',"result":' + encode(result) + b"}"


def failure(request_id: str | int | None, error: ErrorData) -> bytes:
    """A JSON-RPC error; the id is null where the request's could not be read."""
    return plain({"jsonrpc": "2.0", "id": request_id, "error": error.model_dump(exclude_none=True)})


def notification(method: str, params: Mapping[str, Any] | None) -> bytes:
    """A JSON-RPC notification."""
    tail = b"}" if params is None else b',"params":' + encode(params) + b"}"
    return b'{"jsonrpc":"2.0","method":' + plain(method) + tail


def event(message: bytes) -> bytes:
    """One message as an event.

    Stored text may be spread over lines. And many readers take what Unicode calls a line end for one, which the
    standard does not: inside JSON these three can only stand in strings, where their escape means the same.
    """
    if b"\xe2\x80\xa8" in message or b"\xe2\x80\xa9" in message or b"\xc2\x85" in message:
        message = message.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
        message = message.replace(b"\xc2\x85", rb"\u0085")
    if b"\n" in message or b"\r" in message:
        message = b"\r\ndata: ".join(message.splitlines())
    return b"event: message\r\ndata: " + message + b"\r\n\r\n"


def priming(event_id: str) -> bytes:
    """The first event of a stream that can be resumed: an id and no data (2025-11-25)."""
    return f"id: {event_id}\r\nretry: {RETRY_MS}\r\ndata: \r\n\r\n".encode()
