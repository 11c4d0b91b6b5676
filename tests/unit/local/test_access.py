from typing import Any

import pytest

from mcptasks_local.access import Access
from mcptasks_local.errors import ApiError
from mcptasks_local.objects import Objects
from tests.unit.local.widgets import new_objects

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def objects() -> Objects:
    objects = new_objects()
    objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "other"}})
    role(objects, "roles", "default", "reader", [
        {"apiGroups": [""], "resources": ["pods", "*/log"], "verbs": ["get"]},
        {"apiGroups": ["mcptasks.dev"], "resources": ["mcptools"], "resourceNames": ["run-tests"], "verbs": ["call"]},
    ])  # fmt: skip
    role(objects, "clusterroles", "", "all", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    return objects


def role(objects: Objects, plural: str, namespace: str, name: str, rules: Any) -> None:
    objects.create(objects.resource(f"{plural}.{RBAC}"), namespace, {"metadata": {"name": name}, "rules": rules})


def bind(objects: Objects, plural: str, namespace: str, name: str, role: tuple[str, str], *subjects: Any) -> None:
    body = {"metadata": {"name": name}, "roleRef": {"kind": role[0], "name": role[1]}, "subjects": list(subjects)}
    objects.create(objects.resource(f"{plural}.{RBAC}"), namespace, body)


def review(objects: Objects, user: str = "x", groups: Any = (), **asked: Any) -> Any:
    attributes = {"namespace": "default", "verb": "get", "resource": "pods", **asked}
    return Access(objects).review({"user": user, "groups": list(groups), "resourceAttributes": attributes})


USER = {"kind": "User", "name": "x"}


def test_nobody_may_anything_unless_a_binding_says_so(objects: Objects) -> None:
    assert review(objects) == {"allowed": False}
    bind(objects, "rolebindings", "default", "rb", ("Role", "reader"), USER)
    assert review(objects) == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "rb/default" of Role "reader" to User "x"',
    }
    assert review(objects, namespace="other") == {"allowed": False}
    assert review(objects, namespace="") == {"allowed": False}
    assert review(objects, verb="list") == {"allowed": False}
    assert review(objects, group="apps") == {"allowed": False}
    assert review(objects, user="y") == {"allowed": False}
    assert review(objects, subresource="log")["allowed"]
    assert not review(objects, subresource="status")["allowed"]


def test_a_rule_may_name_its_objects(objects: Objects) -> None:
    bind(objects, "rolebindings", "default", "rb", ("Role", "reader"), USER)
    call = {"group": "mcptasks.dev", "resource": "mcptools", "verb": "call"}
    assert review(objects, **call, name="run-tests")["allowed"]
    assert not review(objects, **call, name="other")["allowed"]
    assert not review(objects, **call)["allowed"]


@pytest.mark.parametrize("name", ["https://id.example#alice", "a b", "ä@ö", 'quo"te', "a:b/c"])
def test_names_are_compared_as_they_are(objects: Objects, name: str) -> None:
    bind(objects, "rolebindings", "default", "rb", ("Role", "reader"), {"kind": "User", "name": name})
    assert review(objects, user=name)["allowed"]
    assert not review(objects, user=name + " ")["allowed"]


def test_groups_and_service_accounts(objects: Objects) -> None:
    bind(
        objects,
        "rolebindings",
        "default",
        "rb",
        ("ClusterRole", "all"),
        {"kind": "Group", "name": "oidc:testers"},
        {"kind": "ServiceAccount", "name": "sa", "namespace": "other"},
    )
    assert review(objects, user="", groups=["oidc:testers"], verb="delete")["allowed"]
    reason = review(objects, user="system:serviceaccount:other:sa")["reason"]
    assert reason == 'RBAC: allowed by RoleBinding "rb/default" of ClusterRole "all" to ServiceAccount "sa/other"'
    assert not review(objects, user="system:serviceaccount:default:sa")["allowed"]


def test_a_cluster_role_binding_holds_everywhere(objects: Objects) -> None:
    bind(objects, "clusterrolebindings", "", "crb", ("ClusterRole", "all"), USER)
    assert review(objects, namespace="other", resource="secrets")["allowed"]
    assert 'ClusterRoleBinding "crb"' in review(objects, namespace="")["reason"]


def test_a_binding_to_nothing_grants_nothing(objects: Objects) -> None:
    bind(objects, "rolebindings", "default", "rb", ("Role", "nope"), USER)
    assert not review(objects)["allowed"]


def test_masters_may_everything(objects: Objects) -> None:
    assert review(objects, groups=["system:masters"], resource="anything")["allowed"]


@pytest.mark.parametrize("spec", [{"resourceAttributes": {"verb": "get"}}, {"user": "x"}])
def test_reviews_that_ask_nothing_are_422(objects: Objects, spec: Any) -> None:
    with pytest.raises(ApiError, match="must be specified") as told:
        Access(objects).review(spec)
    assert told.value.code == 422
