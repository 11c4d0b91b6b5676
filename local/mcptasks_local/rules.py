"""CEL rules (x-kubernetes-validations), anywhere in a structural schema.

A rule that names ``oldSelf`` is a transition rule: it runs only where the value stood before too.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import cel

from mcptasks_local.errors import Cause, Object

_KEY = "x-kubernetes-validations"
_MESSAGES = {
    "FieldValueForbidden": "Forbidden: {0}",
    "FieldValueRequired": "Required value: {0}",
    "FieldValueDuplicate": "Duplicate value: {0}",
    "FieldValueInvalid": "Invalid value: {0}",
}


def broken(schema: Object, new: Object, old: Object | None) -> list[Cause]:
    """The rules that ``new`` breaks, one cause each. ``old`` is the object before an update."""
    return [
        cause
        for node, path, value, before in _nodes(schema, new, old, "")
        for cause in _check(node, path, value, before)
    ]


def _nodes(schema: Object, new: Any, old: Any, path: str) -> Iterator[tuple[Object, str, Any, Any]]:
    """Every schema node with rules, with the value there now and before."""
    if _KEY in schema:
        yield schema, path, new, old
    if isinstance(new, dict):
        extra = schema.get("additionalProperties")
        for key, value in new.items():
            child = schema.get("properties", {}).get(key, extra)
            if isinstance(child, dict):
                yield from _nodes(child, value, old.get(key) if isinstance(old, dict) else None, f"{path}.{key}")
    elif isinstance(new, list) and isinstance(schema.get("items"), dict):
        # Items can't be matched with what they were before: no transition rules below a list.
        for index, value in enumerate(new):
            yield from _nodes(schema["items"], value, None, f"{path}[{index}]")


def _check(node: Object, path: str, new: Any, old: Any) -> Iterator[Cause]:
    context = cel.Context({"self": new} if old is None else {"self": new, "oldSelf": old})
    for rule in node[_KEY]:
        program, transition = _compiled(rule["rule"])
        if transition and old is None:
            continue
        try:
            holds = program.execute(context)
        except (ValueError, RuntimeError, TypeError, KeyError) as error:
            yield _cause(rule, path, f"rule evaluation error: {error}")
            continue
        if holds is not True:
            yield _cause(rule, path, _message(rule, context))


@lru_cache(maxsize=1024)
def _compiled(rule: str) -> tuple[cel.Program, bool]:
    program = cel.compile(rule)
    return program, "oldSelf" in program.variables()


def _message(rule: Object, context: cel.Context) -> str:
    if expression := rule.get("messageExpression"):
        try:
            return str(_compiled(expression)[0].execute(context))
        except (ValueError, RuntimeError, TypeError, KeyError):
            pass  # Kubernetes too falls back to the static message
    return rule.get("message") or f"failed rule: {rule['rule']}"


def _cause(rule: Object, path: str, message: str) -> Cause:
    reason = rule.get("reason", "FieldValueInvalid")
    field = (path + rule.get("fieldPath", "")).lstrip(".")
    return Cause(reason, _MESSAGES[reason].format(message), field or "<nil>")
