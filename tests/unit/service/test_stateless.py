"""The envelope and the headers of 2026-07-28."""

import json
from typing import Any

import pytest

from .asgi_client import Modern, request
from .conftest import Replicas

SCHEMA = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


async def code(client: Modern, method: str, params: Any = None, **headers: str) -> tuple[int, int | None]:
    reply = await client.send(method, params, **headers)
    answer = await reply.json()
    return reply.status, answer.get("error", {}).get("code")


async def test_discover_says_what_is_served(replicas: Replicas) -> None:
    answer = await replicas.modern().result("server/discover")
    assert answer["supportedVersions"] == ["2026-07-28"]
    assert answer["capabilities"] == {
        "tools": {"listChanged": True},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }


async def test_tools_are_listed_with_cache_hints_and_no_execution(replicas: Replicas) -> None:
    answer = await replicas.modern().result("tools/list")
    assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
    assert [tool["name"] for tool in answer["tools"]] == ["build", "never-task", "only-task"]
    assert "execution" not in answer["tools"][0]


async def test_headers_must_agree_with_the_body(replicas: Replicas) -> None:
    client = replicas.modern()
    assert await code(client, "tools/list", Mcp_Method="tools/call") == (400, -32020)
    assert await code(client, "tools/call", {"name": "build"}, Mcp_Name="other") == (400, -32020)
    client.version = "2099-01-01"
    assert await code(client, "tools/list") == (400, -32022)


async def test_blanks_around_a_header_are_none_of_it(replicas: Replicas) -> None:
    client = replicas.modern()
    assert await code(client, "tools/list", Mcp_Method="  tools/list\t") == (200, None)


async def test_a_routing_header_stands_once(replicas: Replicas) -> None:
    client = replicas.modern()
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": {}}}
    lines = [*client.headers().items(), ("Mcp-Method", "tools/list"), ("Mcp-Method", "tools/list")]
    reply = await request(replicas.services[0], "POST", body=json.dumps(body).encode(), headers=lines)
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("meta", [None, {}, {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}])
async def test_the_envelope_must_be_there(replicas: Replicas, meta: Any) -> None:
    client = replicas.modern()
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": meta}}
    reply = await client.post(body, Mcp_Method="tools/list")
    answer = await reply.json()
    assert (reply.status, answer["error"]["code"], answer["id"]) == (400, -32602, 5)


@pytest.mark.parametrize("capabilities", [None, 7, {"extensions": 7}, {"extensions": None}])
async def test_capabilities_that_make_no_sense_declare_nothing(replicas: Replicas, capabilities: Any) -> None:
    client = replicas.modern()
    meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}
    assert await code(client, "tasks/get", {"taskId": "x", "_meta": meta}) == (400, -32021)
    assert (await code(client, "tools/list", {"_meta": meta}))[0] in (200, 400)


async def test_notifications_are_taken_and_dropped(replicas: Replicas) -> None:
    client = replicas.modern()
    assert (await client.notify("notifications/cancelled", {"requestId": 1})).status == 202
    client.version = "2099-01-01"
    reply = await client.notify("notifications/cancelled", {"requestId": 1})
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32022)


async def test_a_subscription_needs_to_take_a_stream(replicas: Replicas) -> None:
    reply = await replicas.modern().send("subscriptions/listen", {"notifications": {}}, Accept="application/json")
    assert reply.status == 406


@pytest.mark.parametrize(
    ("region", "header", "status"), [("eu", "eu", 200), ("eu", "us", 400), ("eu", None, 400), (None, "eu", 400)]
)
async def test_parameter_headers_mirror_the_arguments(
    replicas: Replicas, region: str | None, header: str | None, status: int
) -> None:
    await replicas.api.offer("regional", inputSchema=SCHEMA)
    client = Modern([replicas.services[0]])
    arguments = {} if region is None else {"region": region}
    headers = {} if header is None else {"Mcp_Param_Region": header}
    stream = await replicas.legacy()
    while not any(tool["name"] == "regional" for tool in (await stream.result("tools/list"))["tools"]):
        pass
    reply = await client.send("tools/call", {"name": "regional", "arguments": arguments}, **headers)
    assert reply.status == status
    if status == 400:
        assert (await reply.json())["error"]["code"] == -32020


@pytest.mark.parametrize(("name", "arguments"), [("nope", {}), ("build", {"path": 3}), ("build", [1]), ("build", "x")])
async def test_calls_that_make_no_sense_make_no_task(replicas: Replicas, name: str, arguments: Any) -> None:
    params = {"name": name, "arguments": arguments}
    assert await code(replicas.modern(), "tools/call", params) == (400, -32602)
    assert replicas.api.tasks() == 0
