"""CEL rules of the CRDs, generated from the lifecycle table.

They stand at the root of the schema: a rule on ``status`` alone is skipped when the whole status is removed.
"""

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
        "message": message or f"{field} cannot be changed",
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
    """CEL can't hash, so only the form of the derived name can be checked."""
    return {
        "rule": f"self.metadata.name.matches('{TASK_NAME_PATTERN}')",
        "message": "metadata.name must be t- and the first 40 hex digits of sha256(owner key, NUL, taskId)",
    }
