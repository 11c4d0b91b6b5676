"""The CRDs: structural, described, and in step with the models."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcptasks_crds import manifest
from mcptasks_crds.kinds import RESULT, TASK, TOOL, Kind
from mcptasks_crds.lifecycle import State
from mcptasks_crds.model import Model
from mcptasks_crds.result import MCPTaskResult
from mcptasks_crds.task import MCPTask
from mcptasks_crds.tool import MCPTool

Object = dict[str, Any]
CRDS = manifest.manifests()
NAMES = sorted(CRDS)


def schema(crd: Object) -> Object:
    root: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


def nodes(node: Object, path: str = "") -> Iterator[tuple[str, Object]]:
    """Every schema inside a schema, by its path."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from nodes(node[key], f"{path}[]")


def test_the_manifests_in_the_tree_are_what_the_models_give() -> None:
    assert manifest.main(["--check"]) == 0
    assert {path.name for path in manifest.FOLDER.glob("*.yaml")} == set(CRDS)


def test_a_stale_manifest_is_named_and_a_run_without_check_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(manifest, "FOLDER", tmp_path / "manifests")
    assert manifest.main(["--check"]) == 1
    assert "mcptasks.mcptasks.dev.yaml" in capsys.readouterr().err
    assert not (tmp_path / "manifests").exists(), "a check writes nothing"
    assert manifest.main([]) == 0
    assert manifest.main(["--check"]) == 0
    (tmp_path / "manifests" / NAMES[0]).write_text("old")
    assert manifest.main(["--check"]) == 1
    assert NAMES[0] in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_structural(name: str) -> None:
    for path, node in nodes(schema(CRDS[name])):
        odd = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "const", "title", "nullable"} & set(node)
        assert not odd, path
        assert node.get("type") in {"object", "array", "string", "integer", "number", "boolean"}, path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert "null" not in str(node.get("enum", "")), path
        if node["type"] == "object" and path:
            known = {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(node)
            assert known or path == ".metadata", f"{path} would be pruned to nothing"


@pytest.mark.parametrize("name", NAMES)
def test_every_property_is_described_for_kubectl_explain(name: str) -> None:
    root = schema(CRDS[name])
    assert root["description"]
    for path, node in nodes(root):
        if path and not path.endswith("[]") and path != ".metadata":
            assert re.match(r"\w.*[\w.…}']$", node.get("description", ""), re.DOTALL), path
            assert "\n" not in node["description"], path


@pytest.mark.parametrize("name", NAMES)
def test_the_files_hold_yaml_that_says_the_same(name: str) -> None:
    assert yaml.safe_load((manifest.FOLDER / name).read_text()) == CRDS[name]
    assert CRDS[name] in manifest.load()


def test_the_states_are_those_of_the_table_and_submitted_is_where_a_task_starts() -> None:
    state = schema(manifest.task_crd())["properties"]["status"]["properties"]["state"]
    assert state["enum"] == [str(s) for s in State]
    assert state["default"] == "submitted"


@pytest.mark.parametrize(
    ("crd", "kind", "short", "status"),
    [
        (manifest.task_crd(), TASK, "mct", True),
        (manifest.result_crd(), RESULT, "mctr", False),
        (manifest.tool_crd(), TOOL, "mctool", True),
    ],
)
def test_a_crd_names_its_kind(crd: Object, kind: Kind, short: str, status: bool) -> None:
    names = crd["spec"]["names"]
    assert crd["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    assert (names["kind"], names["plural"], names["shortNames"], names["categories"]) == (
        kind.name,
        kind.plural,
        [short],
        ["mcp"],
    )
    (version,) = crd["spec"]["versions"]
    assert ("subresources" in version) is status
    assert crd["spec"]["scope"] == "Namespaced"


def test_a_task_has_a_state_before_anybody_has_written_one() -> None:
    assert schema(manifest.task_crd())["properties"]["status"]["default"] == {}


def test_a_request_is_all_that_a_task_needs() -> None:
    assert schema(manifest.task_crd())["properties"]["spec"]["required"] == ["request"]
    assert schema(manifest.task_crd())["properties"]["spec"]["properties"]["request"]["required"] == ["name"]


def test_kubectl_get_shows_what_the_docs_promise_and_expires_is_no_date() -> None:
    columns = {c["name"]: c for c in manifest.task_crd()["spec"]["versions"][0]["additionalPrinterColumns"]}
    narrow = [name for name, column in columns.items() if not column.get("priority")]
    assert narrow == ["Tool", "State", "Reason", "Progress", "Expires", "Age"]
    assert {"Owner", "Job"} <= set(columns)
    assert columns["Expires"]["type"] == "string", "kubectl prints a date in the future as <invalid>"


def test_the_fields_to_select_by_exist() -> None:
    crd = manifest.task_crd()
    paths = {path for path, _ in nodes(schema(crd))}
    selectable = [field["jsonPath"] for field in crd["spec"]["versions"][0]["selectableFields"]]
    assert selectable == [".status.state", ".spec.request.name", ".spec.taskId"]
    assert set(selectable) <= paths


def test_the_columns_of_every_kind_point_at_fields() -> None:
    for crd in CRDS.values():
        paths = {path for path, _ in nodes(schema(crd))} | {".metadata.creationTimestamp"}
        for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]:
            path = column["jsonPath"]
            assert path in paths or path.startswith((".metadata.ownerReferences", ".status.conditions[")), path


