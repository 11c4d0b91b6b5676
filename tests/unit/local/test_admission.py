import base64
import re
from typing import Any

import pytest

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import CRDS, LEASES, Objects
from tests.unit.local.widgets import DEFINITION, job_spec, new_objects


@pytest.fixture(scope="module")
def objects() -> Objects:
    return new_objects()


def dry(objects: Objects, kind: str, name: str = "x", **body: Any) -> Object:
    """A dry-run create."""
    resource = objects.resource(kind)
    return objects.create(resource, "default", {"metadata": {"name": name}, **body}, dry_run=True)


def container(**more: Any) -> Object:
    return {"name": "c", "image": "busybox", **more}


def causes(error: ApiError) -> list[tuple[str, str]]:
    return [(cause["field"], cause["reason"]) for cause in error.status()["details"]["causes"]]


def test_a_pod_gets_its_defaults(objects: Objects) -> None:
    pod = dry(
        objects,
        "pods",
        spec={"containers": [container(ports=[{"containerPort": 1}]), container(name="d", image="a:1")]},
    )
    spec = pod["spec"]
    assert (spec["restartPolicy"], spec["serviceAccountName"], spec["terminationGracePeriodSeconds"]) == (
        "Always", "default", 30)  # fmt: skip
    assert [c["imagePullPolicy"] for c in spec["containers"]] == ["Always", "IfNotPresent"]
    assert spec["containers"][0]["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert pod["status"]["phase"] == "Pending"


def test_a_pod_without_its_service_account_is_forbidden(objects: Objects) -> None:
    with pytest.raises(ApiError) as told:
        dry(objects, "pods", "p", spec={"serviceAccountName": "nope", "containers": [container()]})
    assert (told.value.code, told.value.message) == (403, 'pods "p" is forbidden: error looking up service account '
        'default/nope: serviceaccount "nope" not found')  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [("spec.containers", "FieldValueRequired")]),
        ({"containers": [{"name": "c"}, container(name="C_")]},
         [("spec.containers[0].image", "FieldValueRequired"), ("spec.containers[1].name", "FieldValueInvalid")]),
        ({"containers": [container(), container()]}, [("spec.containers[1].name", "FieldValueDuplicate")]),
        ({"containers": [{"image": "x"}]}, [("spec.containers[0].name", "FieldValueRequired")]),
        ({"restartPolicy": "Zork", "volumes": [{"name": "v"}],
          "containers": [container(env=[{"name": ""}], volumeMounts=[{"name": "q"}, {"name": "v"}])]},
         [("spec.containers[0].env[0].name", "FieldValueRequired"),
          ("spec.containers[0].volumeMounts[0].name", "FieldValueNotFound"),
          ("spec.restartPolicy", "FieldValueNotSupported")]),
    ],
)  # fmt: skip
def test_pods_that_are_refused(objects: Objects, spec: Any, expected: Any) -> None:
    with pytest.raises(ApiError) as told:
        dry(objects, "pods", spec=spec)
    assert causes(told.value) == expected


def test_a_running_pod_cannot_become_another(objects: Objects) -> None:
    pods = objects.resource("pods")
    objects.create(pods, "default", {"metadata": {"name": "p"}, "spec": {"containers": [container()]}})
    with pytest.raises(ApiError, match="pod updates may not change fields other than"):
        objects.patch(pods, "default", "p", {"spec": {"nodeName": "elsewhere"}})
    assert objects.patch(pods, "default", "p", {"spec": {"activeDeadlineSeconds": 5}})["metadata"]["generation"] == 2
    written = objects.patch(
        pods, "default", "p", {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}, subresource="status"
    )
    assert (written["status"]["phase"], written["metadata"]["labels"]) == ("Running", {"a": "b"})


def test_a_job_gets_labels_selector_and_defaults(objects: Objects) -> None:
    job = dry(objects, "jobs.batch", "j", spec=job_spec())
    uid = job["metadata"]["uid"]
    assert job["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"
    assert job["spec"]["template"]["metadata"]["labels"]["controller-uid"] == uid
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert (job["spec"]["backoffLimit"], job["spec"]["completions"], job["spec"]["suspend"]) == (6, 1, False)


@pytest.mark.parametrize(
    ("name", "spec", "field"),
    [
        ("j" * 64, job_spec(), "spec.template.labels"),
        ("j", {}, "spec.template.spec.containers"),
        ("j", job_spec(backoffLimit=-1), "spec.backoffLimit"),
        ("j", {"template": {"spec": {"containers": [container()]}}}, "spec.template.spec.restartPolicy"),
        (
            "j",
            {"template": {"spec": {"restartPolicy": "Z", "containers": [container()]}}},
            "spec.template.spec.restartPolicy",
        ),
    ],
)
def test_jobs_that_are_refused(objects: Objects, name: str, spec: Any, field: str) -> None:
    with pytest.raises(ApiError) as told:
        dry(objects, "jobs.batch", name, spec=spec)
    assert told.value.code == 422
    assert field in [cause[0] for cause in causes(told.value)]


def test_what_a_job_is_made_of_stays(objects: Objects) -> None:
    jobs = objects.resource("jobs.batch")
    objects.create(jobs, "default", {"metadata": {"name": "j"}, "spec": job_spec()})
    with pytest.raises(ApiError, match=r"spec\.completions: Invalid value: 3: field is immutable"):
        objects.patch(jobs, "default", "j", {"spec": {"completions": 3}})
    image = {"spec": {"template": {"spec": {"containers": [container(image="y")]}}}}
    with pytest.raises(ApiError, match=r"spec\.template: Invalid value"):
        objects.patch(jobs, "default", "j", image)
    assert objects.patch(jobs, "default", "j", {"spec": {"suspend": True}})["metadata"]["generation"] == 2
    objects.patch(jobs, "default", "j", image)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("jobs.batch", {"spec": job_spec(ttlSecondsAfterFinished="x")}),
        ("jobs.batch", {"spec": "text"}),
        ("jobs.batch", {"spec": {"template": "text"}}),
        ("pods", {"spec": {"containers": ["c"]}}),
        ("configmaps", {"data": {"c": 5}}),
        ("secrets", {"data": "x"}),
        ("secrets", {"data": {"c": "!!"}}),
        ("secrets", {"data": {"c": 5}}),
        ("secrets", {"stringData": {"c": 5}}),
        (LEASES, {"spec": {"renewTime": "2026-01-01T00:00:00Z"}}),
        (LEASES, {"spec": {"leaseDurationSeconds": "15"}}),
    ],
)
def test_wrong_types_are_400(objects: Objects, kind: str, body: Any) -> None:
    with pytest.raises(ApiError, match="cannot be handled as a") as told:
        dry(objects, kind, **body)
    assert told.value.code == 400


