"""A call's arguments as a pod gets them: a file, and variables for its top-level scalars."""

import json
import re
from collections.abc import Mapping
from typing import Any

ANNOTATION = "mcptasks.dev/arguments"
FILE = "arguments.json"

ANNOTATION_LIMIT = 200 * 1024
"""Bytes of arguments that go into the pod's annotation. All annotations together may have 262,144, and admission
webhooks add theirs; larger arguments go into a Secret."""

VARIABLE_LIMIT = 32 * 1024
"""Bytes of one variable. From about 128 KiB on a program can't be executed at all (``argument list too long``), which
would look like the tool's fault; what is left out here is in the file."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS = {"string", "number", "integer", "boolean"}


def variables(arguments: str, schema: Mapping[str, Any]) -> list[dict[str, str]]:
    """``ARG_<name>`` entries for a container's ``env``.

    Each scalar property of ``schema`` has one: the value, else the schema's default, else empty, because a missing
    variable would leave the literal text ``$(ARG_name)`` in the program's arguments. Every ``$`` is doubled: the
    kubelet expands ``$(DB_PASSWORD)`` inside values, and would hand a caller the tool's secrets.
    """
    try:
        given = json.loads(arguments)
    except ValueError:
        given = {}
    values: dict[str, Any] = {}
    for name, about in (schema.get("properties") or {}).items():
        if isinstance(about, Mapping) and _scalar(about):
            values[name] = about.get("default", "")
    if isinstance(given, Mapping):
        values |= given
    texts = {name: _text(value) for name, value in values.items()}
    return [
        {"name": f"ARG_{name}", "value": text.replace("$", "$$")}
        for name, text in texts.items()
        if text is not None and _NAME.fullmatch(name)
    ]


def _scalar(about: Mapping[str, Any]) -> bool:
    """Whether a property may be a scalar; one without a type may."""
    types = about.get("type") or _SCALARS
    return bool({types} & _SCALARS if isinstance(types, str) else _SCALARS & set(types))


def _text(value: Any) -> str | None:
    """A scalar as a program reads it; None if it can't be a variable."""
    match value:
        case bool():
            text = "true" if value else "false"
        case None:
            text = ""
        case str():
            text = value
        case int() | float():
            text = json.dumps(value)
        case _:
            return None
    try:
        size = len(text.encode())
    except UnicodeEncodeError:  # half a surrogate pair is no text
        return None
    return None if size > VARIABLE_LIMIT or "\0" in text else text
