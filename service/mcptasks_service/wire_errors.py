"""Every error on the MCP wire, from one table: which JSON-RPC code, which data, which HTTP status."""

import logging
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData
from pydantic import ValidationError

from mcptasks_service.errors import (
    InvalidParams,
    LimitExceeded,
    ResultNotReady,
    ServiceError,
    TaskEnded,
    TaskExists,
    TaskNotFound,
    ToolNotFound,
    Unavailable,
)

logger = logging.getLogger(__name__)

LIMIT_EXCEEDED = -32029
"""A limit refused the request; from the range that JSON-RPC leaves to servers."""

REQUEST_CANCELLED = -32800
"""The request was cancelled before it had an answer, as in the Language Server Protocol."""

UNAVAILABLE_RETRY_MS = 1000

CODES: Mapping[type[ServiceError], int] = {
    TaskNotFound: INVALID_PARAMS,
    TaskExists: INVALID_PARAMS,
    ResultNotReady: INVALID_PARAMS,
    TaskEnded: INVALID_PARAMS,
    ToolNotFound: INVALID_PARAMS,
    InvalidParams: INVALID_PARAMS,
    LimitExceeded: LIMIT_EXCEEDED,
    Unavailable: INTERNAL_ERROR,
}
"""Error class, subclasses included, to JSON-RPC code (R-2.6, R-8.1)."""


def error_data(error: Exception) -> ErrorData:
    """The JSON-RPC error of whatever a method raised. What nobody foresaw is logged, and not told to the client."""
    if isinstance(error, MCPError):
        return error.error
    if isinstance(error, ServiceError):
        code = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
        return ErrorData(code=code, message=str(error), data=_data(error))
    if isinstance(error, ValidationError):
        return ErrorData(code=INVALID_PARAMS, message=f"Invalid request parameters: {_defects(error)}")
    if isinstance(error, RecursionError):
        return ErrorData(code=INVALID_PARAMS, message="The request is nested too deeply")
    logger.error("a request failed unexpectedly", exc_info=error)
    return ErrorData(code=INTERNAL_ERROR, message="Internal server error")


def http_status(error: ErrorData | None, *, modern: bool) -> int:
    """The status of a JSON answer. Before 2026-07-28 an error is an ordinary answer."""
    if error is None or not modern:
        return 200
    return 429 if error.code == LIMIT_EXCEEDED else ERROR_CODE_HTTP_STATUS.get(error.code, 200)


def http_headers(error: ErrorData | None, *, modern: bool) -> tuple[tuple[bytes, bytes], ...]:
    """``Retry-After`` in whole seconds beside a 429."""
    if http_status(error, modern=modern) != 429 or error is None:
        return ()
    return ((b"retry-after", str(-(-error.data["retryAfterMs"] // 1000)).encode()),)


def _data(error: ServiceError) -> dict[str, Any] | None:
    if isinstance(error, LimitExceeded):
        return {"reason": error.reason, "limit": error.limit, "retryAfterMs": error.retry_after_ms}
    if isinstance(error, Unavailable):
        return {"reason": "unavailable", "retryAfterMs": UNAVAILABLE_RETRY_MS}
    return None


def _defects(error: ValidationError) -> str:
    """Where and why, for the first three; never the values, which may be large or secret."""
    defects = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, d['loc']))}: {d['msg']}" for d in defects[:3])