def test_loops_of_rules_are_bounded_since_questions_are() -> None:
    inputs = schema(manifest.task_crd())["properties"]["status"]["properties"]["inputs"]
    assert inputs["maxProperties"] == 32


def test_nested_defaults_are_left_to_the_fields_themselves() -> None:
    spec = schema(manifest.tool_crd())["properties"]["spec"]["properties"]
    assert spec["timeouts"]["default"] == {}
    assert spec["timeouts"]["properties"]["start"]["default"] == "5m"
    assert spec["inputSchema"]["default"] == {"type": "object"}


FULL_TASK: Object = {
    "apiVersion": "mcptasks.dev/v1alpha1",
    "kind": "MCPTask",
    "metadata": {"name": "t-1", "labels": {"a": "b"}, "annotations": {}},
    "spec": {
        "taskId": "1",
        "owner": {"issuer": "i", "subject": "s"},
        "request": {"method": "tools/call", "name": "t", "arguments": '{"x": 1.0}'},
        "origin": "sep-1686",
        "plain": True,
        "retention": {"after": "Creation", "milliseconds": 5},
        "call": "a.b",
        "createdAt": "2026-07-28T12:00:00Z",
        "parent": "t-0",
        "cancel": {"reason": "r"},
    },
    "status": {
        "state": "completed",
        "reason": "Succeeded",
        "message": "m",
        "startedAt": "2026-07-28T12:00:01Z",
        "finishedAt": "2026-07-28T12:00:02Z",
        "expiresAt": "2026-07-28T12:00:03Z",
        "job": {"name": "j", "uid": "u"},
        "attempt": 1,
        "progress": {"progress": 1.0, "total": 2.0, "message": "m", "text": "1/2 m"},
        "inputs": {"k": {"request": {"method": "m"}, "askedAt": "2026-07-28T12:00:01Z", "response": {"a": None}}},
        "result": {"name": "r", "uid": "u", "size": 1, "sha256": "0", "isError": False},
        "error": {"code": -32603, "message": "m", "data": {"reason": "r"}},
        "lastUpdatedAt": "2026-07-28T12:00:02Z",
        "conditions": [
            {
                "type": "Finished",
                "status": "True",
                "reason": "Succeeded",
                "message": "",
                "lastTransitionTime": "2026-07-28T12:00:02Z",
            }
        ],
    },
}
FULL_TOOL: Object = {
    "apiVersion": "mcptasks.dev/v1alpha1",
    "kind": "MCPTool",
    "metadata": {"name": "t", "labels": {}, "annotations": {}},
    "spec": {
        "title": "T",
        "description": "d",
        "inputSchema": {"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "taskSupport": "required",
        "retention": {"default": "1h", "max": "24h"},
        "pollInterval": "500ms",
        "timeouts": {"start": "1m", "run": "1h"},
        "retries": {"limit": 1, "on": ["Disrupted"]},
        "concurrency": {"total": 2, "perOwner": 1},
        "rateLimit": {"perOwner": "60/minute"},
        "job": {"template": {"spec": {"containers": [{"name": "tool"}]}}, "logLimit": 1},
    },
}
FULL_RESULT: Object = {
    "apiVersion": "mcptasks.dev/v1alpha1",
    "kind": "MCPTaskResult",
    "metadata": {"name": "r", "labels": {}, "annotations": {}},
    "spec": {"taskUid": "u", "result": '{"content": []}', "sha256": "0", "isError": True},
}


@pytest.mark.parametrize(("model", "item"), [(MCPTask, FULL_TASK), (MCPTool, FULL_TOOL), (MCPTaskResult, FULL_RESULT)])
def test_an_object_survives_its_model_and_what_a_newer_version_added_is_ignored(
    model: type[Model], item: Object
) -> None:
    newer = {**item, "spec": {**item["spec"], "fromTheFuture": 1}}
    assert model.model_validate(newer).wire() == model.model_validate(item).wire()
    assert model.model_validate(item).wire() == item
