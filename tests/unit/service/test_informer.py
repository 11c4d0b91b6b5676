"""The informer: nothing that an API server does to a list or a watch ends it, or makes it tell what is not so."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure, Gone
from mcptasks_crds.kinds import TASK
from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord, record
from mcptasks_service import informer as informer_module
from mcptasks_service.informer import DELETED_KEPT, Informer

Object = dict[str, Any]
GONE = Gone(410, "Expired", "too old resource version")
AWAY = ApiFailure(0, "Unreachable", "no route to host")


def a_task(name: str, version: int, *, uid: str | None = None, state: str = "working", **meta: Any) -> Object:
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-07-28T12:00:00Z",
            **meta,
        },
        "spec": {"taskId": name, "request": {"name": "t"}},
        "status": {"state": state},
    }


def page(version: int, *items: Object, after: str = "") -> Object:
    return {"items": list(items), "metadata": {"resourceVersion": str(version), "continue": after}}


def event(kind: str, item: Object) -> Object:
    return {"type": kind, "object": item}


def bookmark(version: int) -> Object:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


class Script:
    """Plays what an API server answers, in order; after the last act the watch stays open and silent."""

    def __init__(self, *acts: Object | Exception | list[Any] | Callable[[], Object]) -> None:
        self.acts = list(acts)
        self.asked: list[tuple[str, str]] = []
        self.silent = asyncio.Event()
        """Set when everything has been played."""

    async def list(self, kind: object, namespace: str | None, *, after: str = "") -> Object:
        self.asked.append(("list", after))
        act = await self._next()
        assert isinstance(act, dict), f"a list was asked for, and {act} is what comes next"
        return act

    async def watch(self, kind: object, namespace: str | None, version: str) -> AsyncIterator[Object]:
        self.asked.append(("watch", version))
        act = await self._next()
        assert isinstance(act, list), f"a watch was asked for, and {act} is what comes next"
        for part in act:
            if isinstance(part, Exception):
                raise part
            if callable(part):
                part()
                continue
            yield part

    async def _next(self) -> Any:
        if not self.acts:
            self.silent.set()
            await asyncio.Event().wait()
        act = self.acts.pop(0)
        if isinstance(act, Exception):
            raise act
        return act() if callable(act) else act

    @property
    def lists(self) -> int:
        return sum(what == "list" for what, _ in self.asked)


Play = Callable[..., Any]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the informer makes; none of them takes time."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(informer_module, "asyncio", SimpleNamespace(sleep=sleep, Event=asyncio.Event))
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    return made


@asynccontextmanager
async def playing(script: Script, clock: Callable[[], float] = lambda: 0.0) -> AsyncGenerator[Informer[TaskRecord]]:
    informer = Informer(script, TASK, "ns", record, clock)  # type: ignore[arg-type]
    run = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run


@pytest.fixture
def play(pauses: list[float]) -> Callable[[Script], Awaitable[Informer[TaskRecord]]]:
    """Play a script to its end, and give the informer as it is then."""

    async def play(script: Script) -> Informer[TaskRecord]:
        async with playing(script) as informer, asyncio.timeout(5):
            await script.silent.wait()
        return informer

    return play


def names(informer: Informer[TaskRecord]) -> dict[str, str]:
    return {task.name: task.resource_version for task in informer}


async def test_a_list_is_read_page_by_page_and_the_watch_begins_at_its_version(play: Play) -> None:
    script = Script(
        page(10, a_task("a", 3), after="p2"), page(10, a_task("b", 4), after="p3"), page(10, a_task("c", 5))
    )
    informer = await play(script)
    assert script.asked == [("list", ""), ("list", "p2"), ("list", "p3"), ("watch", "10")]
    assert names(informer) == {"a": "3", "b": "4", "c": "5"}
    assert informer.synced.is_set()
    assert len(informer) == 3


async def test_it_is_not_synced_before_the_last_page(pauses: list[float]) -> None:
    script = Script(page(10, a_task("a", 3), after="p2"))
    async with playing(script) as informer:
        async with asyncio.timeout(5):
            await script.silent.wait()
        assert not informer.synced.is_set()
        assert informer.get("ns", "a") is not None


async def test_events_are_taken_in_and_bookmarks_move_the_version(play: Play) -> None:
    script = Script(
        page(10, a_task("a", 3), a_task("b", 4)),
        [
            event("ADDED", a_task("c", 11)),
            event("MODIFIED", a_task("a", 12, state="completed")),
            event("DELETED", a_task("b", 13)),
            bookmark(40),
        ],
    )
    informer = await play(script)
    assert names(informer) == {"a": "12", "c": "11"}
    assert script.asked[-1] == ("watch", "40")
    assert script.lists == 1


async def test_a_stream_that_ends_cleanly_goes_on_at_once_without_a_list(play: Play, pauses: list[float]) -> None:
    script = Script(page(10), [event("ADDED", a_task("a", 11))], [event("ADDED", a_task("b", 12))])
    informer = await play(script)
    assert script.asked == [("list", ""), ("watch", "10"), ("watch", "11"), ("watch", "12")]
    assert names(informer) == {"a": "11", "b": "12"}
    assert set(pauses) == {0.0}


async def test_streams_that_end_with_nothing_again_and_again_do_not_spin(play: Play, pauses: list[float]) -> None:
    await play(Script(page(10), *[[]] * 10))
    assert pauses[:4] == [0.0, 0.2, 0.4, 0.8]
    assert pauses[-1] == informer_module.LONGEST_PAUSE


async def test_a_watch_that_is_too_old_lists_again_when_refused(play: Play, pauses: list[float]) -> None:
    script = Script(page(10, a_task("a", 3)), GONE, page(20, a_task("a", 15)))
    informer = await play(script)
    assert script.asked == [("list", ""), ("watch", "10"), ("list", ""), ("watch", "20")]
    assert names(informer) == {"a": "15"}
    assert pauses == [0.0]


async def test_a_watch_that_becomes_too_old_in_the_stream_lists_again(play: Play) -> None:
    script = Script(page(10), [event("ADDED", a_task("a", 11)), GONE], page(20, a_task("b", 12)))
    informer = await play(script)
    assert script.lists == 2
    assert names(informer) == {"b": "12"}


async def test_versions_that_are_always_too_old_do_not_spin(play: Play, pauses: list[float]) -> None:
    await play(Script(*[GONE] * 5))
    assert pauses == [0.0, 0.2, 0.4, 0.8, 1.6]


async def test_a_continue_token_that_has_expired_begins_the_list_again(play: Play) -> None:
    script = Script(page(10, a_task("a", 3), after="p2"), GONE, page(20, a_task("b", 15)))
    informer = await play(script)
    assert script.asked == [("list", ""), ("list", "p2"), ("list", ""), ("watch", "20")]
    assert names(informer) == {"b": "15"}, "what the first half of the list showed is gone by now"


async def test_what_is_absent_after_a_new_list_is_dropped_and_its_listeners_are_told(pauses: list[float]) -> None:
    told: list[tuple[str, str | None]] = []
    script = Script(page(10, a_task("a", 3), a_task("b", 4)), [bookmark(11), GONE], page(20, a_task("b", 4)))
    async with playing(script) as informer:
        with informer.listen(None, lambda key, task: told.append((key[1], task and task.resource_version))):
            async with asyncio.timeout(5):
                await script.silent.wait()
    assert told == [("a", "3"), ("b", "4"), ("a", None)], "and what has not changed is not told again"


async def test_what_this_process_wrote_while_a_list_was_read_is_not_dropped_by_it(pauses: list[float]) -> None:
    told: list[Any] = []
    informers: list[Informer[TaskRecord]] = []

    def written_meanwhile() -> Object:
        informers[0].put(record(a_task("mine", 25)))
        informers[0].put(record(a_task("theirs", 15)))
        return page(20)

    script = Script(page(10), [bookmark(10), GONE], page(20, after="p2"), written_meanwhile)
    async with playing(script) as informer:
        informers.append(informer)
        with informer.listen(("ns", "mine"), lambda _key, task: told.append(task)):
            async with asyncio.timeout(5):
                await script.silent.wait()
    assert names(informer) == {"mine": "25"}, "15 was before the list's moment, which does not show it: it is gone"
    assert len(told) == 1


async def test_an_api_server_that_is_away_is_tried_again_ever_more_slowly(
    play: Play, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        informer = await play(Script(*[AWAY] * 9, page(10)))
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]
    assert informer.synced.is_set()
    assert [r.levelname for r in caplog.records] == ["WARNING"] + ["DEBUG"] * 8, "an outage is said once"


async def test_the_pauses_begin_anew_once_the_watch_has_moved(play: Play, pauses: list[float]) -> None:
    await play(Script(AWAY, AWAY, page(10), [bookmark(11), AWAY], AWAY))
    assert pauses == [0.2, 0.4, 0.2, 0.4]


async def test_an_api_server_that_has_just_started_and_says_403_is_tried_again(play: Play) -> None:
    script = Script(ApiFailure(403, "Forbidden", "no roles yet"), page(10), ApiFailure(403, "Forbidden", "no"), [])
    informer = await play(script)
    assert informer.synced.is_set()
    assert script.lists == 2, "the second 403 met the watch, which goes on without a list"


async def test_after_a_break_the_watch_goes_on_where_it_was(play: Play) -> None:
    script = Script(page(10), [event("ADDED", a_task("a", 11)), AWAY], [event("ADDED", a_task("b", 12))])
    informer = await play(script)
    assert script.asked == [("list", ""), ("watch", "10"), ("watch", "11"), ("watch", "12")]
    assert names(informer) == {"a": "11", "b": "12"}


async def test_what_nobody_foresaw_does_not_end_it_and_begins_the_list_again(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(page(10), [{"type": "ADDED"}], page(20, a_task("a", 15)))
    informer = await play(script)
    assert script.lists == 2
    assert names(informer) == {"a": "15"}
    assert "Traceback" in caplog.text, "a fault of ours is logged whole"


async def test_an_object_that_cannot_be_read_is_left_out_and_stops_no_other(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    odd = a_task("odd", 5, state="from-the-future")
    script = Script(
        page(10, odd, a_task("a", 3)),
        [event("MODIFIED", a_task("odd", 11, state="still-odd")), event("ADDED", a_task("b", 12)), GONE],
        page(20, a_task("a", 3), a_task("b", 13, state="odd-too")),
    )
    informer = await play(script)
    assert names(informer) == {"a": "3", "b": "12"}, "b is kept as it last could be read"
    assert "odd" in caplog.text


async def test_an_older_state_never_replaces_a_later_one(pauses: list[float]) -> None:
    script = Script(page(10, a_task("a", 9)), [event("MODIFIED", a_task("a", 8)), event("MODIFIED", a_task("a", 9))])
    told: list[str] = []
    async with playing(script) as informer:
        with informer.listen(("ns", "a"), lambda _key, task: told.append(task.resource_version)):
            async with asyncio.timeout(5):
                await script.silent.wait()
            informer.put(record(a_task("a", 7)))
            informer.put(record(a_task("a", 100, state="completed")))
            informer.put(record(a_task("a", 99)))
    assert told == ["9", "100"]
    task = informer.get("ns", "a")
    assert task is not None
    assert task.state is State.COMPLETED


async def test_an_answer_that_was_on_its_way_does_not_bring_back_what_was_deleted(play: Play) -> None:
    informer = await play(Script(page(10, a_task("a", 3)), [event("DELETED", a_task("a", 12))]))
    informer.put(record(a_task("a", 11)))
    assert names(informer) == {}
    informer.put(record(a_task("a", 13, uid="another-life")))
    assert names(informer) == {"a": "13"}


async def test_nor_what_a_new_list_showed_to_be_gone(play: Play) -> None:
    informer = await play(Script(page(10, a_task("a", 3)), GONE, page(20)))
    informer.put(record(a_task("a", 3)))
    assert names(informer) == {}


async def test_the_deletion_of_an_earlier_life_leaves_the_present_one(play: Play) -> None:
    informer = await play(
        Script(page(10, a_task("a", 9, uid="second")), [event("DELETED", a_task("a", 12, uid="first"))])
    )
    assert names(informer) == {"a": "9"}
    informer.drop(("ns", "a"), "first")
    informer.drop(("ns", "never-there"))
    assert names(informer) == {"a": "9"}
    informer.drop(("ns", "a"))
    assert names(informer) == {}


async def test_deleted_uids_are_not_remembered_without_end() -> None:
    informer = Informer(Script(), TASK, "ns", record, lambda: 0.0)  # type: ignore[arg-type]
    for n in range(DELETED_KEPT + 10):
        informer.drop(("ns", "a"), f"uid-{n}")
    assert len(informer._deleted) == DELETED_KEPT
    assert "uid-0" not in informer._deleted


async def test_changes_give_the_present_state_then_each_later_one() -> None:
    informer = Informer(Script(), TASK, "ns", record, lambda: 0.0)  # type: ignore[arg-type]
    changes = informer.changes(("ns", "a"))
    assert await anext(changes) is None
    for version in (1, 2):
        informer.put(record(a_task("a", version)))
        state = await anext(changes)
        assert state is not None
        assert state.resource_version == str(version)
    informer.put(record(a_task("a", 3)))
    informer.put(record(a_task("a", 4)))
    state = await anext(changes)
    assert state is not None
    assert state.resource_version == "4", "states that come faster than they are read are skipped"
    informer.drop(("ns", "a"))
    assert await anext(changes) is None
    await changes.aclose()


@pytest.mark.fault("P22")
async def test_thousands_of_waiters_that_go_away_leave_nothing_behind() -> None:
    informer = Informer(Script(), TASK, "ns", record, lambda: 0.0)  # type: ignore[arg-type]

    async def wait(n: int) -> None:
        async for _ in informer.changes(("ns", f"t-{n % 10}")):
            pass

    waiters = [asyncio.create_task(wait(n)) for n in range(2000)]
    await asyncio.sleep(0)
    assert len(informer._listeners) == 10
    for waiter in waiters:
        waiter.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)
    assert informer._listeners == {}


async def test_a_listener_that_leaves_while_it_is_told_disturbs_no_other() -> None:
    informer = Informer(Script(), TASK, "ns", record, lambda: 0.0)  # type: ignore[arg-type]
    told: list[str] = []

    def leaving(*_: object) -> None:
        told.append("first")
        first.__exit__(None, None, None)

    first = informer.listen(None, leaving)
    first.__enter__()
    with informer.listen(None, lambda *_: told.append("second")):
        informer.put(record(a_task("a", 1)))
        informer.put(record(a_task("a", 2)))
    assert sorted(told) == ["first", "second", "second"]


async def test_the_age_of_the_watch_is_that_of_the_last_word_bookmarks_too(pauses: list[float]) -> None:
    now = 100.0

    def later() -> None:
        nonlocal now
        now += 60

    script = Script(page(10), [later, bookmark(11), later])
    async with playing(script, lambda: now) as informer:
        async with asyncio.timeout(5):
            await script.silent.wait()
        assert informer.last_event == 160
        assert informer.connected


async def test_connected_tells_whether_the_api_server_speaks(play: Play) -> None:
    assert not (await play(Script(page(10)))).connected
    assert not (await play(Script(page(10), [bookmark(11), AWAY]))).connected
    assert (await play(Script(page(10), [bookmark(11)]))).connected
