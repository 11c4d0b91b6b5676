"""The log of ``mcptasks dev``: one line for each change of a task or tool that a person would want to know of."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcptasks_crds.lifecycle import State
from mcptasks_crds.times import parse

TOOL_WIDTH = 14
NOTE_LIMIT = 160

STYLES = {
    State.SUBMITTED: "dim",
    State.WORKING: "cyan",
    State.INPUT_REQUIRED: "magenta",
    State.COMPLETED: "green",
    State.FAILED: "red",
    State.CANCELLED: "yellow",
    State.UNKNOWN: "red",
}
"""How each state looks on a terminal."""


@dataclass(frozen=True, slots=True)
class Line:
    """What changed: of which tool, which task (a short form of its name; empty for a tool), to what, and a note."""

    tool: str
    task: str
    word: str
    note: str = ""
    style: str = ""


class Feed:
    """Remembers what was said of each object, so that only news is told."""

    def __init__(self) -> None:
        self._said: dict[str, Line] = {}

    def seen(self, obj: Mapping[str, Any]) -> None:
        """Take note of an object without telling: it was there before."""
        if (line := _line(obj)) is not None:
            self._said[obj["metadata"]["uid"]] = line

    def told(self, event: str, obj: Mapping[str, Any], now: float) -> Line | None:
        """The line for one watch event (ADDED, MODIFIED, DELETED), or None if it is no news."""
        uid = obj["metadata"]["uid"]
        if event == "DELETED":
            self._said.pop(uid, None)
            return _gone(obj, now)
        line = _line(obj)
        if line is None or self._said.get(uid) == line:
            return None
        self._said[uid] = line
        return line


def _line(obj: Mapping[str, Any]) -> Line | None:
    return _task_line(obj) if obj["kind"] == "MCPTask" else _tool_line(obj)


def _gone(obj: Mapping[str, Any], now: float) -> Line:
    if obj["kind"] == "MCPTool":
        return Line(obj["metadata"]["name"], "", "tool deleted", style="yellow")
    expires = (obj.get("status") or {}).get("expiresAt")
    word = "expired" if expires is not None and parse(expires) <= now else "deleted"
    return Line(obj["spec"]["request"]["name"], short(obj["metadata"]["name"]), word, style="dim")


def _task_line(task: Mapping[str, Any]) -> Line:
    status = task.get("status") or {}
    state = State(status.get("state", State.SUBMITTED))
    return Line(
        tool=task["spec"]["request"]["name"],
        task=short(task["metadata"]["name"]),
        word=state,
        note=clean(_note(task, status, state)),
        style=STYLES[state],
    )


def _note(task: Mapping[str, Any], status: Mapping[str, Any], state: State) -> str:
    if state.terminal:
        begun = status.get("startedAt") or task["spec"].get("createdAt") or task["metadata"]["creationTimestamp"]
        took = parse(status["finishedAt"]) - parse(begun) if "finishedAt" in status else None
        parts = [status.get("reason") or "", f"after {duration(took)}" if took is not None else ""]
        if message := (status.get("error") or {}).get("message") or status.get("message"):
            parts.append(f"· {message}")
        return " ".join(part for part in parts if part)
    if "cancel" in task["spec"]:
        return "is being cancelled"
    if progress := status.get("progress"):
        return progress.get("text") or f"{progress['progress']:g}"
    attempt = status.get("attempt") or 1
    again = f"attempt {attempt}" if attempt > 1 else ""
    queued = next((c for c in status.get("conditions") or () if c["type"] == "Queued" and c["status"] == "True"), None)
    if queued is not None and state is State.SUBMITTED:
        return f"{queued['reason']} {queued.get('message', '')}".strip()
    if state is State.SUBMITTED:
        return _arguments(task)
    return again


def _arguments(task: Mapping[str, Any]) -> str:
    """What was asked, for a person to recognise the call by."""
    try:
        arguments = json.loads(task["spec"]["request"].get("arguments") or "{}")
    except ValueError:
        return ""
    return json.dumps(arguments, ensure_ascii=False) if arguments else ""


def _tool_line(tool: Mapping[str, Any]) -> Line | None:
    if (ready := readiness(tool)) is None:
        return None
    ok, reason, message = ready
    name = tool["metadata"]["name"]
    if ok:
        return Line(name, "", "tool ready", style="green")
    return Line(name, "", "tool not ready", clean(f"{reason}: {message}" if message else reason), "red")


def readiness(tool: Mapping[str, Any]) -> tuple[bool, str, str] | None:
    """Whether a tool is Ready, with reason and message; None while nobody has looked at its present generation."""
    for condition in (tool.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] != "Unknown":
            looked_at = condition.get("observedGeneration", tool["metadata"].get("generation"))
            if looked_at == tool["metadata"].get("generation"):
                return condition["status"] == "True", condition["reason"], condition.get("message", "")
    return None


def short(name: str) -> str:
    """The part of a task's name that tells it from others for a person."""
    return name[:10]


def duration(seconds: float) -> str:
    """Seconds for people: ``0.4 s``, ``12 s``, ``3 min 5 s``, ``2 h 10 min``."""
    seconds = max(seconds, 0.0)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if (whole := round(seconds)) < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def clean(text: str, limit: int = NOTE_LIMIT) -> str:
    """One printable line: what a tool or client wrote must not move the terminal's cursor."""
    line = " ".join(re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]+", " ", text).split())
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
