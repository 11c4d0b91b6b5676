"""The API client, against a small HTTP server that plays the API server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubernetes.aio import config

from mcptasks_crds import api as api_module
from mcptasks_crds.api import Api
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, Gone, NotFound, Refused
from mcptasks_crds.kinds import POD, TASK, TOKEN_REVIEW

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
TASKS = "/apis/mcptasks.dev/v1alpha1/namespaces/ns/mcptasks"


def kubeconfig(path: Path, server: str) -> str:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": "secret"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)


@pytest.fixture
def serving(tmp_path: Path) -> Callable[[Handler], Any]:
    """An Api whose every request goes to one handler."""

    @asynccontextmanager
    async def serving(handler: Handler) -> AsyncIterator[Api]:
        runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with await Api.connect(kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{port}")) as api:
                yield api
        finally:
            await runner.cleanup()

    return serving


class Recorder:
    """Answers everything with one JSON document and keeps what it was asked."""

    def __init__(self, status: int = 200, body: Any = None, text: str | None = None) -> None:
        self.status, self.text = status, json.dumps({} if body is None else body) if text is None else text
        self.request: web.BaseRequest | None = None
        self.body: Any = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.request = request
        raw = await request.read()
        self.body = json.loads(raw) if raw else None
        return web.Response(status=self.status, text=self.text)

    @property
    def asked(self) -> tuple[str, str]:
        assert self.request is not None
        return self.request.method, self.request.path_qs

    def header(self, name: str) -> str | None:
        assert self.request is not None
        return self.request.headers.get(name)


def status(code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None) -> dict[str, Any]:
    details = {"details": {"causes": causes}} if causes else {}
    return {"kind": "Status", "code": code, "reason": reason, "message": message, **details}


async def test_a_create_says_the_kind_and_whether_it_is_only_tried(serving: Any) -> None:
    server = Recorder(201, {"metadata": {"name": "a"}})
    async with serving(server) as api:
        assert await api.create(TASK, "ns", {"metadata": {"name": "a"}}) == {"metadata": {"name": "a"}}
        assert server.asked == ("POST", TASKS)
        assert server.body == {"apiVersion": TASK.api_version, "kind": "MCPTask", "metadata": {"name": "a"}}
        assert server.header("Authorization") == "Bearer secret"
        assert server.header("User-Agent") == "mcptasks"
        await api.create(POD, "ns", {}, dry_run=True)
        assert server.asked == ("POST", "/api/v1/namespaces/ns/pods?dryRun=All")


async def test_a_get_escapes_the_name(serving: Any) -> None:
    server = Recorder(body={"a": 1})
    async with serving(server) as api:
        assert await api.get(TASK, "ns", "a/../b?c") == {"a": 1}
        assert server.asked == ("GET", f"{TASKS}/a%2F..%2Fb%3Fc")


async def test_a_list_asks_for_one_page(serving: Any) -> None:
    server = Recorder(body={"items": []})
    async with serving(server) as api:
        await api.list(TASK, None)
        assert server.asked == ("GET", "/apis/mcptasks.dev/v1alpha1/mcptasks?limit=500")
        await api.list(TASK, "ns", labels="a=b", fields="status.state=working", limit=2, after="x+y")
        assert server.asked[1].partition("?")[2] == (
            "labelSelector=a%3Db&fieldSelector=status.state%3Dworking&limit=2&continue=x%2By"
        )


async def test_a_patch_says_that_it_is_a_merge_patch_and_guards_the_version(serving: Any) -> None:
    server = Recorder()
    async with serving(server) as api:
        await api.patch(
            TASK, "ns", "a", {"metadata": {"labels": {"l": None}}}, subresource="status", resource_version="7"
        )
        assert server.asked == ("PATCH", f"{TASKS}/a/status")
        assert server.header("Content-Type") == "application/merge-patch+json"
        assert server.body == {"metadata": {"labels": {"l": None}, "resourceVersion": "7"}}
        await api.patch(TASK, "ns", "a", {"spec": {}})
        assert server.body == {"spec": {}}


async def test_a_put_carries_the_whole_object(serving: Any) -> None:
    server = Recorder()
    async with serving(server) as api:
        await api.replace(TASK, "ns", "a", {"metadata": {"resourceVersion": "7"}})
        assert server.asked == ("PUT", f"{TASKS}/a")
        assert server.body["metadata"] == {"resourceVersion": "7"}


@pytest.mark.fault("P12")
@pytest.mark.parametrize(
    ("guards", "sent"),
    [
        ({}, {}),
        ({"uid": "u"}, {"uid": "u"}),
        ({"uid": "u", "resource_version": "7"}, {"uid": "u", "resourceVersion": "7"}),
    ],
)
async def test_a_delete_always_reaches_what_is_owned(serving: Any, guards: Any, sent: Any) -> None:
    server = Recorder()
    async with serving(server) as api:
        await api.delete(TASK, "ns", "a", **guards)
        assert server.asked == ("DELETE", f"{TASKS}/a")
        assert server.body["propagationPolicy"] == "Background"
        assert server.body["preconditions"] == sent


async def test_a_review_answers_its_status(serving: Any) -> None:
    server = Recorder(201, {"status": {"authenticated": True}})
    async with serving(server) as api:
        assert await api.review(TOKEN_REVIEW, {"token": "t"}) == {"authenticated": True}
        assert server.asked == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
        assert server.body["spec"] == {"token": "t"}
        server.text = "{}"
        assert await api.review(TOKEN_REVIEW, {}) == {}


async def test_a_log_comes_as_the_bytes_it_is(serving: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert request.path_qs == "/api/v1/namespaces/ns/pods/p/log?container=tool&tailLines=8"
        return web.Response(body=b"\xff\xfe\n")

    async with serving(handler) as api:
        assert await api.log("ns", "p", "tool", tail_lines=8) == b"\xff\xfe\n"


CAUSES = [{"reason": "FieldValueForbidden", "message": "Forbidden: …", "field": "<nil>"}]


@pytest.mark.parametrize(
    ("code", "error", "retryable"),
    [
        (404, NotFound, False),
        (409, Conflict, False),
        (410, Gone, False),
        (422, Refused, False),
        (400, Refused, False),
        (403, ApiFailure, False),
        (429, ApiFailure, True),
        (500, ApiFailure, True),
        (503, ApiFailure, True),
    ],
)
async def test_a_refusal_is_told_by_its_type_with_what_the_server_said(
    serving: Any, code: int, error: type[ApiFailure], retryable: bool
) -> None:
    async with serving(Recorder(code, status(code, "Why", "what was wrong", CAUSES))) as api:
        with pytest.raises(ApiFailure) as refused:
            await api.patch(TASK, "ns", "a", {})
    said = refused.value
    assert type(said) is error
    assert (said.code, said.reason, str(said), said.retryable) == (code, "Why", "what was wrong", retryable)
    assert said.causes == tuple(CAUSES)


async def test_a_taken_name_is_told_from_a_conflict(serving: Any) -> None:
    async with serving(Recorder(409, status(409, "AlreadyExists", "taken"))) as api:
        with pytest.raises(AlreadyExists, match="taken"):
            await api.create(TASK, "ns", {})


@pytest.mark.parametrize("text", ["", "<html>Bad Gateway</html>", "[1]", '"x"', '{"details": 7}', "{"])
async def test_a_failure_that_is_no_status_is_still_a_failure(serving: Any, text: str) -> None:
    async with serving(Recorder(502, text=text)) as api:
        with pytest.raises(ApiFailure) as refused:
            await api.get(TASK, "ns", "a")
    assert refused.value.code == 502
    assert str(refused.value)


@pytest.mark.parametrize("text", ["", "<html>Log in</html>", "[]", "null"])
async def test_a_success_that_is_no_object_is_a_failure_worth_retrying(serving: Any, text: str) -> None:
    async with serving(Recorder(200, text=text)) as api:
        with pytest.raises(ApiFailure, match="no JSON object") as refused:
            await api.get(TASK, "ns", "a")
    assert refused.value.retryable


async def test_a_server_that_is_away_is_unreachable(tmp_path: Path) -> None:
    async with await Api.connect(kubeconfig(tmp_path / "k", "http://127.0.0.1:9")) as api:
        with pytest.raises(ApiFailure, match="can't be reached") as refused:
            await api.get(TASK, "ns", "a")
        assert (refused.value.code, refused.value.reason, refused.value.retryable) == (0, "Unreachable", True)
        with pytest.raises(ApiFailure, match="can't be reached"):
            await anext(api.watch(TASK, "ns", "1"))


async def test_an_answer_that_breaks_off_is_unreachable(serving: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.close()
        return response

    async with serving(handler) as api:
        with pytest.raises(ApiFailure, match="can't be reached"):
            await api.get(TASK, "ns", "a")


@pytest.mark.fault("O7", "T8")
async def test_a_request_that_gets_no_answer_ends(serving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await gone.wait()
        return web.Response()

    monkeypatch.setattr(api_module, "REQUEST_TIMEOUT", 0.05)
    async with serving(handler) as api:
        with pytest.raises(ApiFailure, match="can't be reached"):
            await api.get(TASK, "ns", "a")
        gone.set()


def streaming(*chunks: bytes, code: int = 200) -> Handler:
    """Sends the chunks one by one and ends the stream cleanly."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=code)
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response

    return handler


