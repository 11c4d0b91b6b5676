import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import CRDS, LEASES, Objects
from mcptasks_local.storage import Storage
from tests.unit.local.widgets import DEFINITION, job_spec, new_objects, widget

NOW = datetime(2026, 12, 1, 10, 0, 0, tzinfo=UTC)
MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"


@pytest.fixture
def objects() -> Objects:
    return new_objects()


def refused(code: int, reason: str, match: str = "") -> Any:
    return pytest.raises(ApiError, match=re.escape(match) or None, check=lambda e: (e.code, e.reason) == (code, reason))


def make(objects: Objects, name: str = "a", **more: Any) -> Object:
    return objects.create(objects.resource("widgets.example.dev"), "default", widget(name, **more))


def patch(objects: Objects, body: Any, name: str = "a", **more: Any) -> Object:
    return objects.patch(objects.resource("widgets.example.dev"), "default", name, body, **more)


def delete(objects: Objects, name: str = "a", **more: Any) -> Object:
    return objects.delete(objects.resource("widgets.example.dev"), "default", name, **more)


def held(objects: Objects, name: str = "a") -> bool:
    return objects.holds(objects.resource("widgets.example.dev"), "default", name)


def test_the_server_names_dates_and_counts_a_new_object() -> None:
    storage = Storage(None)
    objects = Objects(storage, lambda: NOW)
    objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "default"}})
    objects.create(objects.resource(CRDS), "", DEFINITION)
    forged = {"uid": "mine", "creationTimestamp": "1999-01-01T00:00:00Z", "generation": 9, "name": "a"}
    meta = make(objects, metadata=forged)["metadata"]
    assert meta["creationTimestamp"] == "2026-12-01T10:00:00Z"
    assert (meta["generation"], meta["namespace"]) == (1, "default")
    assert len(meta["uid"]) == 36
    assert int(meta["resourceVersion"]) == objects.revision


def test_a_create_drops_the_status_of_a_kind_that_has_the_subresource(objects: Objects) -> None:
    assert "status" not in make(objects, status={"state": "busy"})


def test_unknown_fields_are_dropped_with_a_warning_or_refused(objects: Objects) -> None:
    item = widget(spec={"owner": "ann", "bogus": 1}, extra=1)
    item["metadata"]["odd"] = 1
    kind = objects.resource("widgets.example.dev")
    with refused(400, "BadRequest", 'strict decoding error: unknown field "extra", unknown field "metadata.odd"'):
        objects.create(kind, "default", item, strict=True)
    stored = objects.create(kind, "default", item)
    assert stored["spec"] == {"owner": "ann", "size": 3}
    assert objects.warnings == ["extra", "metadata.odd", "spec.bogus"]
    make(objects, "b")
    assert objects.warnings == []
    with refused(422, "Invalid", 'unknown field "spec.bogus"'):
        patch(objects, {"spec": {"bogus": 1}}, strict=True)


def test_dry_runs_check_and_store_nothing(objects: Objects) -> None:
    kind, before = objects.resource("widgets.example.dev"), objects.revision
    assert objects.create(kind, "default", widget(), dry_run=True)["metadata"]["uid"]
    with refused(422, "Invalid"):
        objects.create(kind, "default", widget(spec={}), dry_run=True)
    make(objects, "b")
    assert patch(objects, {"spec": {"size": 5}}, "b", dry_run=True)["spec"]["size"] == 5
    delete(objects, "b", dry_run=True)
    assert objects.get(kind, "default", "b")["spec"]["size"] == 3
    assert objects.revision == before + 1


