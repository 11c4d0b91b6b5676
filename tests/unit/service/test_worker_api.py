"""The worker API over HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request, Response

from mcptasks_crds.errors import ApiFailure
from mcptasks_crds.lifecycle import State
from mcptasks_service import worker_api
from mcptasks_service.errors import InvalidParams, ServiceError
from mcptasks_service.worker_api import refused, router
from mcptasks_service.worker_identity import WorkerRefused

from .core_parts import Parts, replica

RESULT = {"content": [{"type": "text", "text": "hi"}]}
AWAY = ApiFailure(0, "Unreachable", "no route to host")


@asynccontextmanager
async def serving(parts: Parts) -> AsyncIterator[httpx2.AsyncClient]:
    app = FastAPI()
    app.include_router(router(parts.core.api, parts.core.workers, parts.core.reports))

    async def on_refusal(_: Request, error: Any) -> Response:
        return refused(parts.core.metrics, error)

    app.add_exception_handler(WorkerRefused, on_refusal)
    app.add_exception_handler(ServiceError, on_refusal)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://service/worker/v1") as client:
        yield client


@asynccontextmanager
async def worker(**fields: Any) -> AsyncIterator[tuple[Parts, httpx2.AsyncClient]]:
    """A task with a pod that works on it, and its client."""
    async with replica() as parts, serving(parts) as client:
        client.headers["Authorization"] = await parts.worker(await parts.make("t", **fields))
        yield parts, client


def state(parts: Parts) -> State:
    (task,) = parts.core.informers[0]
    return task.state


async def test_a_worker_reads_its_arguments_as_they_were_stored() -> None:
    async with worker(arguments={"path": "é<\0"}) as (parts, client):
        answer = await client.get("/arguments")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.text == '{"path": "é<\\u0000"}'
        parts.api.refuse("get mcptasks", AWAY)
        again = await client.get("/arguments")
        assert (again.status_code, again.headers["retry-after"]) == (503, "1")


async def test_arguments_of_a_task_that_has_just_gone_are_not_found() -> None:
    async with worker() as (parts, client):
        await client.get("/arguments")
        parts.api.moving.clear()
        for key in [key for key in parts.api.objects if key[0] == "mcptasks"]:
            del parts.api.objects[key]
        assert (await client.get("/arguments")).status_code == 404
        parts.api.moving.set()


async def test_a_worker_reports_progress_and_then_its_result() -> None:
    async with worker() as (parts, client):
        answer = await client.post("/progress", json={"progress": 1, "total": 3, "message": "compiling"})
        (task,) = parts.core.informers[0]
        assert (answer.status_code, answer.json()) == (202, {"task": task.name, "state": "submitted"})
        answer = await client.put("/result", content=json.dumps(RESULT))
        assert (answer.status_code, answer.json()) == (200, {"task": task.name, "state": "completed"})
        assert state(parts) is State.COMPLETED
        assert (await client.put("/result", content=json.dumps(RESULT))).status_code == 200
        late = await client.post("/progress", json={"progress": 2})
        assert (late.status_code, late.json()["error"]["reason"]) == (409, "TaskEnded")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"progress": "NaN"}', "progress: Input should be a finite number"),
        ('{"progress": 1e999}', "progress: Input should be a finite number"),
        ('{"progress": 1, "total": NaN}', "total: Input should be a finite number"),
        ("{}", "progress: Field required"),
        ('{"progress": 1, "message": 7}', "message: Input should be a valid string"),
        (json.dumps({"progress": 1, "message": "x" * 5000}), "message: String should have at most 4096 characters"),
        ("x", "body: Invalid JSON"),
        ("", "body: Invalid JSON"),
    ],
)
async def test_progress_that_is_none_is_refused_with_what_is_wrong(body: str, words: str) -> None:
    async with worker() as (parts, client):
        answer = await client.post("/progress", content=body)
        assert answer.status_code == 422
        assert answer.json()["error"]["reason"] == "bad_progress"
        assert words in answer.json()["error"]["message"]
        assert parts.api.count("patch mcptasks") == 0


async def test_a_progress_report_of_a_megabyte_is_none() -> None:
    async with worker() as (_, client):
        answer = await client.post("/progress", content=b"x" * 1_000_000)
        assert (answer.status_code, answer.json()["error"]["reason"]) == (413, "bad_progress")


async def test_another_result_than_the_first_is_refused() -> None:
    async with worker() as (parts, client):
        await client.put("/result", content=json.dumps(RESULT))
        answer = await client.put("/result", content=json.dumps({"content": []}))
        assert (answer.status_code, answer.json()["error"]["reason"]) == (409, "TaskEnded")
        assert 'worker_refusals_total{reason="TaskEnded"} 1.0' in parts.core.metrics.render().decode()


@pytest.mark.fault("E6", "E7")
async def test_a_result_beyond_any_limit_is_not_read_to_its_end_and_fails_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_api, "RESULT_BODY_LIMIT", 1000)
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"x" * 100

    async with worker() as (parts, client):
        answer = await client.put("/result", content=endless())
        assert (answer.status_code, answer.json()["error"]["reason"]) == (413, "too_large")
        assert "more than 1000 bytes, and at most 1048576" in answer.json()["error"]["message"]
        assert state(parts) is State.FAILED


@pytest.mark.fault("P5")
@pytest.mark.parametrize("header", [None, "Bearer wrong"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/arguments"), ("POST", "/progress"), ("PUT", "/result")])
async def test_no_or_a_bad_token_gets_nothing_whatever_is_asked(header: str | None, method: str, path: str) -> None:
    async with worker() as (parts, client):
        del client.headers["Authorization"]
        headers = {"Authorization": header} if header else {}
        body = json.dumps({"progress": 1} if path == "/progress" else RESULT)
        answer = await client.request(method, path, content=body, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["reason"] == ("bad_token" if header else "no_token")
        assert state(parts) is State.SUBMITTED


async def test_a_token_is_in_no_answer_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with worker() as (_, client):
        client.headers["Authorization"] = "Bearer hunter2"
        answer = await client.put("/result", content=json.dumps(RESULT))
        assert "hunter2" not in answer.text + caplog.text


async def test_with_the_api_server_away_a_worker_is_told_to_come_back() -> None:
    async with worker() as (parts, client):
        parts.api.refuse("create mcptaskresults", AWAY)
        answer = await client.put("/result", content=json.dumps(RESULT))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"]["reason"] == "Unavailable"
        assert (await client.put("/result", content=json.dumps(RESULT))).status_code == 200


async def test_what_nobody_expects_of_a_worker_is_a_fault_of_ours() -> None:
    async with replica() as parts:
        assert refused(parts.core.metrics, InvalidParams("x")).status_code == 500