def test_a_secret_takes_texts_and_keeps_its_type(objects: Objects) -> None:
    secrets = objects.resource("secrets")
    made = objects.create(
        secrets, "default", {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
    )
    assert (made["data"], made["type"], "stringData" in made) == ({"a": "Yg==", "c": "ZA=="}, "Opaque", False)
    with pytest.raises(ApiError, match='type: Invalid value: "x": field is immutable'):
        objects.patch(secrets, "default", "s", {"type": "x"})
    objects.patch(secrets, "default", "s", {"immutable": True})
    with pytest.raises(ApiError, match="field is immutable when `immutable` is set"):
        objects.patch(secrets, "default", "s", {"stringData": {"a": "z"}})
    with pytest.raises(ApiError, match="data: Too long: may not be more than 1048576 bytes"):
        dry(objects, "secrets", data={"c": base64.b64encode(b"a" * 1048577).decode()})


def test_a_config_map_has_a_limit(objects: Objects) -> None:
    with pytest.raises(ApiError, match="Too long"):
        dry(objects, "configmaps", data={"c": "a" * 1048577})
    assert dry(objects, "configmaps", data={"c": "a"})["data"] == {"c": "a"}


def test_a_lease_has_times_in_microseconds(objects: Objects) -> None:
    dry(objects, LEASES, spec={"renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15})
    with pytest.raises(ApiError, match="must be greater than 0"):
        dry(objects, LEASES, spec={"leaseDurationSeconds": 0})


def test_an_event_is_where_its_object_is(objects: Objects) -> None:
    dry(objects, "events", involvedObject={"kind": "Pod", "namespace": "default"})
    with pytest.raises(ApiError, match=r"does not match event\.namespace"):
        dry(objects, "events", involvedObject={"kind": "Pod", "namespace": "other"})


RBAC = "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        ("roles", {"rules": [{"resources": ["pods"]}]}, "rules[0].verbs"),
        ("rolebindings", {"roleRef": {"kind": "Role"}}, "roleRef.name"),
        ("rolebindings", {"roleRef": {"kind": "X", "name": "r"}}, "roleRef.kind"),
        (
            "rolebindings",
            {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "X", "name": "y"}]},
            "subjects[0].kind",
        ),
        (
            "clusterrolebindings",
            {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "y"}]},
            "subjects[0].namespace",
        ),
    ],
)
def test_roles_and_bindings_that_are_refused(objects: Objects, kind: str, body: Any, field: str) -> None:
    with pytest.raises(ApiError) as told:
        dry(objects, f"{kind}.{RBAC}", **body)
    assert [cause[0] for cause in causes(told.value)] == [field]


def test_a_binding_keeps_its_role(objects: Objects) -> None:
    bindings = objects.resource(f"rolebindings.{RBAC}")
    body = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}],
    }
    made = objects.create(bindings, "default", body)
    assert made["subjects"][0]["apiGroup"] == made["roleRef"]["apiGroup"] == RBAC
    with pytest.raises(ApiError, match="cannot change roleRef"):
        objects.patch(bindings, "default", "b", {"roleRef": {"name": "zz"}})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scope": "X"}, "spec.scope"),
        ({"group": "other.dev"}, "metadata.name"),
        ({"names": {"plural": "widgets"}}, "spec.names.kind"),
        ({"versions": []}, "spec.versions"),
        ({"versions": [{"name": "v1", "storage": True}]}, "spec.versions[0].schema.openAPIV3Schema"),
    ],
)
def test_definitions_that_are_refused(objects: Objects, changes: Object, field: str) -> None:
    body = DEFINITION | {"spec": DEFINITION["spec"] | changes}
    with pytest.raises(ApiError, match=re.escape(field)) as told:
        objects.create(objects.resource(CRDS), "", body, dry_run=True)
    assert told.value.code == 422


def test_a_namespace_says_its_name_in_a_label(objects: Objects) -> None:
    made = objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "n"}}, dry_run=True)
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    assert made["status"] == {"phase": "Active"}
