"""Structural schemas of custom kinds: prune, fill in defaults, validate; worded as Kubernetes words it.

Validation ratchets: what an update leaves as it was is not checked again.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.times import parse
from mcptasks_local.errors import Cause, Object

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_ENVELOPE = ("apiVersion", "kind", "metadata")
STOPPING = frozenset({"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong",
                      "FieldValueTooMany"})  # fmt: skip
"""Faults after which Kubernetes does not run the CEL rules: the value lacks its declared shape or size."""
UNCHECKED = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
    "<nil>",
)


def shaped(schema: Object, item: Object) -> tuple[Object, list[str]]:
    """A copy of ``item`` without what the schema does not know, with its defaults; and the paths that were dropped."""
    dropped: list[str] = []
    out = _shape(schema, {key: value for key, value in item.items() if key not in _ENVELOPE}, "", dropped)
    return {**{key: item[key] for key in _ENVELOPE if key in item}, **out}, sorted(dropped)


def _shape(schema: Object, value: Any, path: str, dropped: list[str]) -> Any:
    if isinstance(value, dict):
        known, extra = schema.get("properties", {}), schema.get("additionalProperties")
        out: Object = {}
        for key, child in value.items():
            where = f"{path}.{key}" if path else key
            if key in known:
                # A null for a field that is not nullable counts as left out, before defaults are filled in.
                if child is not None or known[key].get("nullable"):
                    out[key] = _shape(known[key], child, where, dropped)
            elif isinstance(extra, dict):
                out[key] = _shape(extra, child, where, dropped)
            elif extra or schema.get(_PRESERVE):
                out[key] = copy.deepcopy(child)
            else:
                dropped.append(where)
        for key, child in known.items():
            if key not in out and "default" in child:
                out[key] = _shape(child, copy.deepcopy(child["default"]), f"{path}.{key}", [])
        return out
    if isinstance(value, list) and "items" in schema:
        return [_shape(schema["items"], child, f"{path}[{i}]", dropped) for i, child in enumerate(value)]
    return copy.deepcopy(value)


def causes(schema: Object, item: Object, old: Object | None = None) -> list[Cause]:
    """What of ``item`` does not fit, one cause each; unchanged parts of ``old`` are passed over."""
    body = {key: value for key, value in item.items() if key not in _ENVELOPE}
    before = None if old is None else {key: value for key, value in old.items() if key not in _ENVELOPE}
    return list(_faults(schema, body, before, ""))


def _faults(schema: Object, value: Any, old: Any, path: str) -> Iterator[Cause]:
    if old is not None and value == old and type(value) is type(old):
        return
    if value is None and schema.get("nullable"):
        return
    if (kind := _misfit(schema, value)) is not None:
        shown = _kind(value)
        yield Cause(
            "FieldValueTypeInvalid",
            f'Invalid value: "{shown}": {path} in body must be of type {kind}: "{shown}"',
            path or "<nil>",
        )
        return
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(json.dumps(choice) for choice in schema["enum"])
        message = f"Unsupported value: {json.dumps(value)}: supported values: {supported}"
        yield Cause("FieldValueNotSupported", message, path)
    match value:
        case str():
            yield from _text_faults(schema, value, path)
        case dict():
            yield from _object_faults(schema, value, old if isinstance(old, dict) else {}, path)
        case list():
            yield from _list_faults(schema, value, old if isinstance(old, list) else [], path)
        case int() | float() if not isinstance(value, bool):
            yield from _number_faults(schema, value, path)


def _misfit(schema: Object, value: Any) -> str | None:
    """The type that was wanted, if ``value`` has another one."""
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        return None if fits else "integer,string"
    wanted = schema.get("type")
    return None if wanted is None or _FITS[wanted](value) else wanted


_FITS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _text_faults(schema: Object, value: str, path: str) -> Iterator[Cause]:
    if (most := schema.get("maxLength")) is not None and len(value) > most:
        # Kubernetes counts characters here, and says bytes.
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {most} bytes", path)
    if (least := schema.get("minLength")) is not None and len(value) < least:
        yield _invalid(value, path, f"should be at least {least} chars long")
    elif (pattern := schema.get("pattern")) is not None and not _pattern(pattern).search(value):
        yield _invalid(value, path, f"should match '{pattern}'")
    if schema.get("format") == "date-time":
        try:
            parse(value)
        except InvalidValue:
            quoted = json.dumps(value)
            message = f"Invalid value: {quoted}: {path} in body must be of type date-time: {quoted}"
            yield Cause("FieldValueTypeInvalid", message, path)


def _number_faults(schema: Object, value: float, path: str) -> Iterator[Cause]:
    if factor := schema.get("multipleOf"):
        steps = value / factor
        if abs(steps - round(steps)) > 1e-9:
            yield _invalid(value, path, f"should be a multiple of {factor}")
    if (most := schema.get("maximum")) is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield _invalid(value, path, f"should be less than {most}")
        elif value > most:
            yield _invalid(value, path, f"should be less than or equal to {most}")
    if (least := schema.get("minimum")) is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield _invalid(value, path, f"should be greater than {least}")
        elif value < least:
            yield _invalid(value, path, f"should be greater than or equal to {least}")


def _object_faults(schema: Object, value: Object, old: Object, path: str) -> Iterator[Cause]:
    yield from _amount(schema, len(value), path, "maxProperties", "minProperties", "properties")
    known, extra = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield Cause("FieldValueRequired", "Required value", _below(path, name))
    for key, child in value.items():
        if isinstance(rule := known.get(key, extra), dict):
            yield from _faults(rule, child, old.get(key), _below(path, key))


def _list_faults(schema: Object, value: list[Any], old: list[Any], path: str) -> Iterator[Cause]:
    yield from _amount(schema, len(value), path, "maxItems", "minItems", "items")
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", ())
    before = {identity(entry, keys): entry for entry in old} if kind == "map" else {}
    seen: set[str] = set()
    for index, child in enumerate(value):
        where = f"{path}[{index}]"
        if "items" in schema:
            yield from _faults(schema["items"], child, before.get(identity(child, keys)), where)
        if kind in ("map", "set") and isinstance(child, dict) == (kind == "map"):
            name = identity(child, keys)
            if name in seen:
                yield Cause("FieldValueDuplicate", f"Duplicate value: {name}", where)
            seen.add(name)


def identity(entry: Any, keys: Any) -> str:
    """What makes an entry of a list-map the same entry as another: its keys, as JSON."""
    value = {key: entry[key] for key in keys if key in entry} if keys and isinstance(entry, dict) else entry
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _amount(schema: Object, count: int, path: str, most: str, least: str, what: str) -> Iterator[Cause]:
    if (limit := schema.get(most)) is not None and count > limit:
        yield Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", path)
    if (limit := schema.get(least)) is not None and count < limit:
        yield _invalid(count, path, f"should have at least {limit} {what}")


def _invalid(value: Any, path: str, words: str) -> Cause:
    text = json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {path} in body {words}", path)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


@lru_cache(maxsize=512)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
