"""What a program that ended by itself leaves as its result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcptasks_crds.reasons import Reason

LINE_LIMIT = 200
"""Characters of the program's last line in a task's message."""


@dataclass(frozen=True, slots=True)
class Log:
    """The end of a container's log. ``cut``: there was more before it."""

    data: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tool result and what to say about it."""

    text: str
    """The exact JSON text of a CallToolResult."""
    is_error: bool
    message: str

    @property
    def reason(self) -> Reason:
        return Reason.TOOL_ERROR if self.is_error else Reason.SUCCEEDED


def outcome(code: int, message: str, log: Log | None, *, log_as_message: bool = False) -> Outcome:
    """The result of a program that exited with ``code``: its termination message, else its log.

    A termination message that is a whole CallToolResult counts as such; a log is always plain text, since anything
    may be printed into it. ``log_as_message``: a failed program's message may be the end of its log, put there by the
    kubelet; the log itself is then the better text. ``log`` is None if it can't be read (any more).
    """
    message = message.encode(errors="replace").decode()
    if code and log_as_message and log is not None and _is_end_of(message, log.data):
        message = ""
    if message and (result := _tool_result(message)) is not None:
        is_error = bool(code) or bool(result.get("isError"))
        exact = is_error == bool(result.get("isError"))
        text = message if exact else json.dumps({**result, "isError": True})
        words = next((b["text"] for b in result["content"] if isinstance(b.get("text"), str)), "")
        # Escapes in JSON can make half a surrogate pair, which is no text.
        return Outcome(text, is_error, _said(code, words.encode(errors="replace").decode()))
    text = message or _log_text(code, log)
    result = {"content": [{"type": "text", "text": text}], "isError": bool(code)}
    printed = message or ("" if log is None else log.data.decode(errors="replace"))
    return Outcome(json.dumps(result, ensure_ascii=False), bool(code), _said(code, printed))


def wants_log(code: int, message: str, *, log_as_message: bool) -> bool:
    """Whether the log must be read to tell the result."""
    return not message or bool(code and log_as_message)


def _is_end_of(message: str, data: bytes) -> bool:
    return data.decode(errors="replace").rstrip().endswith(message.rstrip())


def _tool_result(message: str) -> dict[str, Any] | None:
    def constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        value = json.loads(message, parse_constant=constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("isError", False), bool):
        return None
    content = value.get("content")
    if not isinstance(content, list):
        return None
    return value if all(isinstance(b, Mapping) and isinstance(b.get("type"), str) for b in content) else None


def _log_text(code: int, log: Log | None) -> str:
    if log is None:
        return f"exit code {code}; its output was gone before it could be read"
    if not log.data:
        return f"exit code {code}; it printed nothing"
    text = log.data.decode(errors="replace")
    return f"[cut: only the last {len(log.data)} bytes of the output follow]\n{text}" if log.cut else text


def _said(code: int, printed: str) -> str:
    last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
    if len(last) > LINE_LIMIT:
        last = f"{last[:LINE_LIMIT]}…"
    if not code:
        return last
    return f"exit code {code}: {last}" if last else f"exit code {code}"
