"""One replica: its routes, its life, and official clients against it over real HTTP."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcptasks_service import __main__ as main_module
from mcptasks_service.app import Service, create_app
from mcptasks_service.settings import Settings

from .asgi_client import A_RELATED, A_TASK, EXTENSION, request
from .conftest import Replicas, Start


class Alternating:
    """A balancer that gives each request to the next replica; it can cut the next stream after its first event."""

    def __init__(self, apps: list[ASGIApp]) -> None:
        self._apps = itertools.cycle(apps)
        self.cut = asyncio.Event()
        self.cuts = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bodies = 0

        async def passed(message: Message) -> None:
            nonlocal bodies
            await send(message)
            bodies += message["type"] == "http.response.body"
            if bodies == 1 and message.get("more_body") and self.cut.is_set():
                self.cut.clear()
                self.cuts += 1
                raise ConnectionResetError

        await next(self._apps)(scope, receive, passed)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The address of ``app`` on a free port."""
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="off", log_level="critical", ws="none")
    )
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(5):
        while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        await serving


class Raw(types.Result):
    model_config = ConfigDict(extra="allow")


class Created(types.Result):
    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class TaskParams(types.RequestParams):
    task_id: str = Field(serialization_alias="taskId")


class TaskRequest(types.Request[TaskParams, str]):
    name_param = "taskId"
    method: str
    params: TaskParams


class Tasks(ClientExtension):
    identifier = EXTENSION

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Created, resolve=self.resolve)]

    async def resolve(self, created: Any, ctx: ClaimContext) -> types.CallToolResult:
        raise AssertionError("the test asks for the handle itself")


async def raw(client: Client, method: str, **params: Any) -> dict[str, Any]:
    answer = await client.session.send_request(types.Request[dict[str, Any], str](method=method, params=params), Raw)
    return answer.model_dump(by_alias=True, exclude_none=True)


async def test_the_official_client_of_the_handshake_era(replicas: Replicas) -> None:
    seen: list[float] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with served(Alternating([*replicas.services])) as url, Client(url, mode="legacy") as client:
        meta: Any = {A_TASK: {"taskId": "mine", "keepAlive": 1000}}
        call = asyncio.ensure_future(client.session.call_tool("build", {}, meta=meta, progress_callback=progress))
        await replicas.api.made()
        await replicas.api.work("mine", progress=1, total=2)
        related = {A_RELATED: {"taskId": "mine"}}
        async with asyncio.timeout(5):
            while not seen:
                assert (await raw(client, "tasks/get", taskId="mine", _meta=related))["status"] == "working"
        await replicas.api.complete("mine", '{"content":[{"type":"text","text":"hello"}]}')
        done = await call
        assert done.content == [types.TextContent(type="text", text="hello")]
        assert (await raw(client, "tasks/result", taskId="mine", _meta=related))["_meta"] == related
        made = await raw(client, "tools/call", name="build", task={"ttl": 1000})
        assert made["task"]["status"] == "working"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nope", {})


@pytest.mark.fault("T10")
async def test_the_official_client_comes_back_to_a_stream_that_broke_off(replicas: Replicas) -> None:
    balancer = Alternating([*replicas.services])
    async with served(balancer) as url, Client(url, mode="legacy") as client:
        await client.list_tools()
        balancer.cut.set()
        call = asyncio.ensure_future(client.call_tool("build", {}))
        await replicas.api.made()
        async with asyncio.timeout(5):
            while not balancer.cuts:  # noqa: ASYNC110 (a wish of the balancer, seen by polling)
                await asyncio.sleep(0.01)
        await replicas.api.complete(None, '{"content":[{"type":"text","text":"all the same"}]}')
        async with asyncio.timeout(5):
            done = await call
        assert done.content == [types.TextContent(type="text", text="all the same")]


async def test_the_official_client_of_2026_07_28(replicas: Replicas) -> None:
    async with (
        served(Alternating([*replicas.services])) as url,
        Client(url, extensions=[Tasks()]) as client,
    ):
        assert client.session.protocol_version == "2026-07-28"
        made: Any = await client.session.call_tool("build", {}, allow_claimed=True)
        await replicas.api.complete(made.task_id, '{"content":[]}')
        got = await client.session.send_request(
            TaskRequest(method="tasks/get", params=TaskParams(task_id=made.task_id)), Raw
        )
        assert got.model_dump()["result"] == {"content": []}
        with pytest.raises(MCPError, match="not found"):
            await client.session.send_request(TaskRequest(method="tasks/get", params=TaskParams(task_id="none")), Raw)


