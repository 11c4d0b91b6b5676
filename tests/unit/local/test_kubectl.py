"""The real kubectl against the API, behind TLS."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.local.widgets import Client, job_spec, served, widget

KUBECTL = Path(sys.executable).parent / "kubectl"
CONDITION: dict[str, object] = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@dataclass
class Kubectl:
    """Runs kubectl; ``client`` is the inside of what it talks to."""

    client: Client
    kubeconfig: Path

    async def start(self, *args: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            str(KUBECTL), "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(self.kubeconfig.parent / "cache"),
            *args, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def __call__(self, *args: str, given: object = None, fails: bool = False, warns: bool = False) -> str:
        """What it prints: on stderr if it is meant to fail, or to warn."""
        process = await self.start(*args)
        text = None if given is None else json.dumps(given).encode()
        async with asyncio.timeout(60):
            out, err = await process.communicate(text)
        assert (process.returncode != 0) == fails, (args, out.decode(), err.decode())
        return (err if fails or warns else out).decode()


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with served(tmp_path) as (client, kubeconfig):
        yield Kubectl(client, kubeconfig)


class Heard(Counter[tuple[str, str, str, str]]):
    """Counts requests, and tells of watches."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = asyncio.Event()

    def __setitem__(self, key: tuple[str, str, str, str], value: int) -> None:
        super().__setitem__(key, value)
        if key[0] == "watch":
            self.watch.set()


