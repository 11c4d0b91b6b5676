"""Sessions, GET streams and resumption: each request on another replica."""

import asyncio
from typing import Any

import pytest

from mcptasks_service.sessions import DAY

from .asgi_client import A_TASK, Legacy
from .conftest import Replicas, Start

CREATE = {"name": "build", "_meta": {A_TASK: {"taskId": "mine"}}}


async def primed(client: Legacy, method: str, params: Any) -> tuple[Any, str]:
    """A stream and its event id, its priming event read."""
    stream = await client.send(method, params, request_id=77)
    first = await anext(stream.events())
    assert (first.data, bool(first.id)) == ("", True)
    return stream, str(first.id)


async def test_initialize_advertises_tasks_for_2025_11_25_alone(replicas: Replicas) -> None:
    client = Legacy([*replicas.services])
    answer = await client.start()
    assert answer["capabilities"] == {
        "tools": {"listChanged": True},
        "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
    }
    for version in ("2024-11-05", "2025-03-26", "2025-06-18"):
        older = Legacy([*replicas.services], version=version)
        answer = await older.start()
        assert (answer["protocolVersion"], "tasks" in answer["capabilities"]) == (version, False)
        assert "execution" not in (await older.result("tools/list"))["tools"][0]
    assert (await client.result("tools/list"))["tools"][0]["execution"] == {"taskSupport": "optional"}


async def test_an_unknown_version_is_answered_with_the_latest_of_the_era(replicas: Replicas) -> None:
    client = Legacy([*replicas.services], version="2026-07-28")
    assert (await client.start())["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 3, "capabilities": {}, "clientInfo": {}}])
async def test_an_initialize_that_makes_no_sense_starts_no_session(replicas: Replicas, params: Any) -> None:
    reply = await Legacy([*replicas.services]).send("initialize", params)
    assert (reply.status, "mcp-session-id" in reply.headers) == (200, False)
    error = (await reply.json())["error"]
    assert (error["code"], "protocolVersion" in error["message"]) == (-32602, True)


@pytest.mark.fault("T4")
async def test_a_session_is_known_to_every_replica_and_after_a_restart(start: Start) -> None:
    first = await start(2)
    client = await first.legacy()
    second = await start(2)
    client.apps = [*first.services, *second.services]
    client.__post_init__()
    for _ in range(4):
        assert await client.result("ping") == {}


async def test_without_a_session_only_initialize_is_served(replicas: Replicas) -> None:
    stranger = Legacy([*replicas.services])
    for reply in (await stranger.send("ping"), await stranger.listen(), await stranger.notify("notifications/x", {})):
        assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)


async def test_forged_and_expired_sessions_are_unknown(replicas: Replicas) -> None:
    client = await replicas.legacy()
    good = client.session
    for bad in ("x", "x.y", good[:-2], good.replace(".", "x."), f"{good[:20]}ü.{good[-32:]}"):
        client.session = bad
        assert (await client.send("ping")).status == 404
    client.session = good
    replicas.advance(31 * DAY)
    reply = await client.send("ping")
    assert (reply.status, (await reply.json())["error"]["code"]) == (404, -32600)


async def test_unknown_methods_and_notifications_do_no_harm(replicas: Replicas) -> None:
    client = await replicas.legacy()
    assert (await client.error("no/such"))["code"] == -32601
    assert (await client.error("server/discover"))["code"] == -32601
    assert (await client.notify("notifications/initialized", {})).status == 202
    assert (await client.notify("no/such", {})).status == 202
    assert (await client.notify("no/such", [1])).status == 202
    assert (await client.error("tools/list", {"cursor": "x"}))["code"] == -32602


