from typing import Any

import pytest

from mcptasks_local import rules, schemas
from mcptasks_local.errors import ApiError
from tests.unit.local.widgets import SCHEMA, widget


def broken(new: Any, old: Any = None) -> list[tuple[str, str, str]]:
    before = None if old is None else schemas.shaped(SCHEMA, old)[0]
    return [tuple(cause) for cause in rules.broken(SCHEMA, schemas.shaped(SCHEMA, new)[0], before)]  # type: ignore[misc]


def test_a_transition_rule_at_the_root_guards_a_lifecycle() -> None:
    done = widget(status={"state": "done"})
    said = "Forbidden: a widget that is done cannot become "
    assert broken(widget(status={"state": "busy"}), done) == [("FieldValueForbidden", said + "busy", "<nil>")]
    assert broken(widget(), done) == [("FieldValueForbidden", said + "new", "<nil>")]  # the status removed
    assert broken(done | {"metadata": {"name": "a", "labels": {"x": "y"}}}, done) == []
    assert broken(done, widget(status={"state": "busy"})) == []


def test_a_rule_below_the_root_names_its_field() -> None:
    assert broken(widget(spec={"owner": "eve"}), widget()) == [
        ("FieldValueForbidden", "Forbidden: owner cannot be changed", "spec.owner")
    ]
    assert broken(widget(spec={"owner": "eve"})) == []  # a transition rule needs a before


def test_a_rule_without_a_past_holds_from_the_start_but_not_for_unchanged_values() -> None:
    large = widget(spec={"owner": "ann", "size": 9})
    assert broken(large) == [("FieldValueInvalid", "Invalid value: too big", "spec")]
    assert broken(large | {"status": {"count": 1}}, large) == []


def test_entries_of_a_keyed_list_are_compared_with_themselves() -> None:
    def parts(*pairs: tuple[str, int]) -> Any:
        return widget(spec={"owner": "ann", "parts": [{"name": name, "n": n} for name, n in pairs]})

    assert broken(parts(("b", 2), ("a", 1)), parts(("a", 1), ("b", 2))) == []
    assert broken(parts(("b", 1), ("a", 1)), parts(("a", 1), ("b", 2))) == [
        ("FieldValueInvalid", "Invalid value: n never shrinks", "spec.parts[0]")
    ]


def test_whole_numbers_are_doubles_where_the_schema_says_number() -> None:
    assert broken(widget(spec={"owner": "ann", "ratio": 5})) == []
    ((_, message, field),) = broken(widget(spec={"owner": "ann", "ratio": 500}))
    assert (message, field) == ("Invalid value: failed rule: !has(self.ratio) || self.ratio < 100.0", "spec")


def test_a_rule_that_cannot_be_evaluated_refuses() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "self.spec.nope > 1", "message": "hm"}]}
    ((reason, message, field),) = rules.broken(schema, widget(), None)
    assert (reason, field) == ("FieldValueInvalid", "<nil>")
    assert message.startswith('Invalid value: "object": ')
    assert message.endswith("evaluating rule: hm")


def test_a_broken_message_expression_falls_back_to_the_message() -> None:
    rule = {"rule": "false", "messageExpression": "self.nope.nope", "message": "static"}
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    assert rules.broken(schema, widget(), None)[0].message == "Invalid value: static"


def test_rules_at_the_root_see_the_name_alone_of_the_metadata() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [
        {"rule": "self.metadata.name.matches('^t-[0-9]+$')"}, {"rule": "!has(self.metadata.labels)"}]}  # fmt: skip
    item = widget("t-1") | {"metadata": {"name": "t-1", "labels": {"a": "b"}}}
    assert rules.broken(schema, item, None) == []
    assert len(rules.broken(schema, widget("x"), None)) == 1


@pytest.mark.parametrize("place", ["items", "additionalProperties"])
def test_rules_are_compiled_when_a_kind_is_defined(place: str) -> None:
    bad = {"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}
    with pytest.raises(ApiError, match="is not CEL"):
        rules.check({"type": "object", "properties": {"x": {"type": "object", place: bad}}})
    rules.check(SCHEMA)


def test_rules_of_map_values_are_found() -> None:
    value = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]}
    schema = {"type": "object", "properties": {"m": {"type": "object", "additionalProperties": value}}}
    assert [cause.field for cause in rules.broken(schema, {"metadata": {}, "m": {"a": 1, "b": 0}}, None)] == ["m.b"]
