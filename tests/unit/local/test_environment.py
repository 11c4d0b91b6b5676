import base64
import sys
from pathlib import Path

import pytest

from mcptasks_local.environment import NotReady, References, Unsupported, expand, field, inherited, variables
from mcptasks_local.errors import Object

from .laptop import Laptop


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)$(B)y", "x12y"),
        ("$(NOPE)", "$(NOPE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$", "$$"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("$(C)", "$(A)"),  # what is inserted is not expanded again
        ("a\n$(A)\n", "a\n1\n"),
    ],
)
def test_expansion_is_the_kubelets(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "C": "$(A)"}) == expanded


def test_only_what_is_known_to_be_harmless_is_inherited() -> None:
    around = {
        "PATH": "/bin",
        "HOME": "/home/a",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
        "AWS_SECRET": "s",
        "KUBECONFIG": "k",
    }
    got = inherited(around, "pod-1")
    python = str(Path(sys.executable).parent)
    assert got == {
        "PATH": f"{python}:/bin", "HOME": "/home/a", "LC_ALL": "C.UTF-8", "TERM": "dumb", "HOSTNAME": "pod-1"
    }  # fmt: skip


POD: Object = {
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u-1",
        "labels": {"b": "2", "a": "1"},
        "annotations": {"mcptasks.dev/arguments": '{"x":"$(A)"}'},
    },
    "spec": {"serviceAccountName": "runner", "nodeName": "here"},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['mcptasks.dev/arguments']", '{"x":"$(A)"}'),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("metadata.annotations", 'mcptasks.dev/arguments="{\\"x\\":\\"$(A)\\"}"'),
        ("spec.serviceAccountName", "runner"),
        ("spec.nodeName", "here"),
        ("status.podIP", "127.0.0.1"),
    ],
)
def test_fields_of_the_downward_api(path: str, value: str) -> None:
    assert field(POD, path) == value


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"spec\.secret"):
        field(POD, "spec.secret")


@pytest.fixture
async def references(tmp_path: Path) -> References:
    world = Laptop(tmp_path)
    secret = {"metadata": {"name": "s"}, "data": {"token": base64.b64encode(b"abc$(A)").decode()}}
    world.create("secrets", secret)
    binary = {"raw": base64.b64encode(b"\xff").decode()}
    world.create("configmaps", {"metadata": {"name": "c"}, "data": {"k": "v"}, "binaryData": binary})
    return References(world.objects)


def test_variables_come_in_order_and_may_use_those_before(references: References) -> None:
    container = {
        "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
        "env": [
            {"name": "EARLY", "value": "$(LATE)"},
            {"name": "LATE", "value": "$(CM_k)-$(token)"},
            {"name": "RAW", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['mcptasks.dev/arguments']"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
            {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "k", "optional": True}}},
            {"name": "EMPTY"},
        ],
    }
    assert variables(container, POD, references) == {
        "CM_k": "v",
        "CM_raw": "\udcff",
        "token": "abc$(A)",
        "EARLY": "$(LATE)",
        "LATE": "v-abc$(A)",
        "RAW": '{"x":"$(A)"}',
        "SECRET": "abc$(A)",
        "MAP": "v",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("container", "words"),
    [
        (
            {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "nope", "key": "k"}}}]},
            'secret "nope" not found',
        ),
        (
            {"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "z"}}}]},
            "find key z in ConfigMap",
        ),
        ({"envFrom": [{"configMapRef": {"name": "nope"}}]}, 'configmap "nope" not found'),
    ],
)
def test_what_is_missing_is_waited_for(references: References, container: Object, words: str) -> None:
    with pytest.raises(NotReady, match=words):
        variables(container, POD, references)


@pytest.mark.parametrize(
    "container",
    [{"env": [{"name": "X", "valueFrom": {"resourceFieldRef": {}}}]}, {"envFrom": [{"other": {}}]}],
)
def test_an_unknown_source_is_refused(references: References, container: Object) -> None:
    with pytest.raises(Unsupported, match="knows"):
        variables(container, POD, references)
