"""The operator put together, over a fake API and without watches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure
from mcptasks_crds.kinds import JOB, LEASE, TASK, TOOL
from mcptasks_operator import app, feed
from mcptasks_operator.app import Operator
from mcptasks_operator.decide import decide
from mcptasks_operator.feed import WatchEnded
from mcptasks_operator.lease import LeaseLost
from mcptasks_operator.settings import Settings

from .cluster import NAMESPACE, START, FakeApi
from .edges import until
from .objects import ended, task_object, tool_object


@pytest.fixture(autouse=True)
def _no_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(feed, "watch", watch)


def settings(**changes: Any) -> Settings:
    options: dict[str, Any] = {
        "namespaces": [NAMESPACE],
        "host": "127.0.0.1",
        "port": 0,
        "lease_name": "",
        "workers": 2,
    }
    return Settings(**(options | changes))


def new(api: FakeApi, **changes: Any) -> Operator:
    return Operator(api, settings(**changes), lambda: api.now)  # type: ignore[arg-type]


@asynccontextmanager
async def running(operator: Operator) -> AsyncIterator[asyncio.Task[None]]:
    stop = asyncio.Event()
    run = asyncio.create_task(operator.run(stop))
    try:
        yield run
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(run, return_exceptions=True), 10)


async def test_a_task_that_waits_gets_its_job() -> None:
    api = FakeApi()
    api.add(TOOL, tool_object())
    api.add(TASK, task_object())
    async with running(new(api)):
        await until(lambda: api.all(JOB))


async def test_a_task_that_ran_out_goes() -> None:
    api = FakeApi()
    api.add(TOOL, tool_object())
    status = ended(at=START - 100, expires=START - 40)
    api.add(TASK, task_object(status=status, retention={"after": "Finish", "milliseconds": 60_000}))
    async with running(new(api)):
        await until(lambda: not api.all(TASK))


async def test_it_is_ready_once_everything_is_known_and_healthy_while_the_watches_move() -> None:
    api = FakeApi()
    operator = new(api)
    assert operator._unready() is not None
    async with running(operator):
        await asyncio.wait_for(operator.leading.wait(), 10)
        assert operator._unready() is None
        assert operator._ill() is None
        await until(lambda: operator.port)
        operator.audit._unseen["x"] = ("1", -1000.0)
        assert "has not been brought" in (operator._ill() or "")
        assert b"mcptasks_operator_leading 1.0" in operator.metrics.render()
    assert not operator.leading.is_set()


async def test_a_follower_knows_all_and_writes_nothing() -> None:
    api = FakeApi()
    api.add(TOOL, tool_object())
    api.add(TASK, task_object())
    api.add(LEASE, {"metadata": {"name": "op"}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 1000}})
    operator = new(api, lease_name="op", lease_namespace=NAMESPACE, renew_seconds=0.01)
    async with running(operator):
        await asyncio.wait_for(operator.synced.wait(), 10)
        await until(lambda: api.requests.count("get leases") > 3)
        assert len(operator.store) == 1
        assert not operator.leading.is_set()
        assert len(operator.queue) == 0
    assert api.writes == []


async def test_after_a_restart_who_came_first_is_served_first() -> None:
    api = FakeApi()
    api.add(TOOL, tool_object())
    for number, age in ((1, 1), (2, 3), (3, 2)):
        api.add(TASK, task_object(number, created=START - age))
    api.add(TASK, task_object(4, created=START - 9, status=ended()))
    async with running(new(api, workers=1)):
        await until(lambda: len(api.all(JOB)) == 3)
    made = [job["metadata"]["labels"]["mcptasks.dev/task-uid"] for job in api.all(JOB)]
    assert made == ["task-2", "task-3", "task-1"]


async def test_the_lease_is_given_back_at_the_end() -> None:
    api = FakeApi()
    operator = new(api, lease_name="op", lease_namespace=NAMESPACE, replica="me")
    async with running(operator):
        await asyncio.wait_for(operator.leading.wait(), 10)
        assert api.one(LEASE, "op")["spec"]["holderIdentity"] == "me"
    assert api.one(LEASE, "op")["spec"]["holderIdentity"] == ""


@pytest.mark.fault("O6")
async def test_a_lost_lease_ends_everything() -> None:
    api = FakeApi()
    operator = new(api, lease_name="op", lease_namespace=NAMESPACE, renew_seconds=0.01)
    async with running(operator) as run:
        await asyncio.wait_for(operator.leading.wait(), 10)
        del api.objects["leases", NAMESPACE, "op"]
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(run, 10)


async def test_watches_that_end_end_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch(*_: Any) -> None:
        raise WatchEnded("the watches have ended")

    monkeypatch.setattr(feed, "watch", watch)
    with pytest.raises(WatchEnded):
        await asyncio.wait_for(new(FakeApi()).run(asyncio.Event()), 10)


async def test_a_fault_of_the_api_is_outlived() -> None:
    api = FakeApi()
    api.add(TOOL, tool_object())
    api.add(TASK, task_object())
    api.faults["create jobs"] = [ApiFailure(503, "", "busy"), ApiFailure(0, "Unreachable", "gone")]
    async with running(new(api)):
        await until(lambda: api.all(JOB))


@pytest.mark.fault("O7")
async def test_a_task_that_nobody_foresaw_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    api.add(TOOL, tool_object())
    for number in (1, 2):
        api.add(TASK, task_object(number))

    def odd(known: Any, now: float) -> Any:
        if known.task.uid == "task-1":
            raise ZeroDivisionError
        return decide(known, now)

    monkeypatch.setattr(app, "decide", odd)
    operator = new(api, workers=1)
    async with running(operator):
        await until(lambda: api.all(JOB))
        await until(lambda: operator.metrics.retries.labels(code="bug")._value.get())
    assert len(api.all(JOB)) == 1


async def test_a_task_that_is_gone_is_forgotten() -> None:
    operator = new(FakeApi())
    async with running(operator):
        await asyncio.wait_for(operator.leading.wait(), 10)
        operator.queue.add((NAMESPACE, "t-none"))
        await until(lambda: not len(operator.queue))
