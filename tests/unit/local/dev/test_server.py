import asyncio
from collections.abc import Iterator

import pytest
import yaml

from mcptasks_crds.manifest import tool_crd
from mcptasks_local.dev.folder import DevError
from mcptasks_local.dev.server import apply, looked_at
from mcptasks_local.dev.tools import ToolDocument
from mcptasks_local.objects import Objects
from mcptasks_local.storage import Storage

TOOL = """\
apiVersion: mcptasks.dev/v1alpha1
kind: MCPTool
metadata: {{name: {name}}}
spec:
  job: {{template: {{spec: {{containers: [{{name: tool, image: busybox}}]}}}}}}
"""


def tool(name: str) -> str:
    return TOOL.format(name=name)


@pytest.fixture
def objects() -> Iterator[Objects]:
    storage = Storage(None)
    objects = Objects(storage)
    objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "default"}})
    objects.create(objects.resource("customresourcedefinitions.apiextensions.k8s.io"), "", tool_crd())
    yield objects
    storage.close()


def document(text: str) -> ToolDocument:
    body = yaml.safe_load(text)
    body["metadata"].setdefault("namespace", "default")
    return ToolDocument("here.yaml", body)


def test_tools_are_created_then_updated_and_keep_their_status(objects: Objects) -> None:
    resource = objects.resource("mcptools.mcptasks.dev")
    apply(objects, [document(tool("x"))])
    objects.patch(resource, "default", "x", {"status": {"active": 3}}, subresource="status")
    apply(objects, [document(tool("x") + "  title: New\n")])
    stored = objects.get(resource, "default", "x")
    assert (stored["spec"]["title"], stored["status"]["active"], stored["metadata"]["generation"]) == ("New", 3, 2)


def test_what_the_api_server_refuses_is_told_with_its_place(objects: Objects) -> None:
    with pytest.raises(DevError) as error:
        apply(
            objects,
            [
                document(tool("x").replace("  job:", "  jobs:")),
                document(tool("y") + "  pollIntervall: 1s\n"),
                document(tool("z") + "  pollInterval: fast\n"),
            ],
        )
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert all(line.startswith("here.yaml: ") for line in lines)
    assert "jobs" in lines[0]
    assert 'unknown field "spec.pollIntervall"' in lines[1]
    assert "spec.pollInterval" in lines[2]


async def test_a_tool_is_waited_for_until_the_operator_has_looked_at_it(objects: Objects) -> None:
    resource = objects.resource("mcptools.mcptasks.dev")
    apply(objects, [document(tool("x"))])
    waiting = asyncio.create_task(looked_at(objects, "default"))
    await asyncio.sleep(0)
    objects.patch(resource, "default", "x", {"status": {"active": 1}}, subresource="status")
    await asyncio.sleep(0)
    assert not waiting.done()
    ready = {"type": "Ready", "status": "True", "reason": "Valid", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    objects.patch(resource, "default", "x", {"status": {"conditions": [ready]}}, subresource="status")
    await asyncio.wait_for(waiting, 5)
