"""The tasks of 2025-11-25 over two replicas."""

import asyncio
from typing import Any

import pytest

from mcptasks_crds.kinds import TOOL
from mcptasks_crds.lifecycle import State
from mcptasks_service.callers import Caller
from mcptasks_service.exchange import Exchange

from ..asgi_client import Legacy
from ..conftest import Replicas
from ..fake_api import NAMESPACE

RELATED = "io.modelcontextprotocol/related-task"


async def make(client: Legacy, name: str = "build", **task: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await client.result("tools/call", {"name": name, "task": task})
    assert answer["content"] == []
    made: dict[str, Any] = answer["task"]
    return made


async def test_a_task_is_answered_at_once_and_read_anywhere(replicas: Replicas) -> None:
    client = await replicas.legacy()
    made = await make(client, ttl=60_000)
    assert (made["status"], made["ttl"], made["pollInterval"]) == ("working", 60_000, 500)
    assert made["createdAt"] == made["lastUpdatedAt"] == "2026-07-25T17:20:00.000Z"
    assert await client.result("tasks/get", {"taskId": made["taskId"]}) == made


async def test_ids_have_128_random_bits_and_outlive_the_session(replicas: Replicas) -> None:
    made = await make(await replicas.legacy())
    assert len(made["taskId"]) >= 22
    other = await replicas.legacy()
    assert (await other.result("tasks/get", {"taskId": made["taskId"]}))["status"] == "working"


@pytest.mark.fault("P11", "P20")
async def test_a_result_waits_for_the_end_and_can_be_read_again(replicas: Replicas) -> None:
    client = await replicas.legacy()
    task_id = (await make(client))["taskId"]
    stream = await client.send("tasks/result", {"taskId": task_id, "_meta": {"progressToken": 1}})
    await replicas.api.work(task_id, progress=1)
    assert (await stream.message())["params"]["_meta"] == {RELATED: {"taskId": task_id}}
    await replicas.api.complete(task_id, '{"content":[],"n":1.0}')
    expected = {"content": [], "n": 1.0, "_meta": {RELATED: {"taskId": task_id}}}
    assert (await stream.answer())["result"] == expected
    for _ in range(3):
        reply = await client.send("tasks/result", {"taskId": task_id})
        assert reply.headers["content-type"] == "application/json"
        assert (await reply.json())["result"] == expected


@pytest.mark.fault("P10")
async def test_a_result_that_is_an_error_fails_the_task_and_is_still_read(replicas: Replicas) -> None:
    client = await replicas.legacy()
    task_id = (await make(client))["taskId"]
    await replicas.api.complete(task_id, '{"content":[],"isError":true,"structuredContent":{"a":1}}')
    assert (await client.result("tasks/get", {"taskId": task_id}))["status"] == "failed"
    assert (await client.result("tasks/result", {"taskId": task_id}))["structuredContent"] == {"a": 1}


async def test_a_failed_task_answers_its_result_with_the_error(replicas: Replicas) -> None:
    client = await replicas.legacy()
    task_id = (await make(client))["taskId"]
    await replicas.api.fail(task_id)
    assert (await client.error("tasks/result", {"taskId": task_id}))["message"] == "no such image"


async def test_cancel_answers_the_cancelled_task_and_refuses_an_ended_one(replicas: Replicas) -> None:
    client = await replicas.legacy()
    task_id = (await make(client))["taskId"]
    assert (await client.result("tasks/cancel", {"taskId": task_id}))["status"] == "cancelled"
    again = await client.error("tasks/cancel", {"taskId": task_id})
    assert (again["code"], "cancelled" in again["message"]) == (-32602, True)


async def test_a_task_of_sep_1686_reads_in_this_dialects_words(replicas: Replicas) -> None:
    client = await replicas.legacy()
    meta = {"modelcontextprotocol.io/task": {"taskId": "mine"}}
    await (await client.send("tools/call", {"name": "build", "_meta": meta})).message()
    assert (await client.result("tasks/get", {"taskId": "mine"}))["status"] == "working"
    await replicas.api.fail("mine", state=State.UNKNOWN)
    assert (await client.result("tasks/get", {"taskId": "mine"}))["status"] == "failed"


@pytest.mark.parametrize(
    ("name", "params", "word"), [("never-task", {"task": {}}, "without"), ("only-task", {}, "task")]
)
async def test_a_tool_says_how_it_must_be_called(replicas: Replicas, name: str, params: Any, word: str) -> None:
    client = await replicas.legacy()
    refused = await client.error("tools/call", {"name": name, **params})
    assert (refused["code"], word in refused["message"]) == (-32601, True)
    assert replicas.api.tasks() == 0


@pytest.mark.parametrize("task", [{"ttl": -1}, {"ttl": "1"}, [], "yes"])
async def test_a_task_parameter_that_makes_no_sense_is_refused(replicas: Replicas, task: Any) -> None:
    client = await replicas.legacy()
    assert (await client.error("tools/call", {"name": "build", "task": task}))["code"] == -32602
    assert replicas.api.tasks() == 0


async def test_a_plain_call_waits_and_answers_exactly_the_result(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await client.send("tools/call", {"name": "build", "_meta": {"progressToken": 5}})
    await replicas.api.work(None, progress=1, message="going")
    assert (await stream.message())["params"] == {"progressToken": 5, "progress": 1, "message": "going"}
    await replicas.api.complete(None, '{"content":[],"_meta":{"own":1}}')
    assert (await stream.answer())["result"] == {"content": [], "_meta": {"own": 1}}
    assert (await client.call("tasks/list"))["error"]["code"] == -32601


async def test_an_earlier_version_knows_no_task_parameter_and_no_required_tasks(replicas: Replicas) -> None:
    client = await replicas.legacy("2025-06-18")
    call = asyncio.ensure_future(client.result("tools/call", {"name": "only-task", "task": {}}))
    await replicas.api.made()
    await replicas.api.complete(None)
    assert await call == {"content": []}


@pytest.mark.fault("P4")
async def test_nothing_is_listed_where_nobody_is_identified(replicas: Replicas) -> None:
    client = await replicas.legacy()
    await make(client)
    refused = await client.error("tasks/list")
    assert refused["code"] == -32601
    client = await replicas.legacy()
    assert (await client.error("tasks/list"))["code"] == -32601


async def test_an_identified_caller_lists_its_tasks(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcptasks_crds.names import owner_key
    from mcptasks_crds.task import Owner
    from mcptasks_service import handshake

    alice = Owner(issuer="https://id.example", subject="alice")

    def identified(session: str | None) -> Caller:
        return Caller(owner=alice, keys=(owner_key(alice),), identified=True, session=session or "")

    monkeypatch.setattr(handshake, "anonymous", identified)
    client = Legacy([*replicas.services])
    assert (await client.start())["capabilities"]["tasks"]["list"] == {}
    made = await make(client)
    listed = await client.result("tasks/list")
    assert listed == {"tasks": [made]}


def test_an_exchange_asks_the_client_nothing() -> None:
    assert not Exchange.can_send_request


async def test_a_task_whose_tool_is_gone_is_still_read(replicas: Replicas) -> None:
    client = await replicas.legacy()
    news = await client.listen()
    made = await make(client)
    await news.message()
    await replicas.api.delete(TOOL, NAMESPACE, "build")
    assert (await news.message())["method"] == "notifications/tools/list_changed"
    async with asyncio.timeout(5):
        while len((await client.result("tools/list"))["tools"]) + len((await client.result("tools/list"))["tools"]) > 4:
            pass
    assert (await client.result("tasks/get", {"taskId": made["taskId"]}))["pollInterval"] == 1000
