"""The status of tools."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure, Refused
from mcptasks_crds.kinds import TOOL
from mcptasks_operator import ready
from mcptasks_operator.observe import read_tool
from mcptasks_operator.ready import AGAIN_SECONDS, COUNTS_AFTER, Ready, schema_fault
from mcptasks_operator.surroundings import Surroundings

from .cluster import NAMESPACE, FakeApi
from .edges import Clock, Edges, until
from .objects import task, tool_object

KEY = (NAMESPACE, "echo")


class Bench:
    """One tool, and what looks at it."""

    def __init__(self, **spec: Any) -> None:
        self.edges = Edges()
        self.api: FakeApi = self.edges.api
        self.clock = Clock(self.api.now)
        self.tool = self.api.add(TOOL, tool_object(**spec))
        self.edges.store.put_tool(read_tool(self.tool))
        self.edges.store.open_slots()
        self.ready = Ready(self.api, self.edges.store, self.clock, Surroundings("http://worker"))  # type: ignore[arg-type]

    @property
    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.api.one(TOOL, "echo").get("status") or {}
        return found

    @property
    def condition(self) -> tuple[str, str]:
        (condition,) = self.status["conditions"]
        return condition["status"], condition["reason"]

    async def look(self) -> None:
        await self.ready._look(KEY)


def refusal(code: int, message: str) -> ApiFailure:
    return (Refused if code == 422 else ApiFailure)(code, "Forbidden", message)


async def test_a_sound_tool_is_ready_by_a_dry_run_of_its_pod() -> None:
    bench = Bench()
    await bench.look()
    assert bench.condition == ("True", "Valid")
    assert bench.status["conditions"][0]["observedGeneration"] == 1
    assert bench.api.requests == ["create pods", "patch mcptools"]


async def test_a_tool_that_was_looked_at_is_not_looked_at_again() -> None:
    bench = Bench()
    await bench.look()
    await bench.look()
    assert bench.api.requests.count("create pods") == 1


async def test_a_schema_that_is_none_is_told_with_its_place() -> None:
    bench = Bench(inputSchema={"type": "object", "properties": {"n": {"type": "numbr"}}})
    await bench.look()
    assert bench.condition == ("False", "SchemaInvalid")
    assert "spec.inputSchema" in bench.status["conditions"][0]["message"]
    assert "properties/n/type" in bench.status["conditions"][0]["message"]
    assert schema_fault({"type": "object"}) is None


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (422, "spec.containers[0].image: Required value", ("False", "TemplateInvalid")),
        (403, 'violates PodSecurity "restricted:latest"', ("False", "PodRefused")),
        (403, "exceeded quota: pods, requested: pods=1", ("True", "QuotaExceeded")),
        (403, 'pods is forbidden: User "x" cannot create resource "pods"', ("Unknown", "PodRefused")),
    ],
)
async def test_what_the_api_server_says_of_the_pod(code: int, message: str, expected: tuple[str, str]) -> None:
    bench = Bench()
    bench.api.faults["create pods"] = [refusal(code, message)]
    await bench.look()
    assert bench.condition == expected
    assert message in bench.status["conditions"][0]["message"]


async def test_a_template_without_a_container_is_told_without_asking() -> None:
    bench = Bench(job={"template": {"spec": {"containers": []}}})
    await bench.look()
    assert bench.condition == ("False", "TemplateInvalid")
    assert "container" in bench.status["conditions"][0]["message"]


@pytest.mark.fault("E19")
async def test_what_may_pass_is_looked_at_again() -> None:
    bench = Bench()
    bench.api.faults["create pods"] = [refusal(403, 'serviceaccount "x" not found')]
    await bench.look()
    before = bench.status["conditions"][0]["lastTransitionTime"]
    bench.clock.now += AGAIN_SECONDS / 2
    await bench.look()
    assert bench.condition == ("False", "PodRefused")
    bench.clock.now += AGAIN_SECONDS / 2
    await bench.look()
    assert bench.condition == ("True", "Valid")
    assert bench.status["conditions"][0]["lastTransitionTime"] != before


async def test_a_verdict_that_stays_writes_nothing() -> None:
    bench = Bench()
    bench.api.faults["create pods"] = [refusal(403, "no account"), refusal(403, "no account")]
    await bench.look()
    bench.clock.now += AGAIN_SECONDS
    await bench.look()
    assert bench.api.requests.count("create pods") == 2
    assert bench.api.requests.count("patch mcptools") == 1


async def test_counts_of_a_short_task_are_not_written_and_those_of_a_long_one_are() -> None:
    bench = Bench()
    await bench.look()
    bench.edges.store.put_task(task())
    await bench.look()
    assert "active" not in bench.status
    bench.clock.now += COUNTS_AFTER
    await bench.look()
    assert (bench.status["active"], bench.status["queued"]) == (1, 0)
    assert bench.condition == ("True", "Valid")


async def test_counts_that_are_right_again_in_time_are_not_written() -> None:
    bench = Bench()
    await bench.look()
    bench.edges.store.put_task(task())
    await bench.look()
    bench.edges.store.drop_task((NAMESPACE, f"t-{1:040x}"), "task-1")
    await bench.look()
    bench.clock.now += COUNTS_AFTER
    await bench.look()
    assert bench.api.requests.count("patch mcptools") == 1


async def test_a_conflict_waits_for_the_news_and_a_fault_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.api.change(TOOL, "echo", {"active": 9})
    await bench.look()
    assert "conditions" not in bench.status
    bench.edges.store.put_tool(read_tool(bench.api.one(TOOL, "echo")))
    bench.api.faults["create pods"] = [ApiFailure(503, "", "busy")]
    monkeypatch.setattr(ready, "PACE", 0.001)
    monkeypatch.setattr(ready, "FAILED_SECONDS", 0.001)
    run = asyncio.create_task(bench.ready.run())
    bench.ready.touch(KEY)

    def written() -> bool:
        bench.clock.now += 0.01
        return "conditions" in bench.status

    await until(written)
    run.cancel()
    assert bench.condition == ("True", "Valid")


async def test_a_tool_that_is_gone_is_left_alone() -> None:
    bench = Bench()
    bench.edges.store.drop_tool(KEY, f"tool-{KEY[1]}")
    await bench.look()
    assert bench.api.requests == []
