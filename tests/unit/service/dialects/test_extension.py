"""The extension on 2026-07-28 over two replicas."""

import asyncio
from typing import Any

import pytest

from mcptasks_crds.lifecycle import State

from ..asgi_client import EXTENSION, Modern
from ..conftest import Replicas

INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


async def make(client: Modern, name: str = "build") -> str:
    made = await client.result("tools/call", {"name": name})
    assert made["resultType"] == "task"
    return str(made["taskId"])


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without the server's name in its ``_meta``."""
    assert answer["_meta"][INFO]["name"] == "mcptasks"
    rest = {key: value for key, value in answer["_meta"].items() if key != INFO}
    return {**{k: v for k, v in answer.items() if k != "_meta"}, **({"_meta": rest} if rest else {})}


@pytest.mark.fault("P24", "P30")
async def test_a_task_is_flat_and_found_by_another_replica_at_once(replicas: Replicas) -> None:
    client = replicas.modern()
    made = bare(await client.result("tools/call", {"name": "build"}))
    assert made == {
        "resultType": "task", "taskId": made["taskId"], "status": "working", "ttlMs": None, "pollIntervalMs": 500,
        "createdAt": "2026-07-25T17:20:00.000Z", "lastUpdatedAt": "2026-07-25T17:20:00.000Z",
    }  # fmt: skip
    got = bare(await client.result("tasks/get", {"taskId": made["taskId"]}))
    assert got == {**made, "resultType": "complete"}


async def test_the_result_comes_with_the_task_as_it_is_stored(replicas: Replicas) -> None:
    client = replicas.modern()
    task_id = await make(client)
    await replicas.api.complete(task_id, '{"content":[],"isError":true,"n":1.50}')
    reply = await client.send("tasks/get", {"taskId": task_id})
    body = await reply.body()
    assert b'"result":{"content":[],"isError":true,"n":1.50}' in body
    assert b'"status":"completed"' in body
    assert b"related-task" not in body


async def test_a_failed_task_comes_with_its_error(replicas: Replicas) -> None:
    client = replicas.modern()
    task_id = await make(client)
    await replicas.api.fail(task_id)
    got = await client.result("tasks/get", {"taskId": task_id})
    assert (got["status"], got["error"]["code"], "result" in got) == ("failed", -32603, False)


async def test_cancel_is_acknowledged_the_same_way_for_ever(replicas: Replicas) -> None:
    client = replicas.modern()
    task_id = await make(client)
    for _ in range(2):
        assert bare(await client.result("tasks/cancel", {"taskId": task_id})) == {"resultType": "complete"}
    assert (await client.result("tasks/get", {"taskId": task_id}))["status"] == "cancelled"


async def test_update_ignores_answers_to_what_was_not_asked(replicas: Replicas) -> None:
    client = replicas.modern()
    task_id = await make(client)
    answer = await client.result("tasks/update", {"taskId": task_id, "inputResponses": {"none": {}}})
    assert bare(answer) == {"resultType": "complete"}
    for params in ({"taskId": task_id}, {"taskId": "none", "inputResponses": {}}):
        assert (await client.error("tasks/update", params))["code"] == -32602


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
async def test_the_methods_need_the_extension_and_a_task(replicas: Replicas, method: str) -> None:
    params = {"taskId": "none", "inputResponses": {}}
    reply = await replicas.modern(extension=False).send(method, params)
    refused = (await reply.json())["error"]
    assert (reply.status, refused["code"]) == (400, -32021)
    assert refused["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    reply = await replicas.modern().send(method, params)
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result", "tasks/delete", "ping", "initialize", "no/such"])
async def test_methods_of_other_eras_are_unknown(replicas: Replicas, method: str) -> None:
    reply = await replicas.modern().send(method, {"taskId": "x"})
    assert (reply.status, (await reply.json())["error"]["code"]) == (404, -32601)


async def test_a_tool_that_needs_a_task_refuses_a_client_without(replicas: Replicas) -> None:
    reply = await replicas.modern(extension=False).send("tools/call", {"name": "only-task"})
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32021)
    assert replicas.api.tasks() == 0


