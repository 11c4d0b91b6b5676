from typing import Any

import pytest

from mcptasks_local import metadata
from mcptasks_local.errors import ApiError
from mcptasks_local.objects import Objects
from mcptasks_local.storage import Storage

OBJECTS = Objects(Storage(None))
PODS = OBJECTS.resource("pods")


def fields(resource: str = "pods", **meta: Any) -> list[str]:
    found = metadata.faults(OBJECTS.resource(resource), {"name": "x", **meta})
    return [cause.field.removeprefix("metadata.") for cause in found]


@pytest.mark.parametrize("name", ["a", "a-b.c", "0", "a" * 253])
def test_names_that_are_taken(name: str) -> None:
    assert fields(name=name) == []


@pytest.mark.parametrize("name", ["", "B_x", "-a", "a-", "a..b", "a/b", "a" * 254, "ä"])
def test_names_that_are_refused(name: str) -> None:
    assert fields(name=name) == ["name"]


def test_names_of_roles_and_namespaces_have_rules_of_their_own() -> None:
    assert fields("roles.rbac.authorization.k8s.io", name="system:node X") == []
    assert fields("roles.rbac.authorization.k8s.io", name="a/b") == ["name"]
    assert fields("namespaces", name="a.b") == ["name"]
    assert fields("namespaces", name="a" * 64) == ["name"]


@pytest.mark.parametrize(
    ("labels", "faults"),
    [({"a": ""}, 0), ({"example.dev/a_b.c": "X-1"}, 0), ({"a b": "c"}, 1), ({"x": "y z"}, 1), ({"x": "y" * 64}, 1),
     ({"A.b/x": "1"}, 1), ({"k" * 64: "1"}, 1), ({"a/": "1"}, 1)],
)  # fmt: skip
def test_labels(labels: dict[str, str], faults: int) -> None:
    assert fields(labels=labels) == ["labels"] * faults


def test_annotations_are_limited_in_size_not_in_form() -> None:
    assert fields(annotations={"x": "any\n text " * 100}) == []
    assert fields(annotations={"x": "a" * metadata.ANNOTATIONS_LIMIT}) == ["annotations"]
    assert fields(annotations={"no good": ""}) == ["annotations"]


def test_owner_references_must_be_whole_and_one_the_controller() -> None:
    whole = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    assert fields(ownerReferences=[whole]) == []
    assert fields(ownerReferences=[{"name": "x"}]) == [
        "ownerReferences.apiVersion", "ownerReferences.kind", "ownerReferences.uid"]  # fmt: skip
    assert fields(ownerReferences=[whole, whole]) == ["ownerReferences"]


def test_finalizers_are_qualified_names() -> None:
    assert fields(finalizers=["x.io/y"]) == []
    assert fields(finalizers=["not good"]) == ["finalizers"]


@pytest.mark.parametrize(
    "meta", ["text", {"labels": {"a": 5}}, {"annotations": []}, {"name": 7}, {"finalizers": "x"}, {"labels": {"a": {}}}]
)
def test_wrong_types_are_400(meta: Any) -> None:
    with pytest.raises(ApiError) as told:
        metadata.read({"metadata": meta})
    assert told.value.code == 400


def test_empty_and_unknown_parts_are_left_out() -> None:
    item: dict[str, Any] = {
        "metadata": {"name": "x", "labels": {}, "finalizers": None, "odd": 1, "annotations": {"a": None}}
    }
    kept, dropped = metadata.read(item)
    assert kept == item["metadata"] == {"name": "x", "annotations": {"a": ""}}
    assert dropped == ["metadata.odd"]


def test_generated_names_keep_within_the_limit() -> None:
    assert len(metadata.generate("a" * 80)) == 63
