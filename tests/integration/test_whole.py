"""The service on two replicas, the operator and the control plane together: what an MCP client sees of them."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.test_operator import NAMESPACE, PATIENCE, none_left, offer, operating, until
from tests.unit.service.asgi_client import A_RELATED, A_TASK, Legacy, Modern

from mcptasks_crds.api import Api
from mcptasks_crds.kinds import JOB, TASK
from mcptasks_service.app import Service
from mcptasks_service.settings import Settings

if TYPE_CHECKING:
    from tests.conftest import ControlPlane


@dataclass(frozen=True)
class Whole:
    """Two replicas that share a signing key, and the API behind them."""

    replicas: list[Any]
    api: Api

    async def legacy(self, version: str = "2025-11-25") -> Legacy:
        client = Legacy(self.replicas, version=version)
        await client.start()
        return client

    def modern(self, *, extension: bool = True) -> Modern:
        return Modern(self.replicas, extension=extension)

    async def tasks(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.api.list(TASK, NAMESPACE))["items"]
        return items


@pytest.fixture
async def whole(control_plane: "ControlPlane") -> AsyncIterator[Whole]:
    settings = Settings(
        kubeconfig=str(control_plane.kubeconfig), namespace=NAMESPACE, signing_keys=["k" * 32], host="127.0.0.1"
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(operating(control_plane))
        replicas = [Service(settings) for _ in range(2)]
        for replica in replicas:
            core = await stack.enter_async_context(replica.running())
            for informer in core.informers:
                await asyncio.wait_for(informer.synced.wait(), PATIENCE)
        await offer(control_plane.api, "echo", "echo", "hello", inputSchema=ONE_NUMBER)

        async def offered() -> bool:
            return all(len(replica.core.tasks.catalogue.tools()) == 1 for replica in replicas if replica.core)

        await until(offered, "the tool on both replicas")
        yield Whole(list(replicas), control_plane.api)


ONE_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


async def ended(client: Legacy | Modern, task_id: str, **params: Any) -> dict[str, Any]:
    """The task, once it has ended."""

    async def there() -> dict[str, Any] | None:
        task: dict[str, Any] = await client.result("tasks/get", {"taskId": task_id, **params})
        return task if task["status"] in ("completed", "failed", "cancelled", "unknown") else None

    found: dict[str, Any] = await until(there, f"the end of {task_id}")
    return found


@pytest.mark.req("R-1.1", "R-1.3", "R-1.5", "R-2.1", "R-2.2", "R-2.5", "R-6.1")
async def test_a_task_of_sep_1686_from_its_creation_to_its_deletion(whole: Whole) -> None:
    client = await whole.legacy()
    mark = {"_meta": {A_RELATED: {"taskId": "mine"}}}
    meta = {A_TASK: {"taskId": "mine", "keepAlive": 60_000}}
    call = await client.send("tools/call", {"name": "echo", "arguments": {"n": 1}, "_meta": meta})
    created = await call.message()
    assert (created["method"], created["params"]) == ("notifications/tasks/created", mark)
    state = await client.result("tasks/get", {"taskId": "mine", **mark})
    assert (state["taskId"], state["keepAlive"]) == ("mine", 60_000)
    assert (await call.message())["result"]["content"] == [{"type": "text", "text": "hello\n"}]
    assert (await ended(client, "mine", **mark))["status"] == "completed"
    for _ in range(2):
        result = await client.result("tasks/result", {"taskId": "mine", **mark})
        assert (result["content"], result["_meta"]) == ([{"type": "text", "text": "hello\n"}], mark["_meta"])
    await client.result("tasks/delete", {"taskId": "mine", **mark})

    async def unknown() -> bool:  # the other replica hears of it a moment later
        answer = await client.call("tasks/get", {"taskId": "mine", **mark})
        return "error" in answer and answer["error"]["code"] == -32602

    await until(unknown, "the task's disappearance")
    await none_left(whole.api, TASK)


@pytest.mark.fault("T4")
async def test_a_task_of_2025_11_25_waits_for_its_result_on_any_replica(whole: Whole) -> None:
    client = await whole.legacy()
    task = (await client.result("tools/call", {"name": "echo", "arguments": {}, "task": {"ttl": 60_000}}))["task"]
    assert (task["status"], task["ttl"]) == ("working", 60_000)
    result = await client.result("tasks/result", {"taskId": task["taskId"]})
    assert result["content"][0]["text"] == "hello\n"
    assert (await client.error("tasks/cancel", {"taskId": task["taskId"]}))["code"] == -32602


@pytest.mark.fault("P24")
async def test_a_task_of_2026_07_28_has_its_result_inside(whole: Whole) -> None:
    client = whole.modern()
    task = await client.result("tools/call", {"name": "echo", "arguments": {}})
    assert (task["resultType"], task["status"]) == ("task", "working")
    done = await ended(client, task["taskId"])
    assert done["result"]["content"][0]["text"] == "hello\n"
    plain = await whole.modern(extension=False).result("tools/call", {"name": "echo", "arguments": {}})
    assert (plain["resultType"], plain["content"][0]["text"]) == ("complete", "hello\n")


def asked(task: Any) -> dict[str, Any]:
    return {"name": "echo", "arguments": {}, "_meta": {A_TASK: task}}


BAD = {
    "an unknown tool": ({"name": "nope", "arguments": {}}, "nope"),
    "no name": ({"arguments": {}}, ""),
    "arguments that do not fit": ({"name": "echo", "arguments": {"n": "x"}}, "'x' is not of type 'integer'"),
    "an unknown argument": ({"name": "echo", "arguments": {"m": 1}}, "'m' was unexpected"),
    "arguments that are a list": ({"name": "echo", "arguments": [1]}, ""),
    "an empty taskId": (asked({"taskId": ""}), "taskId"),
    "a taskId of 10 KB": (asked({"taskId": "x" * 10_240}), "taskId"),
    "a taskId that is a number": (asked({"taskId": 7}), "taskId"),
    "no taskId": (asked({}), "taskId"),
    "a task that is text": (asked("t"), "object"),
    "a negative keepAlive": (asked({"taskId": "t", "keepAlive": -1}), "keepAlive"),
    "a keepAlive that is text": (asked({"taskId": "t", "keepAlive": "60"}), "keepAlive"),
    "a keepAlive that is true": (asked({"taskId": "t", "keepAlive": True}), "keepAlive"),
    "a keepAlive of 10^18": (asked({"taskId": "t", "keepAlive": 10**18}), "keepAlive"),
    "a negative ttl": ({"name": "echo", "arguments": {}, "task": {"ttl": -5}}, "ttl"),
}


@pytest.mark.req("R-8.1")
@pytest.mark.parametrize("what", BAD)
async def test_bad_input_is_refused_in_words_and_leaves_nothing_behind(whole: Whole, what: str) -> None:
    params, word = BAD[what]
    error = await (await whole.legacy()).error("tools/call", params)
    assert error["code"] == -32602
    assert word in error["message"]
    assert len(error["message"]) < 700
    assert await whole.tasks() == []


@pytest.mark.req("R-8.1", "R-2.3")
async def test_what_is_no_json_rpc_is_refused_and_leaves_nothing_behind(whole: Whole) -> None:
    client = await whole.legacy()
    nan = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked({"taskId": "t"})})
    for body, status, code in (
        (b"{", 400, -32700),
        (nan.replace('"t"}', '"t", "keepAlive": NaN}').encode(), 400, -32700),
        (b"[]", 400, -32600),
        (b" " * (5 * 1024 * 1024), 413, -32600),
    ):
        reply = await client.post(body)
        assert (reply.status, (await reply.json())["error"]["code"]) == (status, code)
    error = await client.error("tasks/list", {"cursor": "nonsense", "_meta": {A_RELATED: {}}})
    assert error["code"] == -32602
    assert await whole.tasks() == []


@pytest.mark.req("R-1.6", "R-9.1")
@pytest.mark.fault("P2", "P25")
async def test_a_used_id_runs_nothing_twice_and_is_another_task_to_another_session(whole: Whole) -> None:
    mine, other = await whole.legacy(), await whole.legacy()
    first = await mine.send("tools/call", asked({"taskId": "same"}))
    await first.message()
    error = await mine.error("tools/call", asked({"taskId": "same"}))
    assert (error["code"], "same" in error["message"]) == (-32602, True)
    unknown = await other.error("tasks/get", {"taskId": "same"})
    assert unknown == await other.error("tasks/get", {"taskId": "same"})
    assert unknown["message"] == (await mine.error("tasks/get", {"taskId": "none"}))["message"].replace("none", "same")
    theirs = await other.send("tools/call", asked({"taskId": "same"}))
    assert (await theirs.message())["method"] == "notifications/tasks/created"
    assert len(await whole.tasks()) == 2


SCRIPTS = {
    "a program that is not there": (["no-such-program"], "failed", "StartError", "no-such-program"),
    "exit code 3": (["sh", "-c", "echo why; exit 3"], "completed", "ToolError", "why"),
    "5 MB of output": (["sh", "-c", "yes | head -c 5000000; echo END"], "completed", "Succeeded", "END"),
    "bytes that are no UTF-8": (["printf", r"\377\376 ok"], "completed", "Succeeded", "ok"),
    "killed": (["sh", "-c", "kill -9 $$$$"], "completed", "ToolError", "137"),
}


@pytest.mark.req("R-3.5", "R-8.2")
@pytest.mark.parametrize("what", SCRIPTS)
async def test_a_tool_that_misbehaves_ends_with_what_happened(whole: Whole, what: str) -> None:
    command, state, reason, said = SCRIPTS[what]
    await offer(whole.api, "odd", *command)
    client = whole.modern()

    async def made() -> dict[str, Any] | None:
        answer: dict[str, Any] = await client.call("tools/call", {"name": "odd", "arguments": {}})
        return answer.get("result")

    task = await until(made, "the tool on offer")
    done = await ended(client, task["taskId"])
    assert done["status"] == state
    text = done["error"]["message"] if state == "failed" else done["result"]["content"][0]["text"]
    assert said in text
    assert len(text) < 70_000
    if state == "completed":
        assert done["result"].get("isError", False) is (reason == "ToolError")
    (stored,) = await whole.tasks()
    assert stored["status"]["reason"] == reason
    await none_left(whole.api, JOB)


@pytest.mark.req("R-7.1", "R-7.2")
@pytest.mark.fault("P12")
async def test_cancelling_the_request_on_another_replica_ends_the_program(whole: Whole, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    await offer(whole.api, "slow", "sh", "-c", f"echo $$$$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600")
    client = await whole.legacy()

    async def started() -> Any:
        message = {"name": "slow", "arguments": {}, "_meta": {A_TASK: {"taskId": "s"}}}
        call = await client.send("tools/call", message, request_id="the-call")
        first = await (call.json() if call.headers["content-type"] == "application/json" else call.message())
        return call if first.get("method") == "notifications/tasks/created" else None

    call = await until(started, "the call")

    async def running() -> bool:
        return pid.exists()

    await until(running, "the program's start")
    program = int(pid.read_text())
    for _ in range(2):  # again on a task that has ended: ignored
        assert (await client.notify("notifications/cancelled", {"requestId": "the-call"})).status == 202
    assert (await call.answer())["error"]["code"] == -32800

    async def gone() -> bool:
        try:
            os.kill(program, 0)
        except ProcessLookupError:
            return True
        return False

    await until(gone, "the program's end")
    state = await client.result("tasks/get", {"taskId": "s", "_meta": {A_RELATED: {"taskId": "s"}}})
    assert state["status"] == "cancelled"
    await none_left(whole.api, JOB)
