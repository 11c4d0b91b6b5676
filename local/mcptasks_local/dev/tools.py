"""Tool files: what ``mcptasks dev --tools`` reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mcptasks_crds.kinds import TOOL
from mcptasks_local.dev.folder import DevError

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class ToolDocument:
    """One MCPTool and where it stands: ``tools.yaml, document 2``."""

    source: str
    body: dict[str, Any]

    @property
    def name(self) -> str:
        name: str = self.body["metadata"]["name"]
        return name


def read_tools(paths: Iterable[Path], namespace: str) -> list[ToolDocument]:
    """The tools in files and folders (not below them), each a document of the right kind.

    Raises:
        DevError: every fault found, with file and document.
    """
    found: list[ToolDocument] = []
    faults: list[str] = []
    for path in paths:
        for file in _files(path, faults):
            for source, body in _documents(file, faults):
                if problems := _problems(body, namespace):
                    faults += [f"{source}: {problem}" for problem in problems]
                else:
                    found.append(ToolDocument(source, body))
    seen: dict[str, str] = {}
    for document in found:
        if document.name in seen:
            faults.append(f"{document.source}: tool {document.name} is already in {seen[document.name]}")
        seen[document.name] = document.source
    if faults:
        raise DevError("\n".join(faults))
    return found


def _files(path: Path, faults: list[str]) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
        if not files:
            faults.append(f"{path}: no {', '.join(SUFFIXES)} file in this folder")
        return files
    if not path.exists():
        faults.append(f"{path}: no such file or folder")
        return []
    return [path]


def _documents(file: Path, faults: list[str]) -> Iterator[tuple[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValueError, OSError) as error:
        faults.append(f"{file}: {' '.join(str(error).split())}")
        return
    for number, body in enumerate(documents, 1):
        if body is not None:
            yield (f"{file}, document {number}" if len(documents) > 1 else str(file)), body


def _problems(body: Any, namespace: str) -> list[str]:
    if not isinstance(body, dict) or body.get("kind") != TOOL.name or body.get("apiVersion") != TOOL.api_version:
        kind = f"{body.get('apiVersion')} {body.get('kind')}" if isinstance(body, dict) else type(body).__name__
        return [f"--tools takes {TOOL.api_version} {TOOL.name}, not {kind}; apply other kinds with kubectl"]
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return ["metadata.name is missing"]
    if metadata.setdefault("namespace", namespace) != namespace:
        return [f"namespace {metadata['namespace']} is not the one that is served: {namespace} (see --namespace)"]
    return []