def columns(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


async def test_it_knows_the_server_and_what_it_serves(kubectl: Kubectl) -> None:
    assert "Server Version: v1." in await kubectl("version")
    kinds = await kubectl("api-resources")
    assert ["widgets", "wd", "example.dev/v1", "true", "Widget"] in columns(kinds)
    assert ["jobs", "batch/v1", "true", "Job"] in columns(kinds)
    assert "widgets.example.dev" in await kubectl("api-resources", "--categories=toys", "-o", "name")


async def test_apply_validates_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    apply = ("apply", "-f", "-")
    assert "widget.example.dev/a created" in await kubectl(*apply, given=widget())
    assert "unchanged" in await kubectl(*apply, given=widget())
    assert "configured" in await kubectl(*apply, given=widget(spec={"owner": "ann", "size": 5}))
    assert "configured" in await kubectl(*apply, given=widget())
    assert await kubectl("get", "wd", "a", "-o", "jsonpath={.spec.size}") == "3"  # removed, so the default again
    said = await kubectl(*apply, given=widget(spec={"owner": "ann", "bogus": 1}), fails=True)
    assert 'unknown field "spec.bogus"' in said
    said = await kubectl(*apply, given=widget(spec={"owner": "eve"}), fails=True)
    assert "spec.owner: Forbidden: owner cannot be changed" in said
    dry = await kubectl(*apply, "--dry-run=server", given=widget("b"))
    assert "created (server dry run)" in dry
    assert "NotFound" in await kubectl("get", "wd", "b", fails=True)


async def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    mine = ("apply", "--server-side", "-f", "-", "--field-manager=me")
    other = ("apply", "--server-side", "-f", "-", "--field-manager=you")
    assert "serverside-applied" in await kubectl(*mine, given=widget(spec={"owner": "ann", "size": 5}))
    assert 'conflict with "me": .spec.size' in await kubectl(*other, given=widget(spec={"size": 6}), fails=True)
    await kubectl(*other, "--force-conflicts", given=widget(spec={"owner": "ann", "size": 6}))
    assert await kubectl("get", "wd", "a", "-o", "jsonpath={.spec.size}") == "6"


async def test_get_with_columns_and_selectors(kubectl: Kubectl) -> None:
    for name, owner in (("a", "ann"), ("b", "bob")):
        item = widget(name, spec={"owner": owner})
        await kubectl("create", "-f", "-", given=item | {"metadata": {"name": name, "labels": {"who": owner}}})
    head, *rows = columns(await kubectl("get", "widgets"))
    assert head == ["NAME", "STATE", "SIZE", "AGE"]
    assert [row[0] for row in rows] == ["a", "b"]
    wide = columns(await kubectl("get", "toys", "-o", "wide"))
    assert (wide[0][-1], wide[1][-1]) == ("OWNER", "ann")
    assert (await kubectl("get", "wd", "-l", "who=bob", "-o", "name")).strip() == "widget.example.dev/b"
    assert (
        await kubectl("get", "wd", "--field-selector=spec.owner=ann", "-o", "name")
    ).strip() == "widget.example.dev/a"
    assert "field label not supported" in await kubectl("get", "wd", "--field-selector=spec.size=3", fails=True)
    assert len(columns(await kubectl("get", "wd", "--chunk-size=1", "--no-headers"))) == 2
    assert "default" in await kubectl("get", "ns,crd,sa", "-A")
    assert "b" in await kubectl("get", "wd", "--sort-by=.metadata.name", "--no-headers")


async def test_a_watch_shows_rows(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=widget())
    process = await kubectl.start("get", "wd", "-w")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            lines = [(await process.stdout.readline()).decode().split() for _ in range(2)]
            kind = kubectl.client.objects.resource("widgets.example.dev")
            busy = {"status": {"state": "busy"}}
            kubectl.client.objects.patch(kind, "default", "a", busy, subresource="status")
            lines.append((await process.stdout.readline()).decode().split())
    finally:
        process.kill()
        await process.communicate()
    assert [line[0] for line in lines] == ["NAME", "a", "a"]
    assert lines[2][1] == "busy"


async def test_explain_reads_the_schema(kubectl: Kubectl) -> None:
    text = await kubectl("explain", "wd.spec")
    assert "Who has it." in text
    assert "owner" in text
    assert "-required-" in text
    assert "ENUM" in await kubectl("explain", "widgets.status.state")
    assert "Job" in await kubectl("explain", "job")


async def test_describe_edit_label_and_patch(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=widget())
    await kubectl("label", "wd", "a", "x=y")
    await kubectl("annotate", "wd", "a", "note=hi")
    assert "note: hi" in await kubectl("describe", "wd", "a")
    patched = await kubectl("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"size":4}}')
    assert "patched" in patched
    await kubectl("patch", "wd", "a", "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":6}]')
    await kubectl("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"state":"done"}}')
    refused = ("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"state":"busy"}}')
    assert "a widget that is done cannot become busy" in await kubectl(*refused, fails=True)
    assert await kubectl("get", "wd", "a", "-o", "jsonpath={.spec.size} {.status.state}") == "6 done"


async def test_wait_for_a_condition_a_value_and_the_end(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=widget())
    objects = kubectl.client.objects
    kind = objects.resource("widgets.example.dev")
    heard = kubectl.client.app.requests = Heard()
    steps: list[tuple[str, dict[str, object] | None]] = [
        ("condition=Ready", CONDITION),
        ("jsonpath={.status.state}=busy", {"status": {"state": "busy"}}),
        ("delete", None),
    ]
    for wanted, status in steps:
        process = await kubectl.start("wait", "wd/a", "--timeout=30s", f"--for={wanted}")
        async with asyncio.timeout(30):
            await heard.watch.wait()
            heard.watch.clear()
            if status is None:
                objects.delete(kind, "default", "a")
            else:
                objects.patch(kind, "default", "a", status, subresource="status")
            out, err = await process.communicate()
        assert process.returncode == 0, (wanted, out, err)


async def test_delete_and_its_policies(kubectl: Kubectl) -> None:
    for name in "abc":
        await kubectl("create", "-f", "-", given=widget(name))
    assert "deleted" in await kubectl("delete", "wd", "a")
    await kubectl("delete", "wd", "--all", "--cascade=foreground")
    assert "No resources found" in (await kubectl("get", "wd", "-o", "name") or "No resources found")
    await kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    await kubectl("delete", "ns", "n")
    assert "NotFound" in await kubectl("get", "ns", "n", fails=True)


def manifest(kind: str, name: str, version: str = "v1", **body: object) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **body}


async def test_built_in_kinds(kubectl: Kubectl) -> None:
    make = ("apply", "-f", "-")
    await kubectl(*make, given=manifest("Job", "j", "batch/v1", spec=job_spec()))
    assert columns(await kubectl("get", "jobs"))[1][:3] == ["j", "Running", "0/1"]
    assert "Pods Statuses" in await kubectl("describe", "job", "j")
    assert "unchanged" in await kubectl(*make, given=manifest("Job", "j", "batch/v1", spec=job_spec()))
    # A strategic merge patch, as kubectl sends it for built-in kinds: the Job's other fields stay.
    suspended = manifest("Job", "j", "batch/v1", spec=job_spec(suspend=True))
    assert "configured" in await kubectl(*make, given=suspended)
    assert await kubectl("get", "job", "j", "-o", "jsonpath={.spec.suspend} {.spec.backoffLimit}") == "true 6"
    await kubectl(*make, given=manifest("Secret", "s", stringData={"a": "b"}))
    assert await kubectl("get", "secret", "s", "-o", "jsonpath={.data.a}") == "Yg=="
    await kubectl(*make, given=manifest("ConfigMap", "m", data={"a": "b"}))
    assert "a:" in await kubectl("describe", "cm", "m")
    assert "Warning: child pods are preserved by default" in await kubectl(
        "delete", "--raw", "/apis/batch/v1/namespaces/default/jobs/j", warns=True
    )


async def test_protobuf_is_refused_with_what_to_do(kubectl: Kubectl) -> None:
    assert "use kubectl apply -f" in await kubectl("create", "ns", "n", fails=True)


async def test_logs(kubectl: Kubectl) -> None:
    await kubectl("run", "p", "--image=busybox", "--restart=Never")
    kubectl.client.objects.patch(
        kubectl.client.objects.resource("pods"), "default", "p", {"status": {"phase": "Running"}}, subresource="status"
    )
    assert await kubectl("logs", "p", "--tail=3") == "p tail=3 limit=None\n"
    assert (await kubectl("logs", "-f", "p")).endswith("the end\n")
