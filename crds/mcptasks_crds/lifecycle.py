"""The states of a task and the moves between them (SEP-1686, "Task Status Lifecycle").

This table is the only place that knows the moves: the CEL rules of the CRD are generated from it, and the
operator and the service ask it before they write.
"""

from enum import StrEnum

from mcptasks_crds.errors import IllegalMove


class State(StrEnum):
    """Where a task is; a task without a status is ``submitted``."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def terminal(self) -> bool:
        """True when the task has ended and will never move again."""
        return not MOVES[self]


_ENDS = (State.COMPLETED, State.FAILED, State.CANCELLED, State.UNKNOWN)

MOVES: dict[State, tuple[State, ...]] = {
    State.SUBMITTED: (State.WORKING, State.INPUT_REQUIRED, *_ENDS),
    State.WORKING: (State.INPUT_REQUIRED, *_ENDS),
    State.INPUT_REQUIRED: (State.WORKING, *_ENDS),
    State.COMPLETED: (),
    State.FAILED: (),
    State.CANCELLED: (),
    State.UNKNOWN: (),
}
"""Each state with the states it may become (R-3.2)."""


def may_move(old: State, new: State) -> bool:
    """Whether a task may go from ``old`` to ``new``; staying is always allowed."""
    return old == new or new in MOVES[old]


def check_move(old: State, new: State) -> None:
    """Refuse a move that the table does not have.

    Raises:
        IllegalMove: ``old`` may not become ``new``.
    """
    if not may_move(old, new):
        raise IllegalMove(old, new)
