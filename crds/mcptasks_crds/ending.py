"""The status patch that ends a task, the same whoever writes it."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from mcptasks_crds.lifecycle import State, check_move
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.retention import expires_at
from mcptasks_crds.task import ResultRef, TaskError
from mcptasks_crds.times import render

ConditionStatus = Literal["True", "False"]
MESSAGE_LIMIT = 8192
"""Characters of a status message; the schema refuses more."""


def with_condition(
    conditions: Iterable[Mapping[str, Any]], kind: str, status: ConditionStatus, reason: str, message: str, now: float
) -> list[dict[str, Any]]:
    """``conditions`` with one of them set; its time moves only when its status does.

    A merge patch replaces a list whole, so the others must be in it too.
    """
    old = next((c for c in conditions if c["type"] == kind), None)
    moved = old is None or old["status"] != status
    new = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:MESSAGE_LIMIT],
        "lastTransitionTime": render(now) if old is None or moved else old["lastTransitionTime"],
    }
    return [*(dict(c) for c in conditions if c["type"] != kind), new]


def ended(
    task: TaskRecord,
    state: State,
    *,
    now: float,
    reason: str,
    message: str,
    result: ResultRef | None = None,
    error: TaskError | None = None,
) -> dict[str, Any]:
    """The ``status`` of a merge patch that ends ``task`` at ``now``; questions still open end with it (R-4.3).

    Raises:
        IllegalMove: the task has already ended otherwise.
    """
    check_move(task.state, state)
    at = render(now)
    conditions = with_condition(task.conditions, "Finished", "True", reason, message, now)
    if any(c["type"] == "Queued" and c["status"] == "True" for c in conditions):
        conditions = with_condition(conditions, "Queued", "False", reason, "", now)
    expires = expires_at(task.retention, task.created, now)
    return {
        "state": str(state),
        "reason": reason,
        "message": message[:MESSAGE_LIMIT],
        "finishedAt": at,
        "lastUpdatedAt": at,
        "expiresAt": None if expires is None else render(expires),
        "conditions": conditions,
        **({"result": result.wire()} if result else {}),
        **({"error": error.wire()} if error else {}),
        **({"inputs": None} if task.inputs else {}),
    }
