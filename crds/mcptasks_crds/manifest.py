"""CRD manifests, generated from the models: ``python -m mcptasks_crds.manifest [--check]``."""

import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from mcptasks_crds import rules
from mcptasks_crds.kinds import GROUP, RESULT, TASK, TOOL, VERSION, Kind
from mcptasks_crds.model import Model
from mcptasks_crds.result import MCPTaskResult
from mcptasks_crds.revision import ANNOTATION, REVISION
from mcptasks_crds.task import MCPTask, Owner, TaskSpec
from mcptasks_crds.tool import MCPTool

FOLDER = Path(str(files("mcptasks_crds"))) / "manifests"
CHART = FOLDER.parents[2] / "charts/mcptasks/files/crds"
"""Where the chart has the same, in a checkout of the repository: Helm reads no file outside a chart."""
_DROPPED = {"title", "$defs", "additionalProperties"}
_MUTABLE = {"cancel", "retention"}
_CALLERS = ("origin", "plain", "call")
"""Fields of a task that tell which request of a client made it."""


def schema_of(model: type[Model]) -> dict[str, Any]:
    """A structural OpenAPI v3 schema as Kubernetes takes it: references inlined, no null, no titles."""
    document = model.model_json_schema(by_alias=True, mode="validation")
    schema = _structural(document, document.get("$defs", {}))
    schema["properties"]["metadata"] = {"type": "object"}
    for name, text in (
        ("apiVersion", "The version of the kind."),
        ("kind", "The kind of the object."),
    ):
        schema["properties"][name] = {"type": "string", "description": text}
    return schema


def _structural(node: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        target = defs[node["$ref"].rpartition("/")[2]]
        return _structural({**target, **{k: v for k, v in node.items() if k != "$ref"}}, defs)
    if "anyOf" in node:  # ``X | None``: Kubernetes says that by leaving the field out
        (present,) = [option for option in node["anyOf"] if option.get("type") != "null"]
        return _structural({**present, **{k: v for k, v in node.items() if k != "anyOf"}}, defs)
    if "const" in node:
        node = {"type": "string", "enum": [node["const"]], **{k: v for k, v in node.items() if k != "const"}}
    out = {key: value for key, value in node.items() if key not in _DROPPED and value is not None}
    if "description" in out:
        out["description"] = " ".join(out["description"].split())
    if "properties" in node:
        out["properties"] = {name: _structural(child, defs) for name, child in node["properties"].items()}
    if isinstance(extra := node.get("additionalProperties"), Mapping):
        out["additionalProperties"] = _structural(extra, defs)
    if "items" in node:
        out["items"] = _structural(node["items"], defs)
    if isinstance(out.get("default"), dict) and out.get("properties"):
        out["default"] = {}  # the defaults of its own fields fill it
    return out


def column(name: str, path: str, description: str, *, kind: str = "string", wide: bool = False) -> dict[str, Any]:
    """A column of ``kubectl get``; a wide one shows with ``-o wide`` only."""
    extra = {"priority": 1} if wide else {}
    return {"name": name, "type": kind, "jsonPath": path, "description": description, **extra}


AGE = column("Age", ".metadata.creationTimestamp", "Time since it was made.", kind="date")


def _crd(
    kind: Kind,
    model: type[Model],
    *,
    short: list[str],
    columns: list[dict[str, Any]],
    status: bool = True,
    selectable: tuple[str, ...] = (),
    root_rules: tuple[rules.Rule, ...] = (),
    spec_rules: tuple[rules.Rule, ...] = (),
) -> dict[str, Any]:
    schema = schema_of(model)
    if root_rules:
        schema["x-kubernetes-validations"] = list(root_rules)
    if spec_rules:
        schema["properties"]["spec"]["x-kubernetes-validations"] = list(spec_rules)
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns,
    }
    if status:
        version["subresources"] = {"status": {}}
    if selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "mcptasks"},
            "annotations": {ANNOTATION: str(REVISION)},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": short,
                "categories": ["mcp"],
            },
            "versions": [version],
        },
    }


