"""The CEL rules, evaluated by a CEL library, against the table that they are generated from."""

import itertools
from typing import Any

import cel
import pytest

from mcptasks_crds import rules
from mcptasks_crds.lifecycle import State, may_move
from mcptasks_crds.manifest import result_crd, task_crd
from mcptasks_crds.names import task_name
from mcptasks_crds.task import TaskSpec

Object = dict[str, Any]


def allows(rule: rules.Rule, old: Object, new: Object) -> bool:
    answer = cel.evaluate(rule["rule"], {"self": new, "oldSelf": old})
    assert isinstance(answer, bool)
    return answer


def task(state: State | None, **status: Any) -> Object:
    return {"metadata": {}, "status": {**({} if state is None else {"state": str(state)}), **status}}


@pytest.mark.req("R-3.2")
@pytest.mark.parametrize(("old", "new"), list(itertools.product(State, State)))
def test_the_lifecycle_rule_says_what_the_table_says(old: State, new: State) -> None:
    assert allows(rules.lifecycle(), task(old), task(new)) is may_move(old, new)


@pytest.mark.req("R-3.1", "R-3.2")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("stateless", [{"metadata": {}}, {"metadata": {}, "status": {}}])
def test_a_task_without_a_state_counts_as_submitted(state: State, stateless: Object) -> None:
    rule = rules.lifecycle()
    assert allows(rule, stateless, task(state)), "submitted may become anything"
    assert allows(rule, task(state), stateless) is may_move(state, State.SUBMITTED)


def test_the_refusal_names_both_states() -> None:
    said = cel.evaluate(
        rules.lifecycle()["messageExpression"], {"self": task(State.WORKING), "oldSelf": task(State.COMPLETED)}
    )
    assert said == "a task that is completed cannot become working"


@pytest.mark.fault("P16")
@pytest.mark.parametrize("state", State)
def test_completed_needs_a_result_and_no_other_state_does(state: State) -> None:
    rule = rules.completed_has_result()
    assert allows(rule, {}, task(state)) is (state is not State.COMPLETED)
    assert allows(rule, {}, task(state, result={"sha256": "0"}))
    assert allows(rule, {}, {"metadata": {}})


ENDED = [state for state in State if state.terminal]
OPEN = [state for state in State if not state.terminal]
FIELD_CHANGES: list[tuple[Object, Object]] = [({"x": "a"}, {"x": "b"}), ({"x": "a"}, {}), ({}, {"x": "a"})]


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize(("old", "new"), FIELD_CHANGES)
def test_a_field_kept_at_the_end_cannot_be_changed_removed_or_added_then(
    state: State, old: Object, new: Object
) -> None:
    rule = rules.kept_at_end("x")
    assert not allows(rule, task(state, **old), task(state, **new))
    assert allows(rule, task(state, **old), task(state, **old))


@pytest.mark.parametrize("state", ENDED)
def test_a_field_kept_at_the_end_does_not_go_with_the_whole_status(state: State) -> None:
    assert not allows(rules.kept_at_end("x"), task(state, x="a"), {"metadata": {}})


@pytest.mark.parametrize("state", [None, *OPEN])
@pytest.mark.parametrize(("old", "new"), FIELD_CHANGES)
def test_a_field_kept_at_the_end_is_free_before_it(state: State | None, old: Object, new: Object) -> None:
    assert allows(rules.kept_at_end("x"), task(state, **old), task(State.COMPLETED, **new))


@pytest.mark.parametrize(("old", "new"), FIELD_CHANGES)
def test_an_immutable_field_cannot_be_changed_removed_or_added(old: Object, new: Object) -> None:
    rule = rules.immutable("x")
    assert not allows(rule, old, new)
    assert allows(rule, old, old)
    assert allows(rule, {}, {})


def test_a_field_set_once_may_be_added_and_then_stays() -> None:
    rule = rules.set_once("x")
    assert allows(rule, {}, {})
    assert allows(rule, {}, {"x": {}})
    assert allows(rule, {"x": {}}, {"x": {}})
    assert not allows(rule, {"x": {}}, {})
    assert not allows(rule, {"x": {}}, {"x": {"reason": "r"}})


