"""CEL rules (x-kubernetes-validations), anywhere in a structural schema.

A rule that names ``oldSelf`` is a transition rule: it runs only where the value stood before too. A rule that does not
is passed over where the value did not change.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import cel

from mcptasks_local.errors import Cause, Object, bad_request
from mcptasks_local.schemas import identity

_KEY = "x-kubernetes-validations"
_MESSAGES = {
    "FieldValueForbidden": "Forbidden: {0}",
    "FieldValueRequired": "Required value: {0}",
    "FieldValueDuplicate": "Duplicate value: {0}",
    "FieldValueInvalid": "Invalid value: {0}",
}
_FAILURES = (ValueError, RuntimeError, TypeError, KeyError)


def broken(schema: Object, new: Object, old: Object | None) -> list[Cause]:
    """The rules that ``new`` breaks, one cause each. ``old`` is the object before an update."""
    if not _governed(schema):
        return []
    return [
        cause
        for node, path, value, before in _nodes(schema, _seen(new), None if old is None else _seen(old), "")
        for cause in _check(node, path, value, before)
    ]


def check(schema: Object) -> None:
    """Compile every rule of a schema.

    Raises:
        ApiError: 400, a rule is not CEL.
    """
    for rule in schema.get(_KEY, ()):
        for source in (rule["rule"], rule.get("messageExpression")):
            if source:
                try:
                    _compiled(source)
                except ValueError as error:
                    raise bad_request(f"x-kubernetes-validations: {source!r} is not CEL: {error}") from error
    for child in _children(schema):
        check(child)


def _seen(item: Object) -> Object:
    """What rules at the root may see of an object: of its metadata the name alone."""
    meta = {key: item["metadata"][key] for key in ("name", "generateName") if key in item["metadata"]}
    return {**item, "metadata": meta}


def _children(schema: Object) -> Iterator[Object]:
    yield from schema.get("properties", {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key]


_known: dict[int, tuple[Object, bool]] = {}


def _governed(schema: Object) -> bool:
    """Whether there is a rule here or below. Kept by identity, with the schema itself, so that no id is met again."""
    found = _known.get(id(schema))
    if found is None:
        found = _known[id(schema)] = schema, _KEY in schema or any(map(_governed, list(_children(schema))))
    return found[1]


def _nodes(schema: Object, new: Any, old: Any, path: str) -> Iterator[tuple[Object, str, Any, Any]]:
    """Every schema node with rules, with the value there now and before."""
    if not _governed(schema):
        return
    if isinstance(new, dict):
        known, extra = schema.get("properties", {}), schema.get("additionalProperties")
        for key, value in new.items():
            if isinstance(child := known.get(key, extra), dict):
                yield from _nodes(child, value, old.get(key) if isinstance(old, dict) else None, f"{path}.{key}")
    elif isinstance(new, list) and isinstance(schema.get("items"), dict):
        # Entries are matched with what they were before by the keys of a list-map alone, as in Kubernetes.
        keys = schema.get("x-kubernetes-list-map-keys", ())
        before = {identity(entry, keys): entry for entry in old} if keys and isinstance(old, list) else {}
        for index, value in enumerate(new):
            yield from _nodes(schema["items"], value, before.get(identity(value, keys)), f"{path}[{index}]")
    if _KEY in schema:
        yield schema, path, new, old


def _check(node: Object, path: str, new: Any, old: Any) -> Iterator[Cause]:
    if old is not None and new == old:
        return
    context: cel.Context | None = None
    for rule in node[_KEY]:
        program, transition = _compiled(rule["rule"])
        if transition and old is None:
            continue
        if context is None:
            context = _context(node, new, old)
        try:
            holds = program.execute(context)
        except _FAILURES as error:
            said = rule.get("message") or rule["rule"]
            message = f'Invalid value: "object": {error} evaluating rule: {said}'
            yield Cause("FieldValueInvalid", message, path.lstrip(".") or "<nil>")
            continue
        if holds is not True:
            yield _cause(rule, path, _message(rule, context))


def _context(node: Object, new: Any, old: Any) -> cel.Context:
    """One for all rules of a node: turning the values into CEL's is what costs."""
    if old is None:
        return cel.Context({"self": _typed(node, new)})
    return cel.Context({"self": _typed(node, new), "oldSelf": _typed(node, old)})


def _typed(schema: Object, value: Any) -> Any:
    """Whole numbers as doubles where the schema says number: JSON does not tell 3 from 3.0, and CEL does."""
    if schema.get("type") == "number" and isinstance(value, int):
        return float(value)
    if isinstance(value, dict):
        known, extra = schema.get("properties", {}), schema.get("additionalProperties")
        extra = extra if isinstance(extra, dict) else {}
        return {key: _typed(known.get(key, extra), child) for key, child in value.items()}
    if isinstance(value, list):
        return [_typed(schema.get("items", {}), child) for child in value]
    return value


@lru_cache(maxsize=1024)
def _compiled(rule: str) -> tuple[cel.Program, bool]:
    program = cel.compile(rule)
    return program, "oldSelf" in program.variables()


def _message(rule: Object, context: cel.Context) -> str:
    if expression := rule.get("messageExpression"):
        try:
            return str(_compiled(expression)[0].execute(context))
        except _FAILURES:
            pass  # Kubernetes too falls back to the static message
    return rule.get("message") or f"failed rule: {rule['rule']}"


def _cause(rule: Object, path: str, message: str) -> Cause:
    reason = rule.get("reason", "FieldValueInvalid")
    field = (path + rule.get("fieldPath", "")).lstrip(".")
    return Cause(reason, _MESSAGES[reason].format(message), field or "<nil>")