def event(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "object": fields}).encode() + b"\n"


async def watched(api: Api) -> list[dict[str, Any]]:
    return [e async for e in api.watch(TASK, "ns", "7")]


async def test_a_watch_asks_for_bookmarks_from_a_version(serving: Any) -> None:
    server = Recorder(text="")
    async with serving(server) as api:
        assert await watched(api) == [], "a stream that ends cleanly is no failure"
        query = "watch=true&allowWatchBookmarks=true&resourceVersion=7"
        assert server.asked == ("GET", f"{TASKS}?{query}")
        assert [e async for e in api.watch(TASK, None, "8", labels="a")] == []
        assert server.asked[1].endswith("&resourceVersion=8&labelSelector=a")


@pytest.mark.parametrize("size", [1, 2, 7, 4096, 10**9])
async def test_events_are_read_wherever_the_network_splits_them(serving: Any, size: int) -> None:
    events = [event("ADDED", n=1, text="a" * 50), b"\n", event("MODIFIED", n=2, text="é日😀"), event("BOOKMARK", n=3)]
    whole = b"".join(events)
    async with serving(streaming(*(whole[i : i + size] for i in range(0, len(whole), size)))) as api:
        got = await watched(api)
    assert [(e["type"], e["object"]["n"]) for e in got] == [("ADDED", 1), ("MODIFIED", 2), ("BOOKMARK", 3)]
    assert got[1]["object"]["text"] == "é日😀"


