"""Arguments: what a task can carry, and what its tool takes."""

import json
from typing import Any

import pytest

from mcptasks_crds.arguments import UnsoundSchema, check, decoded, encoded, validator
from mcptasks_crds.errors import InvalidValue

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def test_what_is_written_by_hand_is_read() -> None:
    assert decoded("t", '{ "n": 1, "é": "\\n" }') == {"n": 1, "é": "\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Arguments of t are not the text of a JSON object: Expecting value"),
        ("{n: 1}", "not the text of a JSON object"),
        ("[1]", r"Arguments of t are \[1\], and must be a JSON object such as {}"),
        ('"{}"', "must be a JSON object"),
        ('{"n": NaN}', "JSON does not have NaN"),
        ('{"n": -Infinity}', "JSON does not have -Infinity"),
        ('{"n": 1e999}', "NaN or Infinity"),
        ('{"n": "\\ud800"}', "half a surrogate pair"),
        (deep(100_000), "nested too deeply"),
    ],
)
def test_what_no_client_could_have_sent_is_refused_with_its_cause(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        decoded("t", text, limit=10_000_000)


def test_too_much_is_refused_by_the_size_that_is_stored() -> None:
    text = json.dumps({"a": "<" * 10})
    with pytest.raises(InvalidValue, match="take 75 bytes as they are stored, and at most 74 are allowed"):
        decoded("t", text, limit=74)
    assert decoded("t", text, limit=75)
    with pytest.raises(InvalidValue, match="take 75 bytes"):
        encoded("t", {"a": "<" * 10}, limit=74)


def test_arguments_are_checked_against_the_schema_of_the_tool() -> None:
    check("t", validator(NUMBER), {"n": 1})
    with pytest.raises(InvalidValue, match=r"^Arguments of t are invalid at arguments\.n: 'x' is not of type"):
        check("t", validator(NUMBER), {"n": "x"})


@pytest.mark.parametrize(
    "schema",
    [{"type": 7}, {"properties": {"n": {"$ref": "https://example.com/x"}}}, {"properties": {"n": {"pattern": "("}}}],
)
def test_a_schema_that_cannot_be_applied_is_its_owners_fault(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsoundSchema, match="unsound inputSchema"):
        check("t", validator(schema), {"n": "x"})
