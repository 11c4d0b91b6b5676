"""What a scrape shows."""

from typing import Any

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_crds.times import render
from mcptasks_operator.observe import read_tool

from .cluster import START
from .edges import Edges
from .objects import condition, ended, job, task, tool_object, working


def scraped(edges: Edges) -> dict[str, float]:
    lines = edges.metrics.render().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def edges_with(*tasks: Any, **tool: Any) -> Edges:
    edges = Edges()
    edges.metrics.store(edges.store, lambda: 7, lambda: START + 100)
    edges.store.put_tool(read_tool(tool_object(**tool)))
    for one in tasks:
        edges.store.put_task(one)
    edges.store.open_slots()
    return edges


def test_tasks_are_counted_by_tool_and_state() -> None:
    edges = edges_with(task(1), task(2, status=ended()), task(3, status=ended("failed")))
    seen = scraped(edges)
    assert seen['mcptasks_operator_tasks{state="submitted",tool="echo"}'] == 1
    assert seen['mcptasks_operator_tasks{state="completed",tool="echo"}'] == 1
    assert seen['mcptasks_operator_tasks{state="failed",tool="echo"}'] == 1
    assert seen["mcptasks_operator_queue_depth"] == 7


def test_concurrency_is_shown_used_waiting_and_allowed() -> None:
    edges = edges_with(task(1), task(2), task(3), concurrency={"total": 2})
    edges.store.put_job(job(1))
    seen = scraped(edges)
    labels = '{tool="echo",tool_namespace="team-a"}'
    assert seen[f"mcptasks_operator_concurrency_used{labels}"] == 2
    assert seen[f"mcptasks_operator_concurrency_waiting{labels}"] == 1
    assert seen[f"mcptasks_operator_concurrency_allowed{labels}"] == 2


def test_a_tool_without_a_limit_shows_none() -> None:
    assert not any("concurrency_allowed" in name for name in scraped(edges_with(task(1))))


@pytest.mark.fault("O10")
def test_the_number_of_series_does_not_grow_with_tasks_and_owners() -> None:
    few = edges_with(*(task(n) for n in range(3)))
    many = edges_with(*(task(n, owner={"issuer": "i", "subject": f"s{n}"}) for n in range(300)))
    assert len(scraped(few)) == len(scraped(many))


def test_the_age_of_each_watch_is_shown() -> None:
    edges = Edges()
    for kind, age in (("MCPTask", 3.0), ("Job", 5.0)):
        edges.metrics.watch(kind, lambda age=age: age)  # type: ignore[misc]
    seen = scraped(edges)
    assert seen['mcptasks_operator_watch_age_seconds{kind="MCPTask"}'] == 3
    assert seen['mcptasks_operator_watch_age_seconds{kind="Job"}'] == 5


@pytest.mark.fault("O12")
def test_every_state_that_is_no_end_shows_the_age_of_its_oldest_task() -> None:
    asked = working(state="input_required", inputs={"q": {"request": {}, "askedAt": render(START + 30)}})
    edges = edges_with(
        task(1),
        task(2, created=START + 50),
        task(3, status=working(number=3)),
        task(4, status=asked),
        task(5, status=ended()),
    )
    seen = scraped(edges)
    labels = 'tool="echo",tool_namespace="team-a"'
    ages = {
        state: seen.get(f'mcptasks_operator_oldest_task_seconds{{state="{state}",{labels}}}')
        for state in (str(state) for state in State)
    }
    assert ages == {state: {"submitted": 100, "working": 99, "input_required": 70}.get(state) for state in ages}


def test_an_attempt_beyond_its_time_outs_is_overdue() -> None:
    edges = edges_with(task(1, status=working()), timeouts={"start": "10s", "run": "60s"})
    edges.store.put_job(job(1, created=START + 5))
    assert scraped(edges)['mcptasks_operator_overdue_seconds{tool="echo",tool_namespace="team-a"}'] == 25


def test_a_tool_shows_whether_it_is_ready() -> None:
    name = 'mcptasks_operator_tool_ready{tool="echo",tool_namespace="team-a"}'
    assert name not in scraped(edges_with())
    ready = condition("Ready", "DryRun")
    assert scraped(edges_with(status={"conditions": [ready]}))[name] == 1
    assert scraped(edges_with(status={"conditions": [{**ready, "status": "False"}]}))[name] == 0
