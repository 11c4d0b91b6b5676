import copy
from typing import Any

import pytest

from mcptasks_operator.job import build_job, build_pod
from mcptasks_operator.surroundings import Surroundings

from .objects import TEMPLATE, task, tool_spec

URL = "http://service:8080"
RESTRICTED = Surroundings(URL)
USER = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532, "runAsNonRoot": True}
PROFILE = {"seccompProfile": {"type": "RuntimeDefault"}}
NO_POWER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pod(
    surroundings: Surroundings = RESTRICTED, *, container: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    template: dict[str, Any] = copy.deepcopy(TEMPLATE)
    template["spec"] |= spec
    if container is not None:
        template["spec"]["containers"][0]["securityContext"] = container
    built: dict[str, Any] = build_job(task(), "{}", tool_spec(job={"template": template}), 1, surroundings)
    filled: dict[str, Any] = built["spec"]["template"]["spec"]
    return filled


def test_a_template_that_says_nothing_is_restricted_in_every_container() -> None:
    spec = pod(initContainers=[{"name": "first", "image": "none"}])
    assert spec["securityContext"] == {**PROFILE, **USER}
    assert [c["securityContext"] for c in (*spec["initContainers"], *spec["containers"])] == [NO_POWER, NO_POWER]
    assert build_pod(tool_spec(), task(), RESTRICTED)["spec"]["securityContext"] == {**PROFILE, **USER}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"runAsUser": 1000}, {"runAsUser": 1000, "runAsNonRoot": True}),
        ({"runAsUser": 0}, {"runAsUser": 0, "runAsNonRoot": False}),
        ({"runAsNonRoot": True}, {"runAsNonRoot": True}),  # the image's own user
        ({"runAsGroup": 7, "fsGroup": 8}, {**USER, "runAsGroup": 7, "fsGroup": 8}),
        ({"seccompProfile": {"type": "Unconfined"}}, {**USER, "seccompProfile": {"type": "Unconfined"}}),
    ],
)
def test_what_a_template_says_of_the_pod_stands(said: dict[str, Any], meant: dict[str, Any]) -> None:
    assert pod(securityContext=said)["securityContext"] == {**PROFILE, **meant}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"runAsUser": 0}, {"runAsUser": 0, "runAsNonRoot": False, **NO_POWER}),
        ({"capabilities": {"add": ["NET_BIND_SERVICE"]}},
         {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
        ({"privileged": True}, {"privileged": True, "capabilities": {"drop": ["ALL"]}}),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}),
        ({"allowPrivilegeEscalation": True}, {**NO_POWER, "allowPrivilegeEscalation": True}),
    ],
)  # fmt: skip
def test_what_a_template_says_of_a_container_stands(said: dict[str, Any], meant: dict[str, Any]) -> None:
    assert pod(container=said)["containers"][0]["securityContext"] == meant


def test_without_restrictions_the_image_and_the_cluster_decide() -> None:
    spec = pod(Surroundings(URL, restricted=False))
    assert "securityContext" not in spec
    assert "securityContext" not in spec["containers"][0]


@pytest.mark.fault("P26")
def test_the_service_account_is_the_settings_unless_the_template_names_one() -> None:
    assert "serviceAccountName" not in pod()
    ours = Surroundings(URL, service_account="mcptasks-tool")
    assert pod(ours)["serviceAccountName"] == "mcptasks-tool"
    assert pod(ours, serviceAccountName="builder")["serviceAccountName"] == "builder"
    assert pod(ours, automountServiceAccountToken=True)["automountServiceAccountToken"] is False
