"""The index of tasks beside the informer."""

import math
import random
from dataclasses import replace

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_service.index import TaskIndex


def a_task(
    name: str, owner: str = "a", *, state: State = State.WORKING, call: str | None = None, at: float = 0
) -> TaskRecord:
    return TaskRecord("ns", name, f"uid-{name}", "1", name, owner, "t", at, at, state=state, call=call)


START = (-math.inf, "")


def put(index: TaskIndex, task: TaskRecord) -> None:
    index.changed(task.key, task)


@pytest.mark.req("R-5.3")
def test_open_tasks_are_counted_by_owner_until_they_end_or_go() -> None:
    index = TaskIndex()
    for name in ("1", "2"):
        put(index, a_task(name))
    put(index, a_task("3", "b"))
    assert (index.open_count("a"), index.open_count("b"), index.open_count("c")) == (2, 1, 0)
    put(index, a_task("1", state=State.COMPLETED))
    assert index.open_count("a") == 1
    index.changed(("ns", "2"), None)
    assert index.open_count("a") == 0
    assert [task.name for task in index.listed("a", START)] == ["1"]


@pytest.mark.req("R-2.3")
def test_the_list_of_an_owner_is_by_age_then_name_and_begins_anywhere() -> None:
    index = TaskIndex()
    for name, at in (("c", 2.0), ("a", 2.0), ("b", 1.0), ("d", 3.0)):
        put(index, a_task(name, at=at))
    put(index, replace(a_task("plain"), plain=True))
    put(index, a_task("b", at=1.0, state=State.COMPLETED))
    assert [task.name for task in index.listed("a", START)] == ["b", "a", "c", "d"]
    assert [task.name for task in index.listed("a", (2.0, "a"))] == ["c", "d"]
    assert [task.name for task in index.listed("a", (2.0, "b"))] == ["c", "d"]
    assert [*index.listed("a", (3.0, "d"))] == [*index.listed("nobody", START)] == []
    put(index, a_task("b", "other", at=9.0))
    assert [task.name for task in index.listed("a", START)] == ["a", "c", "d"], "another life of the name"
    index.changed(("ns", "plain"), None)


@pytest.mark.req("R-7.1")
def test_a_request_finds_its_task_until_it_goes() -> None:
    index = TaskIndex()
    task = a_task("1", call="c")
    put(index, task)
    assert index.of_call("c") is task
    assert index.of_call("d") is None
    index.changed(task.key, None)
    assert index.of_call("c") is None


@pytest.mark.req("R-7.1")
def test_a_request_id_used_again_finds_the_later_task_whatever_is_heard_of_the_earlier() -> None:
    index = TaskIndex()
    first, second = a_task("1", call="c", at=1), a_task("2", call="c", at=2)
    put(index, first)
    put(index, second)
    put(index, a_task("1", call="c", at=1, state=State.COMPLETED))
    assert index.of_call("c") is second
    index.changed(first.key, None)
    assert index.of_call("c") is second


def test_a_task_made_by_hand_is_found_by_its_uid_and_is_in_no_list_and_no_count() -> None:
    index = TaskIndex()
    task = replace(a_task("nightly", ""), task_id="uid-nightly")
    put(index, task)
    assert index.by_hand("uid-nightly") is task
    assert index.by_hand("nightly") is None
    assert [*index.listed("", START)] == []
    assert index.open_count("") == 0
    put(index, replace(task, uid="another-life", task_id="another-life"))
    assert index.by_hand("uid-nightly") is None
    index.changed(task.key, None)
    assert index.by_hand("another-life") is None


def test_nothing_is_left_of_owners_and_requests_that_have_gone() -> None:
    index = TaskIndex()
    chance = random.Random(1)
    names = [str(n) for n in range(50)]
    for _ in range(2000):
        name = chance.choice(names)
        if chance.random() < 0.4:
            index.changed(("ns", name), None)
        else:
            state = chance.choice(list(State))
            task = a_task(name, chance.choice("abcdef"), state=state, call=chance.choice(["x", "y", None]))
            put(index, replace(task, task_id=chance.choice([task.task_id, task.uid])))
    for name in names:
        index.changed(("ns", name), None)
    index.changed(("ns", "never-there"), None)
    kept = (index._records, index._listed, index._open, index._by_call, index._by_hand)
    assert [len(left) for left in kept] == [0] * 5
