"""SEP-1686 over two replicas, each request on another one."""

import asyncio
from typing import Any

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_crds.task import TaskError

from ..asgi_client import A_RELATED, A_TASK, Legacy, Reply
from ..conftest import Replicas

RELATED = {A_RELATED: {"taskId": "mine"}}


async def ask(client: Legacy, task_id: Any = "mine", name: str = "build", **task: Any) -> Reply:
    meta = {A_TASK: {"taskId": task_id, **task}, "progressToken": "p"}
    return await client.send("tools/call", {"name": name, "arguments": {"path": "x"}, "_meta": meta}, request_id=77)


def marked(task_id: str = "mine") -> dict[str, Any]:
    return {"taskId": task_id, "_meta": {A_RELATED: {"taskId": task_id}}}


@pytest.mark.req("R-1.1", "R-1.3", "R-1.5", "R-2.1", "R-2.2", "R-3.1", "R-6.1")
async def test_a_call_becomes_a_task_and_still_gets_its_answer(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await ask(client, keepAlive=30_000)
    created = await stream.message()
    assert created == {"jsonrpc": "2.0", "method": "notifications/tasks/created", "params": {"_meta": RELATED}}
    assert await client.result("tasks/get", marked()) == {
        "taskId": "mine", "status": "submitted", "keepAlive": 30_000, "pollFrequency": 500, "_meta": RELATED,
    }  # fmt: skip
    await replicas.api.complete("mine", '{"content":[],"odd":1.50}')
    body = (await stream.body()).decode()
    assert '{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"mine"}},"content":[],"odd":1.50}' in body
    assert '"id":77' in body
    for _ in range(3):
        assert await client.result("tasks/result", marked()) == {"content": [], "odd": 1.5, "_meta": RELATED}


@pytest.mark.req("R-6.1")
@pytest.mark.req("R-10.2")
async def test_progress_is_told_with_the_task_and_only_rises(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await ask(client)
    await stream.message()
    await replicas.api.work("mine", progress=0, total=2)
    assert (await stream.message())["params"] == {"progressToken": "p", "progress": 0, "total": 2, "_meta": RELATED}
    await replicas.api.work("mine", progress=1, total=2, message="half")
    assert (await stream.message())["params"]["message"] == "half"
    await replicas.api.work("mine", progress=0)
    await replicas.api.work("mine", progress=2)
    assert (await stream.message())["params"]["progress"] == 2


@pytest.mark.req("R-1.6", "R-8.1")
async def test_a_used_id_is_refused_by_name_and_runs_nothing(replicas: Replicas) -> None:
    client = await replicas.legacy()
    await (await ask(client)).message()
    again = (await (await ask(client)).answer())["error"]
    assert (again["code"], "'mine'" in again["message"]) == (-32602, True)
    assert replicas.api.tasks() == 1


@pytest.mark.req("R-9.1")
@pytest.mark.fault("P2")
async def test_another_session_meets_an_unknown_task(replicas: Replicas) -> None:
    mine, other = await replicas.legacy(), await replicas.legacy()
    await (await ask(mine)).message()
    for method in ("tasks/get", "tasks/result", "tasks/delete", "tasks/cancel"):
        foreign = await other.error(method, marked())
        unknown = await other.error(method, marked("none"))
        assert foreign == {**unknown, "message": unknown["message"].replace("none", "mine")}
    assert (await other.result("tasks/list", {"_meta": RELATED}))["tasks"] == []
    await (await ask(other)).message()
    assert replicas.api.tasks() == 2


@pytest.mark.req("R-1.2", "R-1.4")
async def test_a_tool_that_is_never_a_task_ignores_the_request_to_be_one(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await ask(client, name="never-task")
    await replicas.api.complete(None, '{"content":[]}')
    messages = [event.json() async for event in stream.events() if event.data]
    assert [message.get("method") for message in messages] == [None]
    assert messages[0]["result"] == {"content": []}
    assert (await client.error("tasks/get", marked()))["code"] == -32602


@pytest.mark.req("R-1.7")
async def test_a_client_that_takes_no_stream_gets_its_answer_as_json(replicas: Replicas) -> None:
    client = await replicas.legacy()
    meta = {A_TASK: {"taskId": "mine"}}
    call = asyncio.ensure_future(client.call("tools/call", {"name": "build", "_meta": meta}, Accept="application/json"))
    await replicas.api.made()
    await replicas.api.complete("mine")
    assert (await call)["result"] == {"content": [], "_meta": RELATED}


@pytest.mark.req("R-2.2", "R-8.1")
async def test_a_result_is_refused_until_completed_with_the_status(replicas: Replicas) -> None:
    client = await replicas.legacy()
    await (await ask(client)).message()
    refused = await client.error("tasks/result", marked())
    assert (refused["code"], "submitted" in refused["message"]) == (-32602, True)
    await replicas.api.fail("mine")
    assert "failed" in (await client.error("tasks/result", marked()))["message"]


@pytest.mark.req("R-8.2", "R-3.4")
@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        (State.FAILED, None, -32603),
        (State.FAILED, TaskError(code=-32000, message="own", data={"x": 1}), -32000),
        (State.UNKNOWN, None, -32603),
        (State.CANCELLED, None, -32800),
    ],
)
async def test_a_task_without_a_result_answers_the_call_with_an_error(
    replicas: Replicas, state: State, error: TaskError | None, code: int
) -> None:
    client = await replicas.legacy()
    stream = await ask(client)
    await stream.message()
    await replicas.api.fail("mine", error=error, state=state)
    answer = (await stream.answer())["error"]
    assert answer["code"] == code
    assert answer["data"] == ({"x": 1} if error else {"taskId": "mine", "status": state, "reason": "ImagePull"})


@pytest.mark.req("R-2.3", "R-2.4")
async def test_a_list_has_pages(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcptasks_service.dialects.pages.PAGE", 2)
    client = await replicas.legacy()
    for name in "abc":
        await (await ask(client, name)).message()
        replicas.advance(1)
    first = await client.result("tasks/list")
    second = await client.result("tasks/list", {"cursor": first["nextCursor"]})
    assert [task["taskId"] for page in (first, second) for task in page["tasks"]] == ["a", "b", "c"]
    assert first["tasks"][0] == {"taskId": "a", "status": "submitted", "keepAlive": 3_600_000, "pollFrequency": 500}
    assert "nextCursor" not in second
    for cursor in ("nonsense", first["nextCursor"][:-2], 7):
        refused = await client.error("tasks/list", {"cursor": cursor})
        assert (refused["code"], "Invalid cursor" in refused["message"]) == (-32602, True)


@pytest.mark.req("R-2.5", "R-2.6")
async def test_delete_removes_the_task_and_tells_the_open_call(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await ask(client)
    await stream.message()
    assert await client.result("tasks/delete", marked()) == {"_meta": RELATED}
    assert (await client.error("tasks/get", marked()))["code"] == -32602
    answer = (await stream.answer())["error"]
    assert (answer["code"], "deleted" in answer["message"]) == (-32800, True)


@pytest.mark.req("R-7.1", "R-7.2")
async def test_a_cancelled_notification_on_another_replica_cancels_the_task(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await ask(client)
    await stream.message()
    assert (await client.notify("notifications/cancelled", {"requestId": "77"})).status == 202
    assert (await stream.answer())["error"]["code"] == -32800
    assert (await client.result("tasks/get", marked()))["status"] == "cancelled"
    assert (await client.notify("notifications/cancelled", {"requestId": 77})).status == 202
    assert (await client.notify("notifications/cancelled", {"requestId": 1234})).status == 202
    assert (await client.notify("notifications/cancelled", {})).status == 202


@pytest.mark.fault("P13")
async def test_a_dropped_stream_cancels_nothing(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await ask(client)
    await stream.message()
    await stream.close()
    assert (await client.result("tasks/get", marked()))["status"] == "submitted"


@pytest.mark.parametrize("task_id", ["", "x" * 10_240, 7, None])
@pytest.mark.req("R-8.1")
async def test_what_is_no_id_makes_no_task(replicas: Replicas, task_id: Any) -> None:
    client = await replicas.legacy()
    assert (await (await ask(client, task_id)).answer())["error"]["code"] == -32602
    assert replicas.api.tasks() == 0


@pytest.mark.parametrize("keep_alive", [-1, "60", 10**18])
async def test_what_is_no_keep_alive_makes_no_task(replicas: Replicas, keep_alive: Any) -> None:
    client = await replicas.legacy()
    refused = (await (await ask(client, keepAlive=keep_alive)).answer())["error"]
    assert (refused["code"], str(keep_alive) in refused["message"]) == (-32602, True)
    assert replicas.api.tasks() == 0


async def test_a_mark_that_is_no_object_is_refused(replicas: Replicas) -> None:
    client = await replicas.legacy()
    refused = await client.error("tools/call", {"name": "build", "_meta": {A_TASK: "mine"}})
    assert (refused["code"], replicas.api.tasks()) == (-32602, 0)


async def test_unknown_tools_and_bad_arguments_make_no_task(replicas: Replicas) -> None:
    client = await replicas.legacy()
    unknown = (await (await ask(client, name="nope")).answer())["error"]
    assert (unknown["code"], "'nope'" in unknown["message"]) == (-32602, True)
    meta = {A_TASK: {"taskId": "mine"}}
    bad = await client.error("tools/call", {"name": "build", "arguments": {"path": 3}, "_meta": meta})
    assert (bad["code"], "arguments.path" in bad["message"]) == (-32602, True)
    assert replicas.api.tasks() == 0


async def test_a_task_of_an_earlier_version_is_listed_without_a_mark(replicas: Replicas) -> None:
    client = await replicas.legacy("2025-03-26")
    assert (await client.result("tasks/list"))["tasks"] == []
    stream = await ask(client)
    assert stream.status == 200
    assert (await stream.message())["method"] == "notifications/tasks/created"
    assert (await client.result("tasks/list"))["tasks"][0]["status"] == "submitted"
