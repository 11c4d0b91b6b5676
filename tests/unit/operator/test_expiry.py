import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure
from mcptasks_crds.kinds import TASK
from mcptasks_crds.record import TaskRecord, record
from mcptasks_crds.times import render
from mcptasks_operator import expiry as module
from mcptasks_operator.expiry import Expiry
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.store import Store

from .cluster import START, FakeApi
from .edges import until
from .objects import ended, task, task_object

KEY = task().key


class Watched(Store):
    """Tells when a task was forgotten."""

    dropped: asyncio.Event

    def drop_task(self, key: tuple[str, str], uid: str) -> TaskRecord | None:
        self.dropped.set()
        return super().drop_task(key, uid)


class World:
    """An expiry whose store tells it each task, as the operator's does."""

    def __init__(self, rate: float = 10_000) -> None:
        self.api = FakeApi()
        self.metrics = Metrics()
        self.changed = asyncio.Event()
        self.store = Watched(self._told, lambda _key: None)
        self.store.dropped = asyncio.Event()
        real: Api = self.api  # type: ignore[assignment]
        self.expiry = Expiry(real, self.store, self.metrics, lambda: self.api.now, rate)

    def _told(self, key: tuple[str, str]) -> None:
        self.changed.set()
        if (known := self.store.task(key)) is not None:
            self.expiry.schedule(known)

    def add(self, number: int, expires: float | None, state: str = "completed") -> None:
        status = ended(state, expires=expires) if state == "completed" else {"state": state}
        self.store.put_task(record(self.api.add(TASK, task_object(number, status=status))))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        work = asyncio.create_task(self.expiry.run())
        try:
            yield
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def until(self, left: int) -> None:
        async with asyncio.timeout(5):
            while len(self.store) > left:
                self.store.dropped.clear()
                await self.store.dropped.wait()


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.fault("E11")
async def test_what_ran_out_while_nobody_looked_goes_at_once(world: World) -> None:
    for number in range(50):
        world.add(number, START - 1000 + number)
    world.add(51, START + 1000)
    world.add(52, None)
    world.add(53, None, state="working")
    async with world.running():
        await world.until(left=3)
    assert len(world.api.all(TASK)) == 3
    assert world.metrics.registry.get_sample_value("mcptasks_operator_tasks_expired_total") == 50
    lag = world.metrics.registry.get_sample_value("mcptasks_operator_expiry_lag_seconds_sum")
    assert lag is not None
    assert lag > 900 * 50


async def test_a_task_goes_when_its_time_comes_and_an_earlier_one_first(world: World) -> None:
    async with world.running():
        world.add(1, START + 60)
        await asyncio.sleep(0)
        world.add(2, START + 0.02)
        await asyncio.sleep(0.01)
        assert len(world.store) == 2
        world.api.now = START + 0.02
        await world.until(left=1)
    assert world.store.task(task(1).key) is not None


async def test_a_retention_that_was_renewed_is_kept(world: World) -> None:
    world.add(1, START - 1)
    world.api.change(TASK, task(1).name, {"expiresAt": render(START + 60)})
    async with world.running():
        async with asyncio.timeout(5):
            world.changed.clear()
            await world.changed.wait()
        await asyncio.sleep(0.01)
    assert len(world.api.all(TASK)) == 1
    known = world.store.task(KEY)
    assert known is not None
    assert known.expires == START + 60


async def test_a_task_that_changed_otherwise_goes_after_a_second_look(world: World) -> None:
    world.add(1, START - 1)
    world.api.change(TASK, task(1).name, {"message": "edited"})
    async with world.running():
        await world.until(left=0)
    assert world.api.requests == ["delete mcptasks", "get mcptasks", "delete mcptasks"]


async def test_an_earlier_time_of_a_task_does_not_count_any_more(world: World) -> None:
    world.add(1, START - 1)
    world.add(1, START + 60)
    world.add(2, START - 1)
    world.add(2, None)
    async with world.running():
        await asyncio.sleep(0.02)
    assert world.api.requests == []
    assert len(world.expiry) == 1


async def test_what_somebody_else_deleted_is_forgotten(world: World) -> None:
    world.add(1, START - 1)
    world.api.objects.clear()
    async with world.running():
        await world.until(left=0)
    world.add(2, START - 1)
    world.api.change(TASK, task(2).name, {"message": "edited"})
    world.api.before["get mcptasks"] = world.api.objects.clear
    async with world.running():
        await world.until(left=0)


@pytest.mark.parametrize("fault", ["delete mcptasks", "get mcptasks"])
async def test_a_server_that_is_away_is_tried_again(world: World, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    world.add(1, START - 1)
    world.api.change(TASK, task(1).name, {"message": "edited"})
    world.api.faults[fault] = [ApiFailure(0, "Unreachable", "away")] * 3
    async with world.running():
        await world.until(left=0)
    assert world.api.all(TASK) == []


async def test_deletions_keep_to_their_rate(world: World) -> None:
    slow = World(rate=50)
    for number in range(10):
        slow.add(number, START - 1)
    async with slow.running():
        await asyncio.sleep(0.05)
        assert len(slow.store) >= 5
        await slow.until(left=0)


async def test_what_can_not_be_deleted_shows_as_late_until_it_is_gone(world: World) -> None:
    world.add(1, START - 30)
    assert world.expiry.late == 0, "a follower deletes nothing"
    world.api.faults["delete mcptasks"] = [ApiFailure(0, "Unreachable", "away")]
    async with world.running():
        await until(lambda: world.api.requests and len(world.expiry))
        assert world.expiry.late == 30
        world.api.now += 10
        world.add(2, START - 1)  # wakes it
        await world.until(left=0)
        await until(lambda: world.expiry.late == 0)


async def test_one_that_waits_for_its_time_is_not_late(world: World) -> None:
    async with world.running():
        world.add(1, START + 60)
        await asyncio.sleep(0)
        assert world.expiry.late == 0
        assert world.metrics.registry.get_sample_value("mcptasks_operator_expiry_late_seconds") == 0


async def test_one_that_somebody_else_removed_while_it_failed_is_late_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    world.add(1, START - 30)
    world.api.faults["delete mcptasks"] = [ApiFailure(0, "Unreachable", "away")]
    world.api.before["delete mcptasks"] = lambda: world.store.drop_task(KEY, task(1).uid)
    async with world.running():
        await until(lambda: world.api.requests and not len(world.expiry))
        assert world.expiry.late == 0


def test_a_follower_s_heap_does_not_grow_with_the_past(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPARE", 10)
    for number in range(200):
        world.add(number, START + number)
        if number < 190:
            world.store.drop_task(task(number).key, f"task-{number}")
    assert len(world.store) == 10
    assert len(world.expiry) <= 2 * 10 + 10
