"""What requests say, read the same way in every dialect."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mcptasks_crds.task import MILLISECONDS_LIMIT, TASK_ID_LIMIT, Retention
from mcptasks_service.errors import InvalidParams, shown

AskedRetention = Retention | Literal["default", "unlimited"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The name and the arguments of a ``tools/call``."""

    name: str
    arguments: dict[str, Any]


def tool_call(params: Mapping[str, Any]) -> ToolCall:
    """Read a ``tools/call``.

    Raises:
        InvalidParams
    """
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not name:
        raise InvalidParams(f"Invalid name: {_said(name)}; it must be the name of a tool")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidParams(f"Invalid arguments: {_said(arguments)}; they must be an object")
    return ToolCall(name, arguments or {})


def task_id(params: Mapping[str, Any]) -> str:
    """Read ``taskId``: any text of 1 to 1024 characters; gateways rewrite ids on the way, so nothing else is known.

    Raises:
        InvalidParams
    """
    value = params.get("taskId")
    if not isinstance(value, str):
        raise InvalidParams(f"Invalid taskId: {_said(value)}; it must be a string")
    if not 1 <= len(value) <= TASK_ID_LIMIT:
        raise InvalidParams(
            f"Invalid taskId: {shown(value)} has {len(value)} characters; 1 to {TASK_ID_LIMIT} are allowed"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidParams(f"Invalid taskId: {shown(value)} holds half a surrogate pair, which is no text") from None
    return value


def retention(name: str, ask: Mapping[str, Any], after: Literal["Finish", "Creation"]) -> AskedRetention:
    """Read keepAlive or ttl in milliseconds: absent = the tool's default, null = unlimited; fractions are rounded up.

    Raises:
        InvalidParams: not a number from 0 to 2**53 − 1.
    """
    if name not in ask:
        return "default"
    value = ask[name]
    if value is None:
        return "unlimited"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= MILLISECONDS_LIMIT:  # NaN is in no range
        raise InvalidParams(
            f"Invalid {name}: {_said(value)}; it must be a number of milliseconds from 0 to {MILLISECONDS_LIMIT}, "
            "or null for unlimited"
        )
    return Retention(after=after, milliseconds=math.ceil(value))


def meta(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``_meta`` of a request; empty if it is absent or no object."""
    value = params.get("_meta")
    return value if isinstance(value, Mapping) else {}


def _said(value: object) -> str:
    """A client's value in an error. A number may have more digits than Python is willing to print."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return "a number of more than 77 digits"
    return shown(value) if isinstance(value, str) else f"{str(value)[:80]}"