async def test_the_get_stream_brings_tasks_and_tools(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await client.listen()
    assert stream.headers["content-type"] == "text/event-stream"
    task_id = (await client.result("tools/call", {"name": "build", "task": {}}))["task"]["taskId"]
    seen = await stream.message()
    assert (seen["method"], seen["params"]["taskId"]) == ("notifications/tasks/status", task_id)
    await replicas.api.work(task_id)
    await stream.message()
    await replicas.api.offer("new-tool")
    assert (await stream.message())["method"] == "notifications/tools/list_changed"
    await stream.close()


async def test_an_earlier_version_gets_news_of_tools_alone(replicas: Replicas) -> None:
    client = await replicas.legacy("2025-06-18")
    stream = await client.listen()
    await replicas.api.offer("new-tool")
    assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_another_sessions_tasks_are_no_news(replicas: Replicas) -> None:
    client, other = await replicas.legacy(), await replicas.legacy()
    stream = await client.listen()
    await other.result("tools/call", {"name": "build", "task": {}})
    await replicas.api.offer("new-tool")
    assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_a_get_needs_to_take_a_stream(replicas: Replicas) -> None:
    client = await replicas.legacy()
    assert (await client.listen(Accept="application/json")).status == 406


@pytest.mark.fault("T10", "P1")
@pytest.mark.parametrize(
    ("kind", "meta"),
    [
        ("sep-1686", {"modelcontextprotocol.io/related-task": {"taskId": "mine"}}),
        ("plain", None),
        ("2025-11-25", "io.modelcontextprotocol/related-task"),
    ],
)
async def test_a_stream_that_broke_off_goes_on_elsewhere(replicas: Replicas, kind: str, meta: Any) -> None:
    client = await replicas.legacy()
    method, params = "tools/call", CREATE if kind == "sep-1686" else {"name": "build"}
    if kind == "2025-11-25":
        task_id = (await client.result("tools/call", {"name": "build", "task": {}}))["task"]["taskId"]
        method, params = "tasks/result", {"taskId": task_id}
        meta = {meta: {"taskId": task_id}}
    stream, event_id = await primed(client, method, params)
    await stream.close()
    rest = await client.listen(**{"Last-Event-ID": event_id})
    again = await anext(rest.events())
    assert again.id == event_id
    await replicas.api.complete(None, '{"content":[]}')
    answer = await rest.answer()
    assert (answer["id"], answer["result"]) == (77, {"content": [], **({"_meta": meta} if meta else {})})
    ended = await client.listen(**{"Last-Event-ID": event_id})
    assert (await ended.answer())["result"] == answer["result"]


async def test_a_stream_whose_task_is_gone_ends_with_the_error(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream, event_id = await primed(client, "tools/call", CREATE)
    await stream.close()
    await client.result("tasks/delete", {"taskId": "mine"})
    answer = await (await client.listen(**{"Last-Event-ID": event_id})).answer()
    assert (answer["id"], answer["error"]["code"]) == (77, -32602)


@pytest.mark.fault("P22")
async def test_requests_that_wait_leave_nothing_behind_when_their_clients_go(replicas: Replicas) -> None:
    client = await replicas.legacy()
    task_id = (await client.result("tools/call", {"name": "build", "task": {}}))["task"]["taskId"]
    before = len(asyncio.all_tasks())
    streams = [await client.send("tasks/result", {"taskId": task_id}) for _ in range(50)]
    streams += [await client.listen() for _ in range(50)]
    assert len(asyncio.all_tasks()) > before + 100
    for stream in streams:
        await stream.close()
    assert len(asyncio.all_tasks()) == before
    for service in replicas.services:
        assert service.core is not None
        assert b"open_streams 0.0" in service.core.metrics.render()


async def test_an_event_id_is_good_for_its_session_alone(replicas: Replicas) -> None:
    client, other = await replicas.legacy(), await replicas.legacy()
    _, event_id = await primed(client, "tools/call", CREATE)
    for who, token in ((other, event_id), (client, "x"), (client, client.session)):
        assert (await who.listen(**{"Last-Event-ID": token})).status == 400


async def test_an_event_id_too_long_for_a_header_is_left_out(replicas: Replicas) -> None:
    client = await replicas.legacy()
    stream = await client.send("tools/call", CREATE, request_id="x" * 4096)
    first = await anext(stream.events())
    assert (first.id, first.json()["method"]) == (None, "notifications/tasks/created")


async def test_a_shutdown_hands_streams_over(replicas: Replicas) -> None:
    client = await replicas.legacy()
    news = await client.listen()
    stream, event_id = await primed(client, "tools/call", CREATE)
    for service in replicas.services:
        service.closing.set()
    assert b"result" not in await stream.body()
    await news.body()
    for service in replicas.services:
        service.closing = type(service.closing)()
    await replicas.api.complete("mine")
    assert (await (await client.listen(**{"Last-Event-ID": event_id})).answer())["id"] == 77


async def test_silence_is_filled_with_comments(start: Start) -> None:
    replicas = await start(1, ping_seconds=0.01)
    client = await replicas.legacy("2025-06-18")
    stream = await client.send("tools/call", {"name": "build"})
    seen = stream.comments_and_events()
    assert [await anext(seen), await anext(seen)] == ["ping", "ping"]
    await replicas.api.complete(None)
    assert (await stream.answer())["result"] == {"content": []}


async def test_an_answer_too_large_for_an_event_says_how_to_get_it(replicas: Replicas) -> None:
    client = await replicas.legacy()
    large = '{"content":[{"type":"text","text":"' + "x" * 1_048_576 + '"}]}'
    stream = await client.send("tools/call", CREATE)
    await stream.message()
    await replicas.api.complete("mine", large)
    error = (await stream.answer())["error"]
    assert (error["code"], error["data"]["reason"]) == (-32603, "AnswerTooLarge")
    meta = {"_meta": {"modelcontextprotocol.io/related-task": {"taskId": "mine"}}}
    reply = await client.send("tasks/result", {"taskId": "mine", **meta})
    assert reply.headers["content-type"] == "application/json"
    assert len(await reply.body()) > 1_048_576
