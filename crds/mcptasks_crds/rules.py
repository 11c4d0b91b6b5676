"""CEL rules of the CRDs, generated from the lifecycle table.

They stand at the root of the schema: a rule on ``status`` alone is skipped when the whole status is removed.
"""

from collections.abc import Iterable

from mcptasks_crds.lifecycle import MOVES
from mcptasks_crds.names import TASK_NAME_PATTERN

Rule = dict[str, str]

_STATE = "(has({0}.status) && has({0}.status.state) ? {0}.status.state : 'submitted')"
OLD, NEW = _STATE.format("oldSelf"), _STATE.format("self")
_ENDED = f"({OLD} in {[str(s) for s in MOVES if s.terminal]})"


def lifecycle() -> Rule:
    """Refuses every move that the table does not have."""
    steps = " || ".join(f"({OLD} == '{old}' && {NEW} in {[str(s) for s in new]})" for old, new in MOVES.items() if new)
    return {
        "rule": f"{OLD} == {NEW} || {steps}",
        "reason": "FieldValueForbidden",
        "messageExpression": f"'a task that is ' + {OLD} + ' cannot become ' + {NEW}",
    }


def immutable(field: str, message: str | None = None) -> Rule:
    """``field`` of the object that carries the rule can't be added, changed or removed."""
    return {
        "rule": f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        "reason": "FieldValueForbidden",
        "message": message or f"{field} cannot be changed; make another task",
        "fieldPath": f".{field}",
    }


def set_once(field: str) -> Rule:
    """``field`` may be added, but then neither changed nor removed."""
    return {
        "rule": f"!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})",
        "reason": "FieldValueForbidden",
        "message": f"{field} can be set once, and then stays",
        "fieldPath": f".{field}",
    }


def kept_at_end(field: str) -> Rule:
    """``status.field`` of a task that has ended stays as it was."""
    has_new = f"has(self.status) && has(self.status.{field})"
    has_old = f"has(oldSelf.status.{field})"
    same = f"({has_new}) == {has_old} && (!{has_old} || self.status.{field} == oldSelf.status.{field})"
    return {
        "rule": f"!{_ENDED} || ({same})",
        "reason": "FieldValueForbidden",
        "message": f"status.{field} of a task that has ended cannot be changed",
    }


def completed_has_result() -> Rule:
    """No reader may ever see ``completed`` without a result."""
    return {
        "rule": f"{NEW} != 'completed' || has(self.status.result)",
        "reason": "FieldValueInvalid",
        "message": "a task becomes completed only together with its result",
    }


def derived_name() -> Rule:
    """A task with an id of its own has the name that follows from it, and no other task has such a name.

    CEL can't hash, so only the form can be checked.
    """
    return {
        "rule": f"has(self.spec.taskId) == self.metadata.name.matches('{TASK_NAME_PATTERN}')",
        "message": "a task made by hand has no spec.taskId, and any name; one with spec.taskId must be named t- and "
        "the first 40 hex digits of sha256(owner key, NUL, taskId)",
    }


def made_by_hand(owner_fields: Iterable[str], others: Iterable[str]) -> Rule:
    """Without an id of its own a task belongs to nobody: what says whose it is, or which request made it, is absent."""
    owned = [f"has(self.owner) && has(self.owner.{field})" for field in owner_fields]
    wrong = " || ".join([*owned, *(f"has(self.{field})" for field in others)])
    return {
        "rule": f"has(self.taskId) || !({wrong})",
        "message": f"a task made by hand, that is without taskId, can't have an owner, {', '.join(others)}",
    }


def short_name() -> Rule:
    """The name is a label of the task's Job and pod, where 63 characters fit."""
    return {"rule": "size(self.metadata.name) <= 63", "message": "metadata.name may have 63 characters at most"}
