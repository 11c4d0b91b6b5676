"""One replica: ready, alive, and gone without a trace."""

import asyncio

import pytest

from mcptasks_crds.errors import ApiFailure
from mcptasks_service.core import SILENCE_LIMIT

from .core_parts import Cluster, replica

AWAY = ApiFailure(0, "Unreachable", "no route to host")


@pytest.mark.fault("T6")
async def test_a_synced_replica_stays_ready_while_the_api_server_is_away() -> None:
    async with replica() as parts:
        assert parts.core.ready() == (True, "ready")
        await parts.make("t")
        parts.api.away = True
        assert parts.core.ready()[0]
        assert (await parts.tasks.get(parts.caller, "t")).task_id == "t"


async def test_a_replica_that_waits_for_its_first_lists_is_not_ready_and_says_for_which() -> None:
    async with replica() as parts:
        for informer in parts.core.informers:
            informer.synced.clear()
        ready, why = parts.core.ready()
        assert not ready
        assert why == "waiting for the first list of tasks, tools"


async def test_only_an_open_watch_that_is_silent_for_long_means_death() -> None:
    async with replica() as parts:
        tasks, _ = parts.core.informers
        assert parts.core.alive() == (True, "alive")
        parts.api.now += SILENCE_LIMIT + 1
        for informer in parts.core.informers:
            informer.connected = False
        assert parts.core.alive()[0], "with the API server away a restart helps nobody"
        tasks.connected = True
        alive, why = parts.core.alive()
        assert not alive
        assert why == "the watch of tasks has been silent for 181 s"


async def test_the_end_stops_every_task_of_the_loop_that_it_started() -> None:
    before = asyncio.all_tasks()
    async with replica(progress_seconds=60) as parts:
        task = await parts.make("t")
        parts.core.reports.progress(task, 1, None, None)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() > before
    assert asyncio.all_tasks() == before


async def test_the_informers_are_seen_in_the_metrics() -> None:
    async with replica() as parts:
        await parts.make("t")
        parts.api.now += 7
        text = parts.core.metrics.render().decode()
        assert 'mcptasks_service_informer_objects{kind="tasks"} 1.0' in text
        assert 'mcptasks_service_informer_objects{kind="tools"} 1.0' in text
        assert 'mcptasks_service_watch_age_seconds{kind="tools"} 7.0' in text
        assert "mcptasks_service_ready 1.0" in text
        tasks, tools = parts.core.informers
        tasks.connected, tools.connected = True, False
        tools.synced.clear()
        text = parts.core.metrics.render().decode()
        assert 'mcptasks_service_watch_connected{kind="tasks"} 1.0' in text
        assert 'mcptasks_service_watch_connected{kind="tools"} 0.0' in text
        assert "mcptasks_service_ready 0.0" in text


async def test_a_replica_may_start_while_the_api_server_is_away() -> None:
    api = Cluster()
    await api.offer("build")
    api.refuse("list mcptools", AWAY)
    async with replica(api) as parts:
        assert parts.core.ready()[0]