@pytest.mark.parametrize(("extension", "name"), [(False, "build"), (True, "never-task")])
async def test_other_calls_run_to_their_end_in_one_request(replicas: Replicas, extension: bool, name: str) -> None:
    client = replicas.modern(extension=extension)
    call = asyncio.ensure_future(client.call("tools/call", {"name": name, "task": {}}))
    await replicas.api.made()
    await replicas.api.complete(None, '{"content":[]}')
    assert bare((await call)["result"]) == {"resultType": "complete", "content": []}


async def test_a_closed_stream_cancels_a_plain_call_and_its_task(replicas: Replicas) -> None:
    client = replicas.modern(extension=False)
    client.wait = False
    stream = await client.send("tools/call", {"name": "build"})
    await replicas.api.made()
    await stream.close()
    assert (await replicas.api.task())["status"]["state"] == "cancelled"


async def test_a_closed_stream_cancels_a_task_whose_handle_never_went_out(replicas: Replicas) -> None:
    client = replicas.modern()
    client.wait = False
    replicas.api.gate = asyncio.Event()
    stream = await client.send("tools/call", {"name": "build"})
    await replicas.api.at_gate.wait()
    closing = asyncio.ensure_future(stream.close())
    await stream.gone.wait()
    replicas.api.gate.set()
    await closing
    assert (await replicas.api.task())["status"]["state"] == "cancelled"


@pytest.mark.parametrize("name", [None, "other", "=?base64?bm9uc2Vuc2U=?="])
async def test_the_name_header_must_repeat_the_id(replicas: Replicas, name: str | None) -> None:
    client = replicas.modern()
    task_id = await make(client)
    headers = {"Mcp_Name": name or ""}
    reply = await client.send("tasks/get", {"taskId": task_id}, **headers)
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32020)


async def test_a_subscription_tells_the_whole_task_up_to_its_end(replicas: Replicas) -> None:
    client = replicas.modern()
    task_id = await make(client)
    stream = await client.send(
        "subscriptions/listen", {"notifications": {"taskIds": [task_id, task_id, "none"], "toolsListChanged": True}}, 9
    )
    tag = {SUBSCRIPTION: 9}
    acknowledged = await stream.message()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"notifications": {"toolsListChanged": True, "taskIds": [task_id]}, "_meta": tag}
    first = await stream.message()
    assert (first["method"], first["params"]["status"], first["params"]["_meta"]) == (
        "notifications/tasks",
        "working",
        tag,
    )
    await replicas.api.complete(task_id, '{"content":[],"n":1}')
    last = await stream.message()
    assert (last["params"]["status"], last["params"]["result"]) == ("completed", {"content": [], "n": 1})
    await replicas.api.offer("new-tool")
    assert await stream.message() == {
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": {"_meta": tag},
    }
    for service in replicas.services:
        service.closing.set()
    assert (await stream.answer())["result"] == {"resultType": "complete", "_meta": tag}


async def test_a_subscription_outlives_a_deleted_task(replicas: Replicas) -> None:
    client = replicas.modern()
    task_id = await make(client)
    stream = await client.send("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
    await stream.message()
    await stream.message()
    legacy = await replicas.legacy()
    await legacy.result("tasks/delete", {"taskId": task_id})
    for service in replicas.services:
        service.closing.set()
    assert (await stream.answer())["result"]["resultType"] == "complete"


async def test_a_subscription_without_the_extension_has_no_tasks(replicas: Replicas) -> None:
    task_id = await make(replicas.modern())
    client = replicas.modern(extension=False)
    stream = await client.send("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
    assert (await stream.message())["params"]["notifications"] == {}
    await stream.close()


@pytest.mark.parametrize("ids", ["x", [7], ["x"] * 101])
async def test_a_subscription_to_what_are_no_ids_is_refused(replicas: Replicas, ids: Any) -> None:
    reply = await replicas.modern().send("subscriptions/listen", {"notifications": {"taskIds": ids}})
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32602)


async def test_a_task_of_another_dialect_can_be_read(replicas: Replicas) -> None:
    legacy = await replicas.legacy()
    task_id = (await legacy.result("tools/call", {"name": "build", "task": {"ttl": 5000}}))["task"]["taskId"]
    got = await replicas.modern().result("tasks/get", {"taskId": task_id})
    assert (got["status"], got["ttlMs"]) == ("working", 5000)
    await replicas.api.fail(task_id, state=State.UNKNOWN)
    assert (await replicas.modern().result("tasks/get", {"taskId": task_id}))["status"] == "failed"