def test_generated_names_differ(objects: Objects) -> None:
    names = {make(objects, metadata={"generateName": "g-"})["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch(r"g-[a-z0-9]{5}", name) for name in names)


def test_what_a_create_refuses(objects: Objects) -> None:
    kind = objects.resource("widgets.example.dev")
    make(objects)
    with refused(409, "AlreadyExists", 'widgets.example.dev "a" already exists'):
        make(objects)
    with refused(404, "NotFound", 'namespaces "nope" not found'):
        objects.create(kind, "nope", widget())
    with refused(400, "BadRequest", "does not match the namespace sent on the request"):
        make(objects, metadata={"name": "c", "namespace": "other"})
    with refused(422, "Invalid", 'kind: Invalid value: "Foo": must be Widget'):
        objects.create(kind, "default", widget("c") | {"kind": "Foo"})
    with refused(
        400, "BadRequest", "the API version in the data (v1) does not match the expected API version (example"
    ):
        objects.create(kind, "default", widget("c") | {"apiVersion": "v1"})
    with refused(500, "", "resourceVersion should not be set"):
        make(objects, metadata={"name": "c", "resourceVersion": "5"})
    with refused(422, "Invalid", "name or generateName is required"):
        make(objects, metadata={})
    with refused(500, "", "request is too large"):
        make(objects, "c", spec={"owner": "ann", "free": {"x": "<" * 300_000}})
    make(objects, "c", spec={"owner": "ann", "free": {"x": "a" * 300_000}})


def test_faults_that_keep_rules_from_running_say_so(objects: Objects) -> None:
    with pytest.raises(ApiError) as told:
        make(objects, spec={})
    causes = told.value.status()["details"]["causes"]
    assert [cause["reason"] for cause in causes] == ["FieldValueRequired", "FieldValueInvalid"]
    assert "some validation rules were not checked" in causes[1]["message"]
    with pytest.raises(ApiError) as told:
        make(objects, spec={"owner": "ann", "size": 11})
    assert [c["message"] for c in told.value.status()["details"]["causes"]] == [
        "Invalid value: 11: spec.size in body should be less than or equal to 10",
        "Invalid value: too big",
    ]


def test_status_and_spec_are_written_apart(objects: Objects) -> None:
    make(objects)
    both = {"status": {"state": "busy"}, "spec": {"size": 5}, "metadata": {"labels": {"x": "y"}}}
    one = patch(objects, both, subresource="status")
    assert (one["spec"]["size"], one["status"], one["metadata"]["generation"]) == (3, {"state": "busy"}, 1)
    assert "labels" not in one["metadata"]
    two = patch(objects, both | {"status": {"state": "done"}})
    assert (two["spec"]["size"], two["status"], two["metadata"]["generation"]) == (5, {"state": "busy"}, 2)
    assert two["metadata"]["labels"] == {"x": "y"}


def test_a_write_that_changes_nothing_makes_no_revision(objects: Objects) -> None:
    make(objects)
    before = objects.revision
    patch(objects, {"spec": {"size": 3}})
    assert objects.revision == before


def test_illegal_moves_are_422_whoever_asks(objects: Objects) -> None:
    make(objects)
    patch(objects, {"status": {"state": "done"}}, subresource="status")
    for body in ({"status": {"state": "busy"}}, {"status": None}):
        with refused(422, "Invalid", "a widget that is done cannot become"):
            patch(objects, body, subresource="status")
    patch(objects, {"metadata": {"labels": {"late": "yes"}}})


def test_a_stale_revision_is_a_conflict(objects: Objects) -> None:
    stale = make(objects)
    kind = objects.resource("widgets.example.dev")
    fresh = patch(objects, {"spec": {"size": 4}})
    said = "the object has been modified; please apply your changes to the latest version"
    with refused(409, "Conflict", said):
        objects.replace(kind, "default", "a", stale)
    with refused(409, "Conflict", said):
        patch(objects, {"metadata": {"resourceVersion": stale["metadata"]["resourceVersion"]}})
    assert objects.replace(kind, "default", "a", fresh | {"spec": {"owner": "ann", "size": 6}})["spec"]["size"] == 6


def test_what_a_replace_must_name(objects: Objects) -> None:
    kind, there = objects.resource("widgets.example.dev"), make(objects)
    with refused(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update"):
        objects.replace(kind, "default", "a", widget())
    with refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"):
        objects.replace(kind, "default", "a", widget("b"))
    with refused(404, "NotFound"):
        objects.replace(kind, "default", "zz", widget("zz") | {"metadata": {"name": "zz", "resourceVersion": "1"}})
    with refused(409, "Conflict", "UID in precondition: zz"):
        objects.replace(kind, "default", "a", there | {"metadata": there["metadata"] | {"uid": "zz"}})
    with refused(422, "Invalid", 'metadata.uid: Invalid value: "1": field is immutable'):
        patch(objects, {"metadata": {"uid": "1"}})
    with refused(400, "BadRequest", "(q) does not match"):
        patch(objects, {"metadata": {"name": "q"}})


def test_a_put_creates_a_lease_and_needs_no_revision(objects: Objects) -> None:
    kind, lease = objects.resource(LEASES), {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}}
    first = objects.replace(kind, "default", "l", lease)
    second = objects.replace(kind, "default", "l", first | {"spec": {"holderIdentity": "y"}})
    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    with refused(409, "Conflict"):
        objects.replace(kind, "default", "l", first)


def test_a_failed_json_patch_is_422_without_causes(objects: Objects) -> None:
    make(objects)
    for operation in ({"op": "test", "path": "/spec/size", "value": 1}, {"op": "remove", "path": "/spec/nope"}):
        with pytest.raises(ApiError) as told:
            patch(objects, [operation], content_type=JSON)
        assert (told.value.code, told.value.details) == (422, {})
    replaced = patch(objects, [{"op": "replace", "path": "/spec/size", "value": 6}], content_type=JSON)
    assert replaced["spec"]["size"] == 6


def test_server_side_apply_creates_and_takes_back(objects: Objects) -> None:
    apply = {"content_type": "application/apply-patch+yaml", "manager": "me"}
    patch(objects, widget(spec={"owner": "ann", "size": 5, "labels": {"a": "1"}}), **apply)
    changed = patch(objects, widget(spec={"owner": "ann", "labels": {"b": "1"}}), **apply)
    assert changed["spec"] == {"owner": "ann", "size": 3, "labels": {"b": "1"}}  # the default is back
    before = objects.revision
    assert patch(objects, widget(spec={"owner": "ann", "labels": {"b": "1"}}), **apply) == changed
    assert objects.revision == before
    with refused(409, "Conflict", 'Apply failed with 1 conflict: conflict with "me": .spec.labels.b'):
        patch(objects, widget(spec={"owner": "ann", "labels": {"b": "2"}}), **(apply | {"manager": "you"}))
    with refused(500, "", ".spec.bogus: field not declared in schema"):
        patch(objects, widget(spec={"owner": "ann", "bogus": 1}), **apply)
    with refused(400, "BadRequest"):
        patch(objects, [1], **apply)
    kept = patch(objects, {"spec": {"size": 4}})
    assert kept["metadata"]["managedFields"] == changed["metadata"]["managedFields"]


def test_preconditions_of_a_delete(objects: Objects) -> None:
    make(objects)
    with refused(409, "Conflict", "the UID in the precondition (zz) does not match the UID in record"):
        delete(objects, uid="zz")
    with refused(409, "Conflict", "the ResourceVersion in the precondition (1) does not match"):
        delete(objects, resource_version="1")
    meta = objects.get(objects.resource("widgets.example.dev"), "default", "a")["metadata"]
    delete(objects, uid=meta["uid"], resource_version=meta["resourceVersion"])
    with refused(404, "NotFound", 'widgets.example.dev "a" not found'):
        delete(objects)


async def test_finalizers_hold_an_object_until_they_are_gone(objects: Objects) -> None:
    make(objects, metadata={"name": "a", "finalizers": ["x.io/y"]})
    events = objects.watch(objects.resource("widgets.example.dev"))
    marked = delete(objects)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    assert delete(objects) == marked
    with refused(422, "Invalid", 'found new finalizers []string{"x.io/z"}'):
        patch(objects, {"metadata": {"finalizers": ["x.io/y", "x.io/z"]}})
    patch(objects, {"metadata": {"finalizers": []}})
    assert not held(objects)
    assert [(await anext(events)).type for _ in range(3)] == ["MODIFIED", "MODIFIED", "DELETED"]


def test_a_held_pod_gets_its_grace_and_goes_at_once_without(objects: Objects) -> None:
    objects = Objects(Storage(None), lambda: NOW)
    objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "default"}})
    pods = objects.resource("pods")
    objects.grace = lambda resource, item: 30 if resource.id == "pods" else None
    objects.create(pods, "default", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    meta = objects.delete(pods, "default", "p")["metadata"]
    # Kubernetes writes when the grace will be over, not when it began.
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-12-01T10:00:30Z", 30)
    longer = objects.delete(pods, "default", "p", grace_seconds=60)["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 30
    shorter = objects.delete(pods, "default", "p", grace_seconds=5)["metadata"]
    assert (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"]) == ("2026-12-01T10:00:05Z", 5)
    objects.delete(pods, "default", "p", grace_seconds=0)
    assert not objects.holds(pods, "default", "p")


def owned(objects: Objects, name: str, owner: Object) -> Object:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    meta = {"name": name, "ownerReferences": [reference | {"uid": owner["metadata"]["uid"]}]}
    return objects.create(objects.resource("configmaps"), "default", {"metadata": meta})


@pytest.mark.parametrize(("policy", "orphaned"), [(None, True), ("Orphan", True), ("Background", False)])
def test_a_job_deleted_without_a_word_orphans_what_it_owns(objects: Objects, policy: str, orphaned: bool) -> None:
    jobs = objects.resource("jobs.batch")
    job = objects.create(jobs, "default", {"metadata": {"name": "j"}, "spec": job_spec()})
    owned(objects, "m", job)
    objects.delete(jobs, "default", "j", propagation=policy)
    meta = objects.get(objects.resource("configmaps"), "default", "m")["metadata"]
    assert ("ownerReferences" not in meta) == orphaned


def test_a_foreground_delete_takes_the_dependents_first(objects: Objects) -> None:
    parent = make(objects)
    owned(objects, "m", owned(objects, "n", parent))
    delete(objects, propagation="Foreground")
    assert objects.list(objects.resource("configmaps"))[0] == []
    assert not held(objects)


def test_a_namespace_goes_with_all_that_is_in_it(objects: Objects) -> None:
    spaces, maps = objects.resource("namespaces"), objects.resource("configmaps")
    objects.create(spaces, "", {"metadata": {"name": "n"}})
    assert objects.holds(objects.resource("serviceaccounts"), "n", "default")
    objects.create(maps, "n", {"metadata": {"name": "m", "finalizers": ["x.io/y"]}})
    assert objects.delete(spaces, "", "n")["status"]["phase"] == "Terminating"
    assert objects.holds(spaces, "", "n")
    with refused(403, "Forbidden", "because it is being terminated"):
        objects.create(maps, "n", {"metadata": {"name": "late"}})
    objects.patch(maps, "n", "m", {"metadata": {"finalizers": None}})
    assert not objects.holds(spaces, "", "n")
    with refused(403, "Forbidden", "this namespace may not be deleted"):
        objects.delete(spaces, "", "default")


def test_kinds_come_and_go_with_their_definition(objects: Objects) -> None:
    definition = objects.get(objects.resource(CRDS), "", "widgets.example.dev")
    assert {c["type"]: c["status"] for c in definition["status"]["conditions"]} == {
        "NamesAccepted": "True", "Established": "True"}  # fmt: skip
    make(objects)
    assert objects.served("example.dev", "v1", "widgets") is not None
    assert objects.served("example.dev", "v2", "widgets") is None
    objects.delete(objects.resource(CRDS), "", "widgets.example.dev")
    assert objects.served("example.dev", "v1", "widgets") is None
    with refused(404, "NotFound"):
        objects.resource("widgets.example.dev")
    objects.create(objects.resource(CRDS), "", DEFINITION)
    assert objects.list(objects.resource("widgets.example.dev"))[0] == []


def test_kinds_are_there_again_after_a_restart() -> None:
    storage = Storage(None)
    make(new_objects(storage))
    assert held(Objects(storage))


def test_a_definition_with_a_rule_that_is_not_cel_is_refused(objects: Objects) -> None:
    broken = {"type": "object", "x-kubernetes-validations": [{"rule": "self +"}]}
    with refused(400, "BadRequest", "is not CEL"):
        objects.patch(
            objects.resource(CRDS), "", "widgets.example.dev",
            [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": broken}], content_type=JSON,
        )  # fmt: skip


def test_ensure_makes_or_mends(objects: Objects) -> None:
    first = objects.ensure("configmaps", "default", {"metadata": {"name": "m"}, "data": {"a": "1"}})
    again = objects.ensure("configmaps", "default", {"metadata": {"name": "m"}, "data": {"a": "2"}})
    assert first["metadata"]["uid"] == again["metadata"]["uid"]
    assert again["data"] == {"a": "2"}


async def test_a_watch_of_a_namespace_passes_over_the_others(objects: Objects) -> None:
    maps = objects.resource("configmaps")
    objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "n"}})
    events = objects.watch(maps, "n")
    for place in ("default", "n"):
        objects.create(maps, place, {"metadata": {"name": "m"}})
    assert (await anext(events)).object["metadata"]["namespace"] == "n"


def test_what_is_handed_out_is_not_what_came_in(objects: Objects) -> None:
    item = widget(spec={"owner": "ann", "free": {"x": [1]}})
    objects.create(objects.resource("widgets.example.dev"), "default", item)
    item["spec"]["free"]["x"].append(2)
    assert objects.get(objects.resource("widgets.example.dev"), "default", "a")["spec"]["free"]["x"] == [1]


def test_the_clock_is_asked_each_time() -> None:
    times = iter([NOW, NOW + timedelta(hours=1)])
    objects = Objects(Storage(None), lambda: next(times))
    assert [objects.now(), objects.now()] == ["2026-12-01T10:00:00Z", "2026-12-01T11:00:00Z"]
