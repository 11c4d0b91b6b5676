"""Limits: what one caller may ask for."""

import time

import pytest
from limits.storage import MemoryStorage

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.tool import MCPTool
from mcptasks_service import limits as limits_module
from mcptasks_service.callers import anonymous
from mcptasks_service.errors import LimitExceeded
from mcptasks_service.limits import Limits
from mcptasks_service.metrics import Metrics
from mcptasks_service.settings import Settings

ALICE, BOB = anonymous("alice"), anonymous("bob")
TOOL = MCPTool.model_validate({"metadata": {"name": "build"}, "spec": {"job": {"template": {}}}})
SLOW = MCPTool.model_validate(
    {"metadata": {"name": "slow"}, "spec": {"job": {"template": {}}, "rateLimit": {"perOwner": "1/hour"}}}
)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The library's clock, at the beginning of a window of an hour."""
    at = [1_785_240_000.0]
    monkeypatch.setattr(time, "time", lambda: at[0])
    return at


def limits(**settings: object) -> tuple[Limits, Metrics]:
    metrics = Metrics()
    return Limits(Settings.model_validate(settings), metrics), metrics


def refused(metrics: Metrics, limit: str) -> float:
    return metrics.registry.get_sample_value("mcptasks_service_refusals_total", {"limit": limit}) or 0.0


@pytest.mark.req("R-9.3")
@pytest.mark.fault("P27")
async def test_polls_above_the_rate_are_refused_with_the_time_to_wait(now: list[float]) -> None:
    those, metrics = limits(polls="3/minute")
    for _ in range(3):
        await those.poll(ALICE)
    with pytest.raises(LimitExceeded) as over:
        await those.poll(ALICE)
    assert (over.value.reason, over.value.limit) == ("polls", "3/minute")
    assert 0 < over.value.retry_after_ms <= 60_000
    assert "at most 3/minute by one caller" in str(over.value)
    assert refused(metrics, "polls") == 1


@pytest.mark.req("R-9.3")
async def test_one_caller_s_haste_costs_no_other(now: list[float]) -> None:
    those, _ = limits(polls="1/minute")
    await those.poll(ALICE)
    await those.poll(BOB)
    with pytest.raises(LimitExceeded):
        await those.poll(ALICE)


async def test_after_the_time_named_a_caller_is_let_in_again(now: list[float]) -> None:
    those, _ = limits(polls="2/second")
    for _ in range(2):
        await those.poll(ALICE)
    with pytest.raises(LimitExceeded) as over:
        await those.poll(ALICE)
    now[0] += over.value.retry_after_ms / 1000 + 1
    await those.poll(ALICE)


@pytest.mark.req("R-9.3")
async def test_creations_polls_and_look_ups_are_counted_apart(now: list[float]) -> None:
    those, metrics = limits(polls="1/minute", lookups="1/minute", creations="1/minute")
    await those.poll(ALICE)
    await those.lookup(ALICE)
    await those.creation(ALICE, TOOL, 0)
    for name, again in (
        ("polls", those.poll(ALICE)),
        ("lookups", those.lookup(ALICE)),
        ("creations", those.creation(ALICE, TOOL, 0)),
    ):
        with pytest.raises(LimitExceeded) as over:
            await again
        assert over.value.reason == name
        assert refused(metrics, name) == 1


async def test_a_tool_has_a_rate_of_its_own(now: list[float]) -> None:
    those, metrics = limits()
    await those.creation(ALICE, SLOW, 0)
    await those.creation(BOB, SLOW, 0)
    await those.creation(ALICE, TOOL, 0)
    with pytest.raises(LimitExceeded, match="tool slow is called at most 1/hour") as over:
        await those.creation(ALICE, SLOW, 0)
    assert (over.value.reason, over.value.limit) == ("tool_rate", "1/hour")
    assert refused(metrics, "tool_rate") == 1


@pytest.mark.req("R-5.3")
async def test_open_tasks_are_bounded_and_a_refusal_says_what_to_do(now: list[float]) -> None:
    those, metrics = limits(open_tasks=2, creations="1/minute")
    with pytest.raises(LimitExceeded, match=r"You have 2 unfinished tasks.*cancel one") as over:
        await those.creation(ALICE, TOOL, 2)
    assert (over.value.reason, over.value.limit, over.value.retry_after_ms) == ("open_tasks", "2", 1000)
    assert refused(metrics, "open_tasks") == 1
    await those.creation(ALICE, TOOL, 1)


@pytest.mark.parametrize(
    ("rate", "words"), [("5/second", "5/second"), ("5/minute", "5/minute"), ("5/hour", "5/hour"), ("5/day", "5/day")]
)
async def test_a_limit_is_shown_as_it_was_configured(now: list[float], rate: str, words: str) -> None:
    those, _ = limits(lookups=rate)
    for _ in range(5):
        await those.lookup(ALICE)
    with pytest.raises(LimitExceeded) as over:
        await those.lookup(ALICE)
    assert over.value.limit == words


@pytest.mark.req("R-5.3")
def test_the_limits_in_force_are_in_the_metrics() -> None:
    _, metrics = limits(polls="2/second", creations="3/second", open_tasks=9)

    def limit(name: str, per: str) -> float | None:
        return metrics.registry.get_sample_value("mcptasks_service_limit", {"limit": name, "per": per})

    assert limit("polls", "minute") == 120
    assert limit("creations", "minute") == 180
    assert limit("open_tasks", "owner") == 9


@pytest.mark.parametrize("uri", ["redis://localhost", "async+nonsense://", "memory", ""])
def test_a_storage_that_would_stop_the_loop_or_is_none_is_refused(uri: str) -> None:
    with pytest.raises(InvalidValue, match="write memory://"):
        limits(rate_storage=uri)


@pytest.mark.parametrize("uri", ["memory://", "async+memory://"])
def test_memory_is_the_storage_whose_cost_does_not_grow_with_the_callers(uri: str) -> None:
    those, _ = limits(rate_storage=uri)
    assert isinstance(those._limiter, limits_module._InMemory)
    assert isinstance(those._limiter._limiter.storage, MemoryStorage)


async def test_a_shared_storage_counts_for_all_replicas(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    from limits.aio.storage import MemoryStorage as Shared

    shared = Shared()
    monkeypatch.setattr(limits_module, "storage_from_string", lambda uri: shared)
    one, _ = limits(rate_storage="async+redis://localhost", polls="1/minute")
    other, _ = limits(rate_storage="async+redis://localhost", polls="1/minute")
    await one.poll(ALICE)
    with pytest.raises(LimitExceeded) as over:
        await other.poll(ALICE)
    assert over.value.retry_after_ms > 0
