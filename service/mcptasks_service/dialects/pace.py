"""How often a client should ask for the state of a task."""

from mcptasks_crds.record import TaskRecord
from mcptasks_crds.times import milliseconds
from mcptasks_service.errors import ToolNotFound
from mcptasks_service.tasks import Tasks

DEFAULT_MS = 1000
"""For a task whose tool is gone."""

SHARE = 20
"""A client waits at most this part of the task's age longer than it had to: one twentieth."""

SLOWEST_MS = 10_000
"""However old the task is, unless its tool says more."""


def interval(base_ms: int, age_ms: float) -> int:
    """Milliseconds between polls: the tool's pollInterval, then growing with the task's age, in steps of 100 ms.

    One second up to an age of 20 s, 3 s at one minute, 10 s from 200 s on.
    """
    return max(base_ms, min(int(age_ms / SHARE) // 100 * 100, SLOWEST_MS))


def poll_ms(tasks: Tasks, task: TaskRecord, now: float) -> int:
    """The interval to offer for a task at ``now``, in epoch seconds."""
    try:
        base = milliseconds(tasks.catalogue.tool(task.tool).spec.poll_interval)
    except ToolNotFound:
        base = DEFAULT_MS
    return interval(base, ((task.finished or now) - task.created) * 1000)
