"""Arguments of a call: what an MCPTask can carry, and what its tool takes."""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing.exceptions import Unresolvable

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.sizes import ARGUMENTS_LIMIT, stored_size


class UnsoundSchema(InvalidValue):
    """An inputSchema that can't be applied, which its tool's Ready condition says too."""


def encoded(tool: str, arguments: Mapping[str, Any], limit: int = ARGUMENTS_LIMIT) -> str:
    """Arguments as the JSON text that a task carries; ``limit`` is in bytes as they are stored.

    Raises:
        InvalidValue
    """
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"Arguments of {tool} hold half a surrogate pair, which is no text") from error
    except ValueError as error:
        raise InvalidValue(f"Arguments of {tool} hold NaN or Infinity, which JSON does not have") from error
    except RecursionError:
        raise InvalidValue(f"Arguments of {tool} are nested too deeply") from None
    _fits(tool, text, limit)
    return text


def decoded(tool: str, text: str, limit: int = ARGUMENTS_LIMIT) -> dict[str, Any]:
    """The JSON text that a person wrote into a task; what `encoded` would refuse is refused.

    Raises:
        InvalidValue
    """
    _fits(tool, text, limit)
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise InvalidValue(f"Arguments of {tool} are not the text of a JSON object: {error}") from error
    except RecursionError:
        raise InvalidValue(f"Arguments of {tool} are nested too deeply") from None
    if not isinstance(value, dict):
        raise InvalidValue(f"Arguments of {tool} are {_short(text, 100)}, and must be a JSON object such as {{}}")
    encoded(tool, value)
    return value


def validator(schema: Mapping[str, Any]) -> Draft202012Validator | None:
    """What checks arguments; None if the schema itself is unsound."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return None
    # With a registry of its own, since the default one would fetch a remote $ref, from inside the cluster.
    return Draft202012Validator(schema, registry=REGISTRY)


def check(tool: str, checks: Draft202012Validator | None, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that do not fit the input schema; ``checks`` is the `validator` of it.

    Raises:
        UnsoundSchema
        InvalidValue: where and why, with the value.
    """
    unsound = UnsoundSchema(f"Tool {tool} has an unsound inputSchema; its owner must mend it")
    if checks is None:
        raise unsound
    try:
        error = best_match(checks.iter_errors(arguments))
    except (Unresolvable, re.error):  # found only on the way: a $ref to nowhere, a pattern that is none
        raise unsound from None
    except RecursionError:
        raise InvalidValue(f"Arguments of {tool} are nested too deeply to be checked") from None
    if error is not None:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        raise InvalidValue(
            f"Arguments of {tool} are invalid at arguments{_short(where, 200)}: {_short(error.message, 400)}"
        )


def _fits(tool: str, text: str, limit: int) -> None:
    if (size := stored_size(text)) > limit:
        raise InvalidValue(
            f"Arguments of {tool} take {size} bytes as they are stored, and at most {limit} are allowed; "
            "pass large data by reference"
        )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON does not have {name}")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