@pytest.mark.req("R-9.3")
async def test_the_official_client_reads_a_limit_from_a_429(start: Start) -> None:
    replicas = await start(1, polls="1/minute")
    async with served(replicas.services[0]) as url, Client(url, extensions=[Tasks()]) as client:
        ask = TaskRequest(method="tasks/get", params=TaskParams(task_id="none"))
        with pytest.raises(MCPError, match="not found"):
            await client.session.send_request(ask, Raw)
        with pytest.raises(MCPError) as refused:
            await client.session.send_request(ask, Raw)
        assert (refused.value.error.code, refused.value.error.data["limit"]) == (-32029, "1/minute")


async def test_probes_and_metrics(replicas: Replicas) -> None:
    service = replicas.services[0]
    for path, part in (("/healthz", b"alive"), ("/readyz", b"ready"), ("/metrics", b"mcptasks_service_limit")):
        reply = await request(service, "GET", path)
        assert (reply.status, part in await reply.body()) == (200, True)
    assert service.core is not None
    service.core.informers[0].synced.clear()
    assert (await request(service, "GET", "/readyz")).status == 503
    service.core.informers[0].synced.set()
    service.closing.set()
    assert (await request(service, "GET", "/readyz")).status == 503
    assert (await request(service, "GET", "/healthz")).status == 200


async def test_a_watch_that_is_silent_for_too_long_is_no_life(replicas: Replicas) -> None:
    await replicas.api.offer("one-more")
    core = replicas.services[0].core
    assert core is not None
    async with asyncio.timeout(5):
        while not core.informers[1].connected:  # noqa: ASYNC110 (the informer has no event for it)
            await asyncio.sleep(0)
    replicas.advance(3600)
    assert (await request(replicas.services[0], "GET", "/healthz")).status == 503


async def test_a_worker_without_a_token_is_refused(replicas: Replicas) -> None:
    reply = await request(replicas.services[0], "GET", "/worker/v1/arguments")
    assert (reply.status, "error" in await reply.json()) == (401, True)


async def test_a_service_that_was_not_started_says_how() -> None:
    service = Service(Settings(signing_keys=["k" * 32]))
    reply = await request(service, "GET", "/healthz")
    assert reply.status == 500
    assert reply.running is not None
    with pytest.raises(RuntimeError, match="has not been started"):
        await reply.running
    assert (await request(service, "POST")).status == 404


def test_the_app_takes_its_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPTASKS_PORT", "1234")
    monkeypatch.setenv("MCPTASKS_SIGNING_KEYS", f'["{"k" * 32}"]')
    assert create_app().settings.port == 1234


async def test_a_shutdown_ends_open_streams_at_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = await start(1)
    service = replicas.services[0]
    service.settings.host, service.settings.port = "127.0.0.1", 0
    monkeypatch.setattr(service, "_start", _again(service))
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("gc.set_threshold", lambda *_: None)
    replica = main_module.Replica(service)
    serving = asyncio.create_task(replica.serve())
    async with asyncio.timeout(5):
        while not replica.started:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0.01)
    port = replica.servers[0].sockets[0].getsockname()[1]
    client = await replicas.legacy()
    async with (
        httpx2.AsyncClient() as http,
        http.stream("GET", f"http://127.0.0.1:{port}/mcp", headers=client.headers()) as stream,
    ):
        assert stream.status_code == 200
        replica.should_exit = True
        async with asyncio.timeout(5):
            assert b"ping" in await stream.aread()
            await serving


def _again(service: Service) -> Any:
    """The core that runs already, for a lifespan that would start one."""
    core = service.core

    @asynccontextmanager
    async def running(_: Settings) -> AsyncIterator[Any]:
        yield core

    return running


def test_main_serves_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Service] = []
    monkeypatch.setattr(main_module.Replica, "run", lambda self: served.append(self._service))
    main_module.main()
    assert isinstance(served[0], Service)
