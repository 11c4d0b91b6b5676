import json
from typing import Any

import pytest

from mcptasks_operator.arguments import VARIABLE_LIMIT, variables


def env(arguments: Any, **properties: Any) -> dict[str, str]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {e["name"]: e["value"] for e in variables(text, {"properties": properties})}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        ('line\n"quoted" `x` $HOME', 'line\n"quoted" `x` $$HOME'),
        ("$(DB_PASSWORD)", "$$(DB_PASSWORD)"),
        ("$$", "$$$$"),
        (True, "true"),
        (False, "false"),
        (None, ""),
        (3, "3"),
        (2.5, "2.5"),
        ("été 🙂", "été 🙂"),
        ("", ""),
    ],
)
def test_a_scalar_is_a_variable_and_no_dollar_is_expanded(value: Any, text: str) -> None:
    assert env({"x": value}) == {"ARG_x": text}


def test_what_a_variable_cannot_hold_is_left_to_the_file() -> None:
    assert env({"list": [1], "map": {}, "nul": "a\0b", "big": "x" * (VARIABLE_LIMIT + 1)}) == {}
    assert env('{"half": "\\ud800"}') == {}
    assert len(env({"big": "x" * VARIABLE_LIMIT})["ARG_big"]) == VARIABLE_LIMIT


def test_a_name_that_is_no_identifier_is_left_out() -> None:
    assert env({"a-b": 1, "1a": 1, "a=b": 1, "é": 1, "a b": 1, "": 1, "_a1": 1}).keys() == {"ARG__a1"}


def test_a_missing_argument_has_its_default_or_is_empty() -> None:
    schema = {
        "path": {"type": "string", "default": "tests"},
        "count": {"type": ["integer", "null"]},
        "flag": {"type": "boolean", "default": False},
        "any": {},
        "list": {"type": "array"},
        "odd": True,
    }
    assert env({"count": 2}, **schema) == {"ARG_path": "tests", "ARG_count": "2", "ARG_flag": "false", "ARG_any": ""}


def test_arguments_that_are_no_object_leave_the_defaults() -> None:
    assert env("[1]", path={"type": "string"}) == {"ARG_path": ""}
    assert env("{", path={"type": "string"}) == {"ARG_path": ""}
    assert variables("{}", {}) == []