async def test_events_far_longer_than_any_buffer_are_read(serving: Any) -> None:
    long = event("ADDED", text="x" * 3_000_000)
    parts = [long[i : i + 60_000] for i in range(0, len(long), 60_000)]
    async with serving(streaming(*parts, event("MODIFIED", text="y"))) as api:
        got = await watched(api)
    assert [len(e["object"]["text"]) for e in got] == [3_000_000, 1]


async def test_a_line_that_breaks_off_at_the_end_is_no_event(serving: Any) -> None:
    async with serving(streaming(event("ADDED", n=1), b'{"type": "MODI')) as api:
        assert len(await watched(api)) == 1


@pytest.mark.parametrize(("code", "error"), [(410, Gone), (500, ApiFailure)])
async def test_an_error_in_the_stream_is_raised_by_its_code(serving: Any, code: int, error: type[ApiFailure]) -> None:
    line = json.dumps({"type": "ERROR", "object": status(code, "Expired", "too old resource version")}).encode()
    async with serving(streaming(event("ADDED", n=1), line + b"\n")) as api:
        stream = api.watch(TASK, "ns", "7")
        assert (await anext(stream))["type"] == "ADDED"
        with pytest.raises(ApiFailure, match="too old") as refused:
            await anext(stream)
    assert type(refused.value) is error


@pytest.mark.parametrize(("code", "error"), [(410, Gone), (403, ApiFailure), (503, ApiFailure)])
async def test_a_watch_that_is_refused_says_why(serving: Any, code: int, error: type[ApiFailure]) -> None:
    async with serving(Recorder(code, status(code, "Why", "what was wrong"))) as api:
        with pytest.raises(ApiFailure, match="what was wrong") as refused:
            await watched(api)
    assert type(refused.value) is error


async def test_a_stream_of_something_else_is_a_failure(serving: Any) -> None:
    async with serving(streaming(b"<html>\n")) as api:
        with pytest.raises(ApiFailure, match="no JSON object"):
            await watched(api)


async def test_a_stream_that_breaks_is_a_failure(serving: Any) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("ADDED", n=1))
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving(handler) as api:
        with pytest.raises(ApiFailure, match="can't be reached"):
            await watched(api)


async def test_a_watch_that_has_gone_silent_is_given_up(serving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("ADDED", n=1))
        await over.wait()
        return response

    monkeypatch.setattr(api_module, "WATCH_SILENCE", 0.1)
    async with serving(handler) as api:
        stream = api.watch(TASK, "ns", "7")
        assert (await anext(stream))["object"] == {"n": 1}
        with pytest.raises(ApiFailure, match="can't be reached"):
            await anext(stream)
        over.set()


async def test_a_watch_that_is_left_closes_its_connection(serving: Any) -> None:
    left = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(event("BOOKMARK"))
                await asyncio.sleep(0.01)
        finally:
            left.set()

    async with serving(handler) as api:
        stream = api.watch(TASK, "ns", "7")
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(5):
            await left.wait()


async def test_without_a_kubeconfig_named_it_is_the_pod_s_own_account_else_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    given: list[str] = []

    def in_cluster(client_configuration: Any) -> None:
        client_configuration.host = "https://cluster"

    async def of_user(client_configuration: Any) -> None:
        client_configuration.host = "https://user"

    async def of_file(config_file: str, client_configuration: Any) -> None:
        given.append(config_file)

    def host(api: Api) -> str:
        return str(api._configuration.host)

    monkeypatch.setattr(config, "load_kube_config", of_user)
    async with await Api.connect() as api:
        assert host(api) == "https://user"
    monkeypatch.setattr(config, "load_incluster_config", in_cluster)
    async with await Api.connect() as api:
        assert host(api) == "https://cluster"
    monkeypatch.setattr(config, "load_kube_config", of_file)
    async with await Api.connect("somewhere"):
        assert given == ["somewhere"]
