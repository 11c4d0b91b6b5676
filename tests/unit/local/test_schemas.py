# ruff: noqa: E501 - a table of faults, one a line
from typing import Any

import pytest

from mcptasks_local import schemas
from mcptasks_local.errors import Cause
from tests.unit.local.widgets import SCHEMA, widget


def found(spec: Any, old: Any = None) -> list[tuple[str, str, str]]:
    item, _ = schemas.shaped(SCHEMA, widget(spec=spec))
    before = None if old is None else schemas.shaped(SCHEMA, widget(spec=old))[0]
    return [tuple(cause) for cause in schemas.causes(SCHEMA, item, before)]  # type: ignore[misc]


ANN = {"owner": "ann"}
INVALID, TYPE = "FieldValueInvalid", "FieldValueTypeInvalid"


@pytest.mark.parametrize(
    ("spec", "reason", "message", "field"),
    [
        ({}, "FieldValueRequired", "Required value", "spec.owner"),
        ({"owner": None}, "FieldValueRequired", "Required value", "spec.owner"),
        ({"owner": 5}, TYPE, 'Invalid value: "integer": spec.owner in body must be of type string: "integer"', "spec.owner"),
        ({"owner": "a"}, INVALID, 'Invalid value: "a": spec.owner in body should be at least 2 chars long', "spec.owner"),
        ({"owner": "abcdefghijk"}, "FieldValueTooLong", "Too long: may not be more than 8 bytes", "spec.owner"),
        ({"owner": "A1"}, INVALID, "Invalid value: \"A1\": spec.owner in body should match '^[a-z]+$'", "spec.owner"),
        (ANN | {"size": 0}, INVALID, "Invalid value: 0: spec.size in body should be greater than or equal to 1", "spec.size"),
        (ANN | {"size": 11}, INVALID, "Invalid value: 11: spec.size in body should be less than or equal to 10", "spec.size"),
        (ANN | {"size": 1.5}, TYPE, 'Invalid value: "number": spec.size in body must be of type integer: "number"', "spec.size"),
        (ANN | {"ratio": 0}, INVALID, "Invalid value: 0: spec.ratio in body should be greater than 0", "spec.ratio"),
        (ANN | {"ratio": 0.3}, INVALID, "Invalid value: 0.3: spec.ratio in body should be a multiple of 0.5", "spec.ratio"),
        (ANN | {"share": 1}, INVALID, "Invalid value: 1: spec.share in body should be less than 1", "spec.share"),
        (ANN | {"mode": "z"}, "FieldValueNotSupported", 'Unsupported value: "z": supported values: "a", "b"', "spec.mode"),
        (ANN | {"at": "yesterday"}, TYPE, 'Invalid value: "yesterday": spec.at in body must be of type date-time: "yesterday"', "spec.at"),
        (ANN | {"flag": "yes"}, TYPE, 'Invalid value: "string": spec.flag in body must be of type boolean: "string"', "spec.flag"),
        (ANN | {"either": {}}, TYPE, 'Invalid value: "object": spec.either in body must be of type integer,string: "object"', "spec.either"),
        (ANN | {"tags": ["a", "b", "c"]}, "FieldValueTooMany", "Too many: 3: must have at most 2 items", "spec.tags"),
        (ANN | {"tags": []}, INVALID, "Invalid value: 0: spec.tags in body should have at least 1 items", "spec.tags"),
        (ANN | {"tags": ["a", "a"]}, "FieldValueDuplicate", 'Duplicate value: "a"', "spec.tags[1]"),
        (ANN | {"tags": "x"}, TYPE, 'Invalid value: "string": spec.tags in body must be of type array: "string"', "spec.tags"),
        (ANN | {"parts": [{"name": "x"}, {"name": "x"}]}, "FieldValueDuplicate", 'Duplicate value: {"name":"x"}', "spec.parts[1]"),
        (ANN | {"parts": [{}]}, "FieldValueRequired", "Required value", "spec.parts[0].name"),
        (ANN | {"labels": {"a": "12345"}}, "FieldValueTooLong", "Too long: may not be more than 4 bytes", "spec.labels.a"),
        (ANN | {"labels": dict.fromkeys("abc", "1")}, "FieldValueTooMany", "Too many: 3: must have at most 2 items", "spec.labels"),
        (ANN | {"labels": {}}, INVALID, "Invalid value: 0: spec.labels in body should have at least 1 properties", "spec.labels"),
        ("str", TYPE, 'Invalid value: "string": spec in body must be of type object: "string"', "spec"),
        (ANN | {"tags": [None]}, TYPE, 'Invalid value: "null": spec.tags[0] in body must be of type string: "null"', "spec.tags[0]"),
        (ANN | {"owner": True}, TYPE, 'Invalid value: "boolean": spec.owner in body must be of type string: "boolean"', "spec.owner"),
        (ANN | {"owner": []}, TYPE, 'Invalid value: "array": spec.owner in body must be of type string: "array"', "spec.owner"),
    ],
)  # fmt: skip
def test_faults_are_worded_as_a_real_api_server_words_them(spec: Any, reason: str, message: str, field: str) -> None:
    assert found(spec) == [(reason, message, field)]


@pytest.mark.parametrize(
    "spec",
    [ANN, ANN | {"either": 5}, ANN | {"either": "50%"}, ANN | {"maybe": None}, ANN | {"ratio": 1.5}, ANN | {"size": 4.0},
     ANN | {"at": "2026-12-01T10:00:00Z"}, ANN | {"free": {"anything": [1, {"x": None}]}}, ANN | {"mode": None}],
)  # fmt: skip
def test_what_fits_has_no_faults(spec: Any) -> None:
    assert found(spec) == []


def test_unknown_fields_go_and_are_named() -> None:
    item = widget(spec=ANN | {"bogus": 1, "parts": [{"name": "x", "zz": 1}], "free": {"kept": 1}}, extra=1)
    out, dropped = schemas.shaped(SCHEMA, item)
    assert dropped == ["extra", "spec.bogus", "spec.parts[0].zz"]
    assert out["spec"] == {"owner": "ann", "size": 3, "parts": [{"name": "x", "n": 1}], "free": {"kept": 1}}
    assert item["spec"]["bogus"] == 1  # what came in stays as it was


def test_defaults_fill_in_what_is_left_out_or_null() -> None:
    assert schemas.shaped(SCHEMA, widget(spec=ANN | {"size": None}))[0]["spec"]["size"] == 3
    assert schemas.shaped(SCHEMA, widget(status={}))[0]["status"] == {"state": "new"}


def test_what_an_update_leaves_alone_is_not_checked_again() -> None:
    old = ANN | {"mode": "from an older schema", "parts": [{"name": "p", "n": "x"}, {"name": "q"}]}
    assert found(old | {"size": 5, "parts": [{"name": "q", "n": 2}, {"name": "p", "n": "x"}]}, old) == []
    changed = found(old | {"mode": "another"}, old)
    assert [cause[2] for cause in changed] == ["spec.mode"]


def test_several_faults_come_together() -> None:
    fields = [cause[2] for cause in found({"owner": "", "size": 0, "mode": "z"})]
    assert fields == ["spec.owner", "spec.size", "spec.mode"]


def test_long_values_are_cut_in_messages() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^b+$"}}}
    (cause,) = schemas.causes(schema, {"x": "a" * 1000})
    assert isinstance(cause, Cause)
    assert len(cause.message) < 300
