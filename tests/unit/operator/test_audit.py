"""Lists that check the watches."""

import asyncio

import pytest

from mcptasks_crds.errors import ApiFailure, Gone
from mcptasks_crds.kinds import JOB, POD, TASK, TOOL
from mcptasks_crds.record import record

from .cluster import NAMESPACE
from .edges import Edges, until
from .objects import job_object, pod_object, task_object, tool_object, working

DOWN = ApiFailure(0, "Unreachable", "the Kubernetes API can't be reached")


def filled() -> Edges:
    edges = Edges()
    for kind, item in ((TASK, task_object()), (TOOL, tool_object()), (JOB, job_object()), (POD, pod_object())):
        edges.api.add(kind, item)
    return edges


async def test_a_full_list_takes_everything_in() -> None:
    edges = filled()
    await edges.audit.first()
    assert [task.name for task in edges.store.tasks()] == [f"t-{1:040x}"]
    assert [tool.name for tool in edges.store.tools()] == ["echo"]
    assert len(list(edges.store.jobs())) == len(list(edges.store.pods())) == 1


async def test_long_lists_come_in_pages() -> None:
    edges = Edges()
    for number in range(1201):
        edges.api.add(TASK, task_object(number))
    await edges.audit.full()
    assert len(edges.store) == 1201
    assert edges.api.requests.count("list mcptasks") == 3


async def test_what_a_lost_delete_left_behind_is_forgotten() -> None:
    edges = filled()
    await edges.audit.full()
    edges.api.objects.clear()
    await edges.audit.full()
    store = edges.store
    assert not any((list(store.tasks()), list(store.tools()), list(store.jobs()), list(store.pods())))
    assert edges.metrics.repairs.labels(kind="MCPTask")._value.get() == 1


async def test_what_comes_while_a_list_goes_on_stays() -> None:
    edges = Edges()
    edges.api.before["list mcptasks"] = lambda: edges.feed.put(record(task_object(7)))
    await edges.audit.full()
    assert len(edges.store) == 1


async def test_the_first_list_is_tried_until_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = filled()
    monkeypatch.setattr("mcptasks_operator.audit.PAUSE", 0.001)
    edges.api.faults["list mcptools"] = [DOWN, DOWN, ApiFailure(403, "Forbidden", "roles are not loaded yet")]
    edges.api.faults["list pods"] = [Gone(410, "Expired", "too old")]
    await asyncio.wait_for(edges.audit.first(), 10)
    assert len(edges.store) == 1


async def test_a_pulse_of_what_is_known_finds_nothing() -> None:
    edges = filled()
    await edges.audit.full()
    await edges.audit.pulse()
    edges.clock.now += 500
    assert edges.audit.lag == 0


async def test_a_change_that_no_watch_brings_counts_from_when_it_was_first_seen() -> None:
    edges = filled()
    await edges.audit.full()
    edges.api.change(TASK, f"t-{1:040x}", working())
    await edges.audit.pulse()
    edges.clock.now += 60
    edges.api.change(TASK, f"t-{1:040x}", {"message": "and on"})
    await edges.audit.pulse()
    edges.clock.now += 40
    assert edges.audit.lag == 100


@pytest.mark.parametrize("kind", [TASK, TOOL, JOB, POD], ids=lambda kind: kind.plural)
async def test_a_pulse_asks_it_of_each_watch(kind: object) -> None:
    edges = filled()
    await edges.audit.pulse()
    edges.clock.now += 10
    assert edges.audit.lag == 10
    await edges.audit.full()
    await edges.audit.pulse()
    assert edges.audit.lag == 0


async def test_a_watch_that_moves_on_behind_a_busy_object_is_alive() -> None:
    edges = filled()
    await edges.audit.full()
    name = f"t-{1:040x}"
    first = edges.api.change(TASK, name, working())
    await edges.audit.pulse()
    edges.clock.now += 60
    edges.api.change(TASK, name, {"message": "newer"})
    edges.feed.put(record(first))
    await edges.audit.pulse()
    assert edges.audit.lag == 0


async def test_a_pulse_lists_only_what_is_unfinished() -> None:
    edges = Edges()
    edges.api.add(TASK, task_object(1, status={"state": "completed"}))
    await edges.audit.pulse()
    edges.clock.now += 10
    assert edges.audit.lag == 0


async def test_pulses_and_full_lists_go_on_through_faults() -> None:
    edges = filled()
    edges.api.faults["list mcptools"] = [DOWN]
    run = asyncio.create_task(edges.audit.run(full_every=0.004, pulse_every=0.001))

    def filled_in() -> bool:
        edges.clock.now += 0.001
        return len(edges.store) > 0

    await until(filled_in)
    run.cancel()
    assert edges.store.task((NAMESPACE, f"t-{1:040x}")) is not None


async def test_lag_and_the_time_since_the_last_answer_are_shown() -> None:
    edges = filled()
    value = edges.metrics.registry.get_sample_value
    edges.clock.now += 5
    assert value("mcptasks_operator_audit_age_seconds") == 5
    await edges.audit.full()
    assert value("mcptasks_operator_audit_age_seconds") == 0
    edges.api.change(TASK, f"t-{1:040x}", working())
    edges.clock.now += 7
    await edges.audit.pulse()
    edges.clock.now += 3
    assert value("mcptasks_operator_audit_age_seconds") == 3
    assert value("mcptasks_operator_watch_lag_seconds") == 3
    edges.api.faults["list mcptasks"] = [DOWN]
    with pytest.raises(ApiFailure):
        await edges.audit.pulse()
    assert value("mcptasks_operator_audit_age_seconds") == 3
