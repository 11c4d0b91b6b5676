"""HTTP at ``/mcp``: what is refused before any method runs, and in which words."""

import json
import logging
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure
from mcptasks_service.tasks import Tasks

from .asgi_client import BOTH, Legacy, request
from .conftest import Replicas, Start

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def refused(client: Legacy, body: Any, **headers: str) -> tuple[int, int, str]:
    """Status, code and message of a refusal."""
    reply = await client.post(body, **headers)
    answer = await reply.json()
    return reply.status, answer["error"]["code"], answer["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"taskId":"a","taskId":"b"}',
    ],
)
async def test_what_is_no_json_is_a_parse_error(replicas: Replicas, body: bytes) -> None:
    for client in (await replicas.legacy(), replicas.modern()):
        status, code, message = await refused(client, body)
        assert (status, code, message.startswith("Parse error: ")) == (400, -32700, True)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"[" + json.dumps(PING).encode() + b"]",
        b"7",
        b"null",
        b"{}",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
    ],
)
async def test_what_is_no_request_is_refused(replicas: Replicas, body: bytes) -> None:
    for client in (await replicas.legacy(), replicas.modern()):
        assert (await refused(client, body))[:2] == (400, -32600)


async def test_a_body_over_the_limit_is_refused_with_the_limit(start: Start) -> None:
    replicas = await start(body_limit=2000)
    client = await replicas.legacy()
    for headers in ({}, {"Content-Length": "2001"}):
        status, code, message = await refused(client, b" " * 2001, **headers)
        assert (status, code, "2000 bytes" in message) == (413, -32600, True)
    assert (await client.post(json.dumps(PING).encode().ljust(2000))).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Accept": "text/html"}, 406),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/jsonp"}, 415),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_headers_that_do_not_fit_are_refused(replicas: Replicas, headers: dict[str, str], status: int) -> None:
    client = await replicas.legacy()
    assert (await refused(client, PING, **headers))[0] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8080"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:evil"}, 403),
        ({"Host": "localhost:80.evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://app.example"}, 200),
        ({"Origin": "https://app.example.evil"}, 403),
        ({"Accept": "*/*"}, 200),
        ({"Accept": "application/*"}, 200),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
async def test_hosts_and_origins_are_served_as_configured(start: Start, headers: dict[str, str], status: int) -> None:
    replicas = await start(
        1, allowed_hosts=["localhost:*"], allowed_origins=["http://localhost:*", "https://app.example"]
    )
    client = await replicas.legacy()
    assert (await client.post(PING, **headers)).status == status


async def test_a_client_without_an_accept_header_takes_anything(replicas: Replicas) -> None:
    client = await replicas.legacy()
    headers = {key: value for key, value in client.headers().items() if key != "Accept"}
    reply = await request(replicas.services[0], "POST", body=json.dumps(PING).encode(), headers=headers)
    assert reply.status == 200


@pytest.mark.fault("T3")
@pytest.mark.parametrize(("method", "status"), [("DELETE", 405), ("PUT", 405), ("OPTIONS", 405), ("HEAD", 405)])
async def test_other_verbs_are_not_allowed(replicas: Replicas, method: str, status: int) -> None:
    client = await replicas.legacy()
    reply = await request(replicas.services[0], method, headers=client.headers())
    assert (reply.status, reply.headers["allow"]) == (status, "GET, POST")
    reply = await request(replicas.services[0], "GET", headers=replicas.modern().headers())
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


async def test_a_client_that_leaves_before_it_has_asked_gets_nothing(replicas: Replicas) -> None:
    client = await replicas.legacy()
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(k.lower().encode(), v.encode()) for k, v in client.headers().items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    await replicas.services[0](scope, receive, send)
    assert sent == []


