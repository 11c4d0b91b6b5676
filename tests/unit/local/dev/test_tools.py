from pathlib import Path

import pytest

from mcptasks_local.dev.folder import DevError
from mcptasks_local.dev.tools import read_tools

TOOL = """\
apiVersion: mcptasks.dev/v1alpha1
kind: MCPTool
metadata: {{name: {name}}}
spec:
  job: {{template: {{spec: {{containers: [{{name: tool, image: busybox}}]}}}}}}
"""


def tool(name: str) -> str:
    return TOOL.format(name=name)


def faults(path: Path) -> str:
    with pytest.raises(DevError) as error:
        read_tools([path], "default")
    return str(error.value)


def test_files_and_folders_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(f"---\n{tool('b1')}---\n{tool('b2')}---\n")
    (tmp_path / "a.yml").write_text(tool("a"))
    (tmp_path / "notes.txt").write_text("not a tool")
    (tmp_path / "sub").mkdir()
    found = read_tools([tmp_path, tmp_path / "a.yml"][:1], "team")
    assert [document.name for document in found] == ["a", "b1", "b2"]
    assert found[2].source == f"{tmp_path / 'b.yaml'}, document 2"
    assert {document.body["metadata"]["namespace"] for document in found} == {"team"}


def test_every_fault_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(tool("a") + "---\nkind: Pod\napiVersion: v1\n---\n- 1\n")
    (tmp_path / "b.yaml").write_text("spec: [")
    text = faults(tmp_path)
    assert "a.yaml, document 2: --tools takes mcptasks.dev/v1alpha1 MCPTool, not v1 Pod; apply other kinds" in text
    assert "a.yaml, document 3: --tools takes mcptasks.dev/v1alpha1 MCPTool, not list" in text
    assert "b.yaml: while parsing" in text


def test_a_missing_file_and_an_empty_folder_are_faults(tmp_path: Path) -> None:
    assert "no such file or folder" in faults(tmp_path / "nowhere")
    assert "no .yaml, .yml, .json file" in faults(tmp_path)


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ("{}", "metadata.name is missing"),
        ("{name: 7}", "metadata.name is missing"),
        ("{name: x, namespace: other}", "namespace other is not the one that is served: default"),
    ],
)
def test_a_tool_without_a_name_or_elsewhere_is_a_fault(tmp_path: Path, metadata: str, fault: str) -> None:
    (tmp_path / "x.yaml").write_text(tool("x").replace("{name: x}", metadata))
    assert fault in faults(tmp_path)


def test_a_tool_given_twice_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"{tool('x')}---\n{tool('x')}")
    assert f"document 2: tool x is already in {tmp_path / 'x.yaml'}, document 1" in faults(tmp_path)
