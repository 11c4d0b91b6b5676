"""What the two later dialects say alike: five states, time stamps, ttl."""

from typing import Any

from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.retention import ttl
from mcptasks_crds.times import render

_STATES = {State.SUBMITTED: "working", State.UNKNOWN: "failed"}


def status(task: TaskRecord) -> str:
    """One of working, input_required, completed, failed, cancelled: typed clients break on any other."""
    return _STATES.get(task.state, str(task.state))


def stamps(task: TaskRecord) -> dict[str, Any]:
    """createdAt, lastUpdatedAt, and statusMessage if there is something to say."""
    updated = task.updated or task.finished or task.started or task.created
    said = task.message or (None if task.terminal else (task.progress or {}).get("text"))
    return {
        "createdAt": render(task.created),
        "lastUpdatedAt": render(updated),
        **({"statusMessage": said} if said else {}),
    }


def ttl_ms(task: TaskRecord) -> int | None:
    """Milliseconds from creation; None = unlimited, or not yet known."""
    return ttl(task.retention, task.created, task.finished)
