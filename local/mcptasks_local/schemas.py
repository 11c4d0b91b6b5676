"""Structural schemas of custom kinds: prune, fill in defaults, validate; worded as Kubernetes words it."""

import copy
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.times import parse
from mcptasks_local.errors import Cause, Object

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_ENVELOPE = ("apiVersion", "kind", "metadata")

formats = FormatChecker(())


@formats.checks("date-time", raises=InvalidValue)
def _date_time(value: object) -> bool:
    if isinstance(value, str):
        parse(value)
    return True


def shaped(schema: Object, item: Object) -> tuple[Object, list[str]]:
    """A copy of ``item`` without what the schema does not know, with its defaults; and the paths that were dropped."""
    dropped: list[str] = []
    out = _shape(schema, {key: value for key, value in item.items() if key not in _ENVELOPE}, "", dropped)
    return {**{key: item[key] for key in _ENVELOPE if key in item}, **out}, dropped


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


def causes(schema: Object, item: Object) -> list[Cause]:
    """What of ``item`` does not fit, one cause each: reason, message, field."""
    body = {key: value for key, value in item.items() if key not in _ENVELOPE}
    return [cause for error in _validator(json.dumps(schema)).iter_errors(body) for cause in _causes(error)]


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema), format_checker=formats)


def _causes(error: ValidationError) -> Iterator[Cause]:
    field = _path(error.absolute_path) or "<nil>"
    wanted: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "required":
        for name in wanted:
            if name not in instance:
                yield Cause("FieldValueRequired", "Required value", f"{_path(error.absolute_path)}.{name}".lstrip("."))
    elif error.validator == "enum":
        supported = ", ".join(json.dumps(value) for value in wanted)
        message = f"Unsupported value: {json.dumps(error.instance)}: supported values: {supported}"
        yield Cause("FieldValueNotSupported", message, field)
    elif error.validator == "type":
        message = f"Invalid value: {_shown(error.instance)}: {field} in body must be of type {wanted}"
        yield Cause("FieldValueTypeInvalid", message, field)
    else:
        yield Cause("FieldValueInvalid", f"Invalid value: {_shown(error.instance)}: {_words(error, field)}", field)


def _words(error: ValidationError, field: str) -> str:
    limit = error.validator_value
    words = {
        "pattern": f"should match '{limit}'",
        "minLength": f"should be at least {limit} chars long",
        "maxLength": f"should be at most {limit} chars long",
        "minimum": f"should be greater than or equal to {limit}",
        "maximum": f"should be less than or equal to {limit}",
        "maxItems": f"should have at most {limit} items",
        "maxProperties": f"should have at most {limit} properties",
        "format": f"must be of type {limit}: {json.dumps(error.instance)}",
    }
    return f"{field} in body {words.get(str(error.validator), error.message)}"


def _path(steps: Any) -> str:
    out = ""
    for step in steps:
        out += f"[{step}]" if isinstance(step, int) else f".{step}"
    return out.lstrip(".")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return '"object"'
    if isinstance(value, list):
        return '"array"'
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