async def test_a_body_in_pieces_is_one_body(replicas: Replicas) -> None:
    client = await replicas.legacy()
    pieces = [{"type": "http.request", "body": bytes([b]), "more_body": True} for b in json.dumps(PING).encode()]
    pieces.append({"type": "http.request", "body": b"", "more_body": False})
    sent: list[Any] = []

    async def receive() -> Any:
        return pieces.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(k.lower().encode(), v.encode()) for k, v in client.headers().items()]
    await replicas.services[0]({"type": "http", "method": "POST", "path": "/mcp", "headers": headers}, receive, send)
    assert json.loads(sent[1]["body"]) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_a_request_id_comes_back_as_it_was(replicas: Replicas) -> None:
    client = await replicas.legacy()
    for request_id in ("seven", 7, 10**30, 0, "", "ü☃", "\ud800"):
        answer = await (await client.post({**PING, "id": request_id})).json()
        assert answer == {"jsonrpc": "2.0", "id": request_id, "result": {}}


async def test_nothing_of_an_unforeseen_error_is_told_and_all_of_it_is_logged(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(Tasks, "get", broken)
    for client in (await replicas.legacy(), replicas.modern()):
        with caplog.at_level(logging.ERROR):
            reply = await client.send("tasks/get", {"taskId": "x"})
        error = (await reply.json())["error"]
        assert (reply.status, error) == (200, {"code": -32603, "message": "Internal server error"})
        assert "secret" in caplog.text


@pytest.mark.fault("T6")
async def test_an_api_server_that_is_away_is_an_error_that_says_try_again(replicas: Replicas) -> None:
    client = await replicas.legacy()
    replicas.api.away = True
    error = await client.error("tasks/get", {"taskId": "x"})
    assert (error["code"], error["data"]["retryAfterMs"]) == (-32603, 1000)
    replicas.api.away = False
    with pytest.raises(ApiFailure):
        raise ApiFailure(0, "Unreachable", "")


@pytest.mark.req("R-9.3")
@pytest.mark.fault("P27")
async def test_a_limit_says_what_it_is_and_when_to_come_back(start: Start) -> None:
    replicas = await start(1, polls="1/minute", lookups="100/minute")
    for client in (await replicas.legacy(), replicas.modern()):
        await client.send("tasks/get", {"taskId": "x"})
        reply = await client.send("tasks/get", {"taskId": "x"})
        error = (await reply.json())["error"]
        assert (error["code"], error["data"]["reason"], error["data"]["limit"]) == (-32029, "polls", "1/minute")
        if client.version == "2026-07-28":
            assert (reply.status, int(reply.headers["retry-after"]) >= 1) == (429, True)
        else:
            assert reply.status == 200


async def test_a_replica_that_does_not_know_its_tools_yet_says_so(replicas: Replicas) -> None:
    client = await replicas.legacy()
    service = replicas.services[0]
    assert service.core is not None
    from mcptasks_service.entry import Entry

    informer = service.core.informers[1]
    informer.synced.clear()
    entry = Entry(service.core, service.settings, service._signer, service.closing)
    reply = await request(entry, "POST", body=json.dumps(PING).encode(), headers=client.headers())
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert (await reply.json())["error"]["code"] == -32603
    informer.synced.set()
    reply = await request(entry, "POST", body=json.dumps(PING).encode(), headers=client.headers())
    assert reply.status == 200


async def test_requests_are_counted_by_method_and_an_invention_is_not_named(replicas: Replicas) -> None:
    client = Legacy([replicas.services[0]])
    await client.start()
    await client.call("no/such")
    core = replicas.services[0].core
    assert core is not None
    text = core.metrics.render().decode()
    assert 'mcptasks_service_requests_total{code="-32601",era="legacy",method="other"} 1.0' in text
    assert 'mcptasks_service_requests_total{code="0",era="legacy",method="initialize"} 1.0' in text
    assert "no/such" not in text


def test_both_kinds_of_answers_are_asked_for() -> None:
    assert BOTH == "application/json, text/event-stream"