def task_crd() -> dict[str, Any]:
    """The CRD of MCPTask."""
    fields = [field.alias for field in TaskSpec.model_fields.values() if field.alias]
    return _crd(
        TASK,
        MCPTask,
        short=["mct"],
        columns=[
            column("Tool", ".spec.request.name", "What it runs."),
            column("State", ".status.state", "Where it is."),
            column("Reason", ".status.reason", "Why."),
            column("Progress", ".status.progress.text", "How far it is."),
            # Not ``date``: kubectl prints a date in the future as <invalid>.
            column("Expires", ".status.expiresAt", "When it is deleted."),
            AGE,
            column("Task-ID", ".spec.taskId", "The id by which MCP clients know it.", wide=True),
            column("Owner", ".spec.owner.subject", "Who may see it.", wide=True),
            column("Job", ".status.job.name", "What runs it.", wide=True),
        ],
        selectable=(".status.state", ".spec.request.name", ".spec.taskId"),
        root_rules=(
            rules.lifecycle(),
            rules.completed_has_result(),
            rules.kept_at_end("result"),
            rules.kept_at_end("finishedAt"),
            rules.derived_name(),
            rules.short_name(),
        ),
        spec_rules=(
            *(rules.immutable(field) for field in fields if field not in _MUTABLE),
            rules.set_once("cancel"),
            rules.made_by_hand([field.alias for field in Owner.model_fields.values() if field.alias], _CALLERS),
        ),
    )


def result_crd() -> dict[str, Any]:
    """The CRD of MCPTaskResult."""
    return _crd(
        RESULT,
        MCPTaskResult,
        short=["mctr"],
        status=False,
        columns=[
            column("Task", ".metadata.ownerReferences[0].name", "The task it belongs to."),
            column("Error", ".spec.isError", "Whether it says isError.", kind="boolean"),
            AGE,
        ],
        root_rules=(rules.immutable("spec", "a result cannot be changed"),),
    )


def tool_crd() -> dict[str, Any]:
    """The CRD of MCPTool."""
    ready = ".status.conditions[?(@.type=='Ready')]"
    return _crd(
        TOOL,
        MCPTool,
        short=["mctool"],
        columns=[
            column("Ready", f"{ready}.status", "Whether a call would get its Job."),
            column("Reason", f"{ready}.reason", "Why."),
            column("Active", ".status.active", "Tasks that have a Job now.", kind="integer"),
            column("Queued", ".status.queued", "Tasks that wait.", kind="integer"),
            AGE,
            column("Tasks", ".spec.taskSupport", "Whether it may, or must, be called as a task.", wide=True),
        ],
    )


def manifests() -> dict[str, dict[str, Any]]:
    """File name → CRD."""
    return {f"{crd['metadata']['name']}.yaml": crd for crd in (task_crd(), result_crd(), tool_crd())}


def load() -> list[dict[str, Any]]:
    """The manifests as they are installed with the package."""
    import yaml

    return [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))]


def main(argv: list[str]) -> int:
    """Write the manifests, also into the chart, or with ``--check`` say which are not what the models give."""
    import yaml

    folders = [FOLDER, *([CHART] if CHART.is_dir() else [])]
    stale = []
    for name, crd in manifests().items():
        text = "# Generated from the models by `make crds`.\n" + yaml.safe_dump(crd, sort_keys=False, width=120)
        for folder in folders:
            path = folder / name
            if not path.exists() or path.read_text() != text:
                stale.append(path)
                if "--check" not in argv:
                    folder.mkdir(exist_ok=True)
                    path.write_text(text)
    if stale and "--check" in argv:
        sys.stderr.write(f"not what the models give: {', '.join(map(str, stale))}; run `make crds`\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
