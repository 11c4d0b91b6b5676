"""How long unfinished tasks have been where they are."""

from typing import Any

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_crds.times import render
from mcptasks_operator.ages import oldest, overdue, since
from mcptasks_operator.observe import read_job
from mcptasks_operator.store import Store

from .cluster import NAMESPACE, START
from .objects import ended, job, job_object, task, tool, working

ECHO = (NAMESPACE, "echo")


def store_of(*tasks: Any, **spec: Any) -> Store:
    store = Store(lambda _key: None, lambda _key: None)
    store.put_tool(tool(**spec))
    for one in tasks:
        store.put_task(one)
    return store


def question(at: float, **answer: Any) -> dict[str, Any]:
    return {"request": {}, "askedAt": render(at), **answer}


def test_a_task_waits_for_input_since_its_first_open_question() -> None:
    inputs = {
        "answered": question(START + 1, response={}),
        "open": question(START + 20),
        "later": question(START + 40),
    }
    assert since(task(status=working(state="input_required", inputs=inputs))) == START + 20


def test_without_an_open_question_it_waits_since_its_last_change() -> None:
    status = working(state="input_required", inputs={"q": question(START, response={})})
    assert since(task(status={**status, "lastUpdatedAt": render(START + 9)})) == START + 9
    assert since(task(status=status)) == START


def test_a_working_task_counts_from_its_start() -> None:
    assert since(task(status=working())) == START + 1
    assert since(task(status={"state": "working"})) == START


@pytest.mark.fault("O12")
def test_the_oldest_of_each_tool_and_state_counts_and_ended_tasks_do_not() -> None:
    store = store_of(task(1), task(2, created=START - 50), task(3, tool="other"), task(4, status=ended()))
    submitted = State.SUBMITTED
    assert oldest(store, START + 10) == {(*ECHO, submitted): 60, (NAMESPACE, "other", submitted): 10}


def test_a_task_that_has_ended_or_is_gone_ages_no_more() -> None:
    store = store_of(task(1), task(2))
    store.put_task(task(1, status=ended(), version=11))
    store.drop_task(task(2).key, "task-2")
    assert oldest(store, START + 10) == {}


def test_nothing_is_overdue_before_start_and_run_time_outs_are_over() -> None:
    store = store_of(task(1, status=working()), timeouts={"start": "10s", "run": "1m"})
    store.put_job(job(1))
    assert overdue(store, START + 70) == {}
    assert overdue(store, START + 71) == {ECHO: 1}


def test_the_present_attempt_counts() -> None:
    store = store_of(task(1, status=working(attempt=2)), timeouts={"start": "10s", "run": "1m"})
    store.put_job(job(1))
    store.put_job(job(1, 2, created=START + 500))
    assert overdue(store, START + 560) == {}
    assert overdue(store, START + 600) == {ECHO: 30}


def test_a_task_that_waits_for_its_turn_is_not_overdue() -> None:
    assert overdue(store_of(task(1)), START + 1e9) == {}


def test_a_suspended_job_waits_for_as_long_as_its_queue_wants() -> None:
    held = job_object(1)
    held["spec"]["suspend"] = True
    store = store_of(task(1))
    store.put_job(read_job(held))
    assert overdue(store, START + 1e9) == {}


def test_a_task_whose_job_is_lost_counts_from_its_start_with_the_default_time_outs() -> None:
    store = store_of(task(1, tool="gone", status=working()), task(2, tool="gone", status=working(number=2)))
    assert overdue(store, START + 1 + 300 + 86_400 + 5) == {(NAMESPACE, "gone"): 5}
