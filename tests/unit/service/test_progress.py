"""Progress: few writes, the last word always, and none after the end."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure, Conflict, NotFound
from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_service import progress as progress_module
from mcptasks_service.errors import TaskEnded
from mcptasks_service.progress import in_words

from .core_parts import BOUND, Parts, replica

AWAY = ApiFailure(0, "Unreachable", "no route to host")
CONFLICT = Conflict(409, "Conflict", "modified")


class Clockwork:
    """asyncio as the writer uses it, with pauses that last until the test says so."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.over = asyncio.Event()
        self.paused = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.over = over = asyncio.Event()
        self.paused.set()
        await over.wait()

    async def tick(self) -> None:
        """End the present pause."""
        self.paused.clear()
        self.over.set()
        await asyncio.sleep(0)


@pytest.fixture
def clockwork(monkeypatch: pytest.MonkeyPatch) -> Clockwork:
    made = Clockwork()
    names = {name: getattr(asyncio, name) for name in ("create_task", "gather", "wait_for")}
    monkeypatch.setattr(progress_module, "asyncio", SimpleNamespace(**names, sleep=made.sleep))
    return made


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not true():  # noqa: ASYNC110 (a fake pauses nobody: the loop has only to go round)
            await asyncio.sleep(0)


def report(parts: Parts, task: TaskRecord, n: float) -> None:
    parts.core.reports.progress(task, n, 10_000, f"step {n:g}")


def writer(parts: Parts) -> Any:
    return parts.core.reports._progress


@pytest.mark.req("R-10.2")
async def test_ten_thousand_reports_are_few_writes_and_the_last_lands(clockwork: Clockwork) -> None:
    async with replica(progress_seconds=1) as parts:
        task = await parts.make("t")
        for n in range(10_000):
            report(parts, task, n)
            if n % 100 == 0:
                await asyncio.sleep(0)
        await until(clockwork.paused.is_set)
        await clockwork.tick()
        await until(clockwork.paused.is_set)
        stored = await parts.stored(task)
        assert stored.progress is not None
        assert stored.progress["progress"] == 9999
        assert stored.progress["text"] == "9999/10000 step 9999"
        assert parts.api.count("patch mcptasks") == 2
        assert set(clockwork.pauses) == {1.0}
        assert 'progress_reported_total{tool="build"} 10000.0' in parts.core.metrics.render().decode()
        await clockwork.tick()
        await until(lambda: not writer(parts)._writers)
        assert not writer(parts)._pending


async def test_a_report_after_the_pause_is_written_at_once(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        for n in (1, 2):
            report(parts, task, n)
            await until(clockwork.paused.is_set)
            await clockwork.tick()
            await until(lambda: not writer(parts)._writers)
        assert parts.api.count("patch mcptasks") == 2


async def test_a_report_that_came_before_the_last_write_costs_no_conflict(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        report(parts, task, 1)
        report(parts, task, 2)
        await until(clockwork.paused.is_set)
        report(parts, task, 3)  # with the state of before the first write
        before = len(parts.api.requests)
        await clockwork.tick()
        await until(clockwork.paused.is_set)
        assert parts.api.requests[before:] == ["patch mcptasks"]


@pytest.mark.req("R-3.2")
async def test_after_the_end_nothing_is_written(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        report(parts, task, 1)
        await until(clockwork.paused.is_set)
        report(parts, task, 2)
        done = await parts.core.reports.result(await parts.stored(task), b'{"content":[]}')
        with pytest.raises(TaskEnded):
            report(parts, done, 3)
        await clockwork.tick()
        await until(lambda: not writer(parts)._writers)
        stored = await parts.stored(task)
        assert stored.progress is not None
        assert stored.progress["progress"] == 1
        assert stored.resource_version == done.resource_version


async def test_an_end_that_this_replica_has_yet_to_hear_of_stops_the_writing_too(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.fail("t", state=State.CANCELLED)
        ended = await parts.stored(task)
        report(parts, task, 1)
        await until(clockwork.paused.is_set)
        assert await parts.stored(task) == ended
        assert not writer(parts)._pending
        parts.api.moving.set()


async def test_a_report_that_meets_another_write_is_written_on_top_of_it(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.work("t")
        report(parts, task, 1)
        await until(clockwork.paused.is_set)
        stored = await parts.stored(task)
        assert (stored.state, stored.progress) == (State.WORKING, in_words(1, 10_000, "step 1").wire())
        parts.api.moving.set()


@pytest.mark.parametrize("error", [AWAY, ApiFailure(503, "", "overloaded")])
async def test_a_report_that_the_api_server_did_not_take_is_written_later(
    clockwork: Clockwork, error: ApiFailure
) -> None:
    async with replica(progress_seconds=0) as parts:
        task = await parts.make("t")
        parts.api.refuse("patch mcptasks", error, times=2)
        report(parts, task, 1)
        for _ in range(2):
            await until(clockwork.paused.is_set)
            await clockwork.tick()
        await until(clockwork.paused.is_set)
        stored = await parts.stored(task)
        assert stored.progress is not None
        assert stored.progress["progress"] == 1
        assert clockwork.pauses == [1.0, 1.0, 0.0], "and the API server is not hammered meanwhile"


async def test_conflicts_without_end_are_left_for_later(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.refuse("patch mcptasks", CONFLICT, times=3)
        report(parts, task, 1)
        await until(clockwork.paused.is_set)
        assert parts.api.count("patch mcptasks") == 3
        await clockwork.tick()
        await until(clockwork.paused.is_set)
        stored = await parts.stored(task)
        assert stored.progress is not None


async def test_progress_of_a_task_that_is_gone_is_dropped(clockwork: Clockwork) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.refuse("patch mcptasks", NotFound(404, "NotFound", "gone"))
        report(parts, task, 1)
        await until(clockwork.paused.is_set)
        assert not writer(parts)._pending
        await parts.tasks.delete(parts.caller, "t")
        await clockwork.tick()
        await until(lambda: not writer(parts)._writers)
        before = len(parts.api.requests)
        report(parts, task, 2)
        await until(lambda: not writer(parts)._pending)
        assert len(parts.api.requests) == before


async def test_the_end_of_the_process_writes_what_is_pending(clockwork: Clockwork) -> None:
    async with replica() as parts:
        tasks = [await parts.make(str(n)) for n in range(3)]
        for n in (1, 2):
            for task in tasks:
                report(parts, task, n)
            await until(clockwork.paused.is_set)
    for task in tasks:
        stored = await parts.stored(task)
        assert stored.progress is not None
        assert stored.progress["progress"] == 2


async def test_the_end_of_the_process_does_not_wait_for_an_api_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress_module, "CLOSE_SECONDS", 0.05)
    async with replica() as parts:
        task = await parts.make("t")

        async def hang(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(parts.api, "patch", hang)
        report(parts, task, 1)
        await asyncio.sleep(0)
    assert "the last progress of 1 tasks is not written" in caplog.text


@pytest.mark.parametrize(
    ("progress", "total", "message", "text"),
    [
        (3, 10, "compiling", "3/10 compiling"),
        (0.5, None, None, "0.5"),
        (42, 100, None, "42/100"),
        (1, None, "x" * 500, f"1 {'x' * 118}"),
    ],
)
def test_progress_in_one_line(progress: float, total: float | None, message: str | None, text: str) -> None:
    said = in_words(progress, total, message)
    assert said.text == text
    assert said.message == message
