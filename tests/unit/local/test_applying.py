from typing import Any

import pytest

from mcptasks_local.applying import applied
from mcptasks_local.errors import ApiError, Object
from tests.unit.local.widgets import SCHEMA, widget


def put(live: Object | None, spec: Any, manager: str = "me", *, force: bool = False, meta: Any = None) -> Object:
    config = widget(spec=spec)
    config["metadata"] |= meta or {}
    return applied(live, config, schema=SCHEMA, manager=manager, force=force, now="2026-12-01T10:00:00Z")


def owners(item: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in item["metadata"]["managedFields"]}


def test_fields_are_owned_and_go_when_they_are_no_longer_sent() -> None:
    one = put(None, {"owner": "ann", "size": 5, "free": {"x": 1}})
    assert owners(one) == {"me": {"f:spec": {"f:owner": {}, "f:size": {}, "f:free": {"f:x": {}}}}}
    two = put(one, {"owner": "ann"})
    assert two["spec"] == {"owner": "ann"}


def test_what_nobody_applied_stays() -> None:
    one = put(None, {"owner": "ann"})
    one["spec"]["size"] = 7
    one["metadata"]["labels"] = {"a": "b"}
    two = put(one, {"owner": "ann", "mode": "a"}, meta={"labels": {"c": "d"}})
    assert two["spec"] == {"owner": "ann", "size": 7, "mode": "a"}
    assert put(two, {"owner": "ann"})["metadata"]["labels"] == {"a": "b"}


def test_a_shared_field_stays_until_the_last_owner_leaves_it() -> None:
    one = put(put(None, {"owner": "ann", "size": 5}), {"owner": "ann", "size": 5}, "you")
    two = put(one, {"owner": "ann"})
    assert two["spec"]["size"] == 5
    assert "size" not in put(two, {"owner": "ann"}, "you")["spec"]


def test_another_value_is_a_conflict_unless_forced() -> None:
    one = put(None, {"owner": "ann", "size": 5, "mode": "a"})
    with pytest.raises(ApiError) as told:
        put(one, {"size": 6, "mode": "b"}, "you")
    assert (told.value.code, told.value.message) == (409, 'Apply failed with 2 conflicts: conflict with "me": '
        '.spec.mode, conflict with "me": .spec.size')  # fmt: skip
    assert told.value.details is not None
    assert told.value.details["causes"][0]["reason"] == "FieldManagerConflict"
    two = put(one, {"size": 6}, "you", force=True)
    assert two["spec"]["size"] == 6
    assert owners(two)["me"] == {"f:spec": {"f:mode": {}, "f:owner": {}}}


def test_entries_of_keyed_lists_are_owned_one_by_one() -> None:
    one = put(None, {"parts": [{"name": "x", "n": 1}]})
    two = put(one, {"parts": [{"name": "y", "n": 2}, {"name": "x", "note": "hi"}]}, "you")
    assert two["spec"]["parts"] == [{"name": "x", "n": 1, "note": "hi"}, {"name": "y", "n": 2}]
    three = put(two, {"parts": []}, "you")
    assert three["spec"]["parts"] == [{"name": "x", "n": 1}]
    with pytest.raises(ApiError, match=r'\.spec\.parts\[name="x"\]\.n'):
        put(three, {"parts": [{"name": "x", "n": 3}]}, "you")


def test_other_lists_are_owned_as_one() -> None:
    one = put(None, {"tags": ["a", "b"]})
    assert put(one, {"tags": ["c"]})["spec"]["tags"] == ["c"]


def test_built_in_lists_have_known_keys() -> None:
    def pod(*containers: Object) -> Object:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": list(containers)}}

    def put_pod(live: Object | None, *containers: Object) -> Object:
        return applied(live, pod(*containers), schema=None, manager="me", force=False, now="")

    one = put_pod(None, {"name": "a", "image": "1"}, {"name": "b", "image": "1"})
    one["spec"]["containers"][0]["resources"] = {"limits": {}}
    two = put_pod(one, {"name": "a", "image": "2"})
    assert two["spec"]["containers"] == [{"name": "a", "image": "2", "resources": {"limits": {}}}]


def test_a_revision_in_the_configuration_is_kept_as_a_guard() -> None:
    assert put(None, {"owner": "ann"}, meta={"resourceVersion": "7"})["metadata"]["resourceVersion"] == "7"