@pytest.mark.parametrize(
    ("name", "derived"),
    [
        (task_name("", "a"), True),
        ("t-" + "0" * 39, False),
        ("t-" + "g" * 40, False),
        ("x" + task_name("", "a"), False),
        (task_name("", "a") + "-2", False),
        ("my-task", False),
    ],
)
def test_a_task_has_a_name_of_the_derived_form_if_and_only_if_it_has_an_id(name: str, derived: bool) -> None:
    rule, meta = rules.derived_name(), {"name": name}
    assert allows(rule, {}, {"metadata": meta, "spec": {"taskId": "a"}}) is derived
    assert allows(rule, {}, {"metadata": meta, "spec": {}}) is not derived


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"request": {"name": "t"}}, True),
        ({"request": {"name": "t"}, "owner": {}, "createdAt": "2026-07-28T12:00:00Z", "parent": "p"}, True),
        ({"owner": {"subject": "alice"}}, False),
        ({"owner": {"issuer": "i"}}, False),
        ({"owner": {"session": "s"}}, False),
        ({"origin": "sep-1686"}, False),
        ({"plain": True}, False),
        ({"call": "a.b"}, False),
        ({"taskId": "a", "owner": {"subject": "alice"}, "origin": "sep-1686", "plain": True, "call": "a.b"}, True),
    ],
)
def test_a_task_without_an_id_belongs_to_nobody(spec: Object, allowed: bool) -> None:
    assert (
        allows(rules.made_by_hand(["issuer", "subject", "session"], ["origin", "plain", "call"]), {}, spec) is allowed
    )


def test_a_name_fits_a_label() -> None:
    assert allows(rules.short_name(), {}, {"metadata": {"name": "x" * 63}})
    assert not allows(rules.short_name(), {}, {"metadata": {"name": "x" * 64}})


def test_every_field_of_a_spec_but_cancel_and_retention_is_immutable_and_cancel_is_set_once() -> None:
    spec = task_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = {field.alias for field in TaskSpec.model_fields.values()}
    *of_fields, by_hand = spec["x-kubernetes-validations"]
    assert by_hand == rules.made_by_hand(["issuer", "subject", "session"], ["origin", "plain", "call"])
    said = {rule["fieldPath"]: rule for rule in of_fields}
    assert set(spec["properties"]) == fields
    assert set(said) == {f".{name}" for name in fields if name != "retention"}
    for name in fields - {"retention", "cancel"}:
        assert said[f".{name}"] == rules.immutable(str(name))
    assert said[".cancel"] == rules.set_once("cancel")


def test_a_whole_life_passes_all_rules_of_the_crd_together() -> None:
    schema = task_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    name = {"name": task_name("", "a")}
    result = {"name": "r", "sha256": "0"}
    end = {"state": "completed", "result": result, "finishedAt": "2026-07-28T12:00:00Z"}
    life: list[Object] = [
        {"metadata": name, "spec": {"taskId": "a"}},
        {"metadata": name, "spec": {"taskId": "a"}, "status": {"state": "working"}},
        {"metadata": name, "spec": {"taskId": "a"}, "status": {"state": "input_required"}},
        {"metadata": name, "spec": {"taskId": "a"}, "status": {"state": "working", "progress": {"progress": 1}}},
        {"metadata": name, "spec": {"taskId": "a"}, "status": end},
        {"metadata": name, "spec": {"taskId": "a", "cancel": {}}, "status": {**end, "expiresAt": "2030-01-01T00:00Z"}},
    ]
    for old, new in itertools.pairwise(life):
        assert all(allows(rule, old, new) for rule in schema["x-kubernetes-validations"])
        spec_rules = schema["properties"]["spec"]["x-kubernetes-validations"]
        assert all(allows(rule, old["spec"], new["spec"]) for rule in spec_rules)


def test_a_result_is_immutable_as_a_whole() -> None:
    (rule,) = result_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    assert allows(rule, {"spec": {"result": "{}"}}, {"spec": {"result": "{}"}})
    assert not allows(rule, {"spec": {"result": "{}"}}, {"spec": {"result": "[]"}})
    assert not allows(rule, {"spec": {"result": "{}"}}, {})
