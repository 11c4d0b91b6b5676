import dataclasses

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_operator.slots import Key
from mcptasks_operator.store import TOMBSTONES, Store

from .cluster import NAMESPACE
from .objects import ended, job, pod, running, task, terminated, tool, working

KEY = task().key


class Told:
    def __init__(self) -> None:
        self.tasks: list[Key] = []
        self.tools: list[Key] = []
        self.store = Store(self.tasks.append, self.tools.append)


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_task_is_known_with_all_that_bears_on_it(told: Told) -> None:
    store = told.store
    store.put_tool(tool())
    store.put_pod(pod())
    store.put_job(job())
    assert told.tasks == []
    assert store.put_task(task())
    situation = store.situation(KEY)
    assert situation is not None
    assert list(situation.jobs) == [job().name]
    assert situation.pods == (pod(),)
    assert situation.tool == tool().spec
    assert store.situation((NAMESPACE, "t-other")) is None
    assert told.tasks == [KEY]


def test_what_is_not_later_is_no_news(told: Told) -> None:
    store = told.store
    assert store.put_task(task(version=10))
    assert not store.put_task(task(version=10))
    assert not store.put_task(task(version=9, status=working()))
    assert store.put_task(task(version=11, status=working()))
    assert store.put_pod(pod(version=30))
    assert not store.put_pod(pod(version=30))
    assert store.put_job(job())
    assert not store.put_job(job())
    assert store.put_tool(tool())
    assert not store.put_tool(tool())


def test_states_are_counted_by_tool(told: Told) -> None:
    store = told.store
    store.put_task(task(1))
    store.put_task(task(2))
    store.put_task(task(2, version=11, status=working(number=2)))
    assert store.states["echo", State.SUBMITTED] == 1
    assert store.states["echo", State.WORKING] == 1
    assert len(store) == 2
    store.drop_task(*((task(2).key), task(2).uid))
    assert store.states["echo", State.WORKING] == 0


def test_a_late_answer_does_not_raise_the_dead(told: Told) -> None:
    store = told.store
    store.put_task(task())
    assert store.drop_task(KEY, "task-1") == task()
    assert not store.put_task(task(version=99, status=ended()))
    assert store.task(KEY) is None
    store.drop_job("task-1", job().name, job().uid)
    assert not store.put_job(job())
    store.drop_pod("task-1", pod().name, pod().uid)
    assert not store.put_pod(pod())
    store.drop_tool(tool().key, tool().uid)
    assert not store.put_tool(tool())
    assert [*store.jobs(), *store.pods(), *store.tools()] == []


def test_another_life_of_a_name_replaces_the_first_and_its_end_is_not_the_others(told: Told) -> None:
    store = told.store
    store.put_task(task())
    other = task(1, version=20)
    second = dataclasses.replace(other, uid="second")
    assert store.put_task(second)
    assert store.drop_task(KEY, "task-1") is None
    assert store.task(KEY) == second
    store.put_job(job())
    situation = store.situation(KEY)
    assert situation is not None
    assert situation.jobs == {}
    assert store.states["echo", State.SUBMITTED] == 1


def test_a_job_that_was_seen_and_is_gone_is_remembered(told: Told) -> None:
    store = told.store
    store.put_task(task())
    store.put_job(job())
    store.drop_job("task-1", job().name, "another uid")
    assert list(store.jobs()) == [job()]
    store.drop_job("task-1", job().name, job().uid)
    situation = store.situation(KEY)
    assert situation is not None
    assert situation.gone == {job().name}
    assert situation.jobs == {}


def test_findings_and_our_own_deletion_are_kept_until_the_watch_says_more(told: Told) -> None:
    store = told.store
    store.put_task(task())
    store.put_job(job())
    store.found(dataclasses.replace(job(), podless=True))
    store.put_job(job(resourceVersion="21"))
    assert next(store.jobs()).podless
    store.deleting(job())
    assert next(store.jobs()).deleting
    store.found(job(2))
    store.deleting(job(2))
    assert len(list(store.jobs())) == 1


def test_jobs_pods_and_slots_wake_their_task(told: Told) -> None:
    store = told.store
    store.put_task(task())
    told.tasks.clear()
    store.put_job(job())
    store.put_pod(pod(state=running()))
    store.put_pod(pod(state=terminated(), version=31))
    store.drop_pod("task-1", pod().name, pod().uid)
    store.drop_pod("task-1", pod().name, pod().uid)
    assert told.tasks == [KEY] * 4
    assert list(store.pods()) == []


def test_the_tools_limits_hold_and_a_free_slot_wakes_the_next(told: Told) -> None:
    store = told.store
    store.put_tool(tool(concurrency={"total": 1}))
    store.put_task(task(1))
    store.put_task(task(2))
    told.tasks.clear()
    store.open_slots()
    assert told.tasks == [KEY]
    second = store.situation(task(2).key)
    assert second is not None
    assert not second.turn.granted
    told.tasks.clear()
    store.put_task(task(1, version=11, status=ended()))
    assert task(2).key in told.tasks
    assert told.tools == [(NAMESPACE, "echo")]


def test_a_task_with_a_job_has_its_slot_also_between_two_attempts(told: Told) -> None:
    store = told.store
    store.put_tool(tool(concurrency={"total": 1}))
    store.put_task(task(1, status={"state": "submitted", "attempt": 2}))
    store.put_task(task(2))
    store.put_job(job(3))
    store.put_task(task(3))
    store.open_slots()
    assert store.slots.counts((NAMESPACE, "echo")) == (2, 1)
    store.put_job(job(2))
    assert store.slots.counts((NAMESPACE, "echo")) == (3, 0)


def test_no_more_dead_are_remembered_than_need_be(told: Told) -> None:
    for number in range(TOMBSTONES + 1):
        told.store.drop_pod("x", "x", f"uid-{number}")
    assert told.store.put_pod(pod(uid="uid-0"))
    assert not told.store.put_pod(pod(uid="uid-1"))
