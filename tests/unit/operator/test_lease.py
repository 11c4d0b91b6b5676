"""Who leads."""

import asyncio
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure
from mcptasks_crds.kinds import LEASE
from mcptasks_operator.lease import Lease, LeaseLost

from .cluster import NAMESPACE, FakeApi
from .edges import Clock, until

DOWN = ApiFailure(0, "Unreachable", "the Kubernetes API can't be reached")


def lease(api: FakeApi, identity: str = "one", clock: Clock | None = None, **changes: Any) -> Lease:
    options: dict[str, Any] = {"seconds": 15, "renew": 0.001, "monotonic": clock or Clock()} | changes
    return Lease(api, NAMESPACE, "operator", identity, **options)  # type: ignore[arg-type]


def holder(api: FakeApi) -> str:
    name: str = api.one(LEASE, "operator")["spec"]["holderIdentity"]
    return name


async def soon(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, 10)


async def test_the_first_to_come_leads() -> None:
    api = FakeApi()
    await soon(lease(api).acquire())
    spec = api.one(LEASE, "operator")["spec"]
    assert spec["holderIdentity"] == "one"
    assert spec["leaseDurationSeconds"] == 15
    assert spec["renewTime"].endswith("Z")


async def test_another_waits_until_the_first_gives_it_up() -> None:
    api = FakeApi()
    first, second = lease(api), lease(api, "two")
    await soon(first.acquire())
    waiting = asyncio.create_task(second.acquire())
    await until(lambda: api.requests.count("get leases") >= 4)
    assert not waiting.done()
    await first.release()
    await soon(waiting)
    assert holder(api) == "two"


@pytest.mark.fault("O2")
async def test_another_takes_over_once_the_first_has_been_silent_for_the_duration() -> None:
    api, clock = FakeApi(), Clock()
    await soon(lease(api).acquire())
    second = lease(api, "two", clock)
    waiting = asyncio.create_task(second.acquire())
    await until(lambda: api.requests.count("get leases") >= 3)
    clock.now += 14
    await until(lambda: api.requests.count("get leases") >= 6)
    assert not waiting.done()
    clock.now += 2
    await soon(waiting)
    assert holder(api) == "two"
    assert api.one(LEASE, "operator")["spec"]["leaseTransitions"] == 1


async def test_a_process_takes_over_at_once_from_a_killed_one_of_its_name() -> None:
    api = FakeApi()
    await soon(lease(api).acquire())
    await soon(lease(api).acquire())
    assert holder(api) == "one"


@pytest.mark.fault("O6")
async def test_who_has_lost_it_is_told_at_the_next_renewal() -> None:
    api = FakeApi()
    first = lease(api)
    await soon(first.acquire())
    api.one(LEASE, "operator")["spec"]["holderIdentity"] = "two"
    api.add(LEASE, api.one(LEASE, "operator"))
    with pytest.raises(LeaseLost):
        await soon(first.hold())


async def test_a_lease_that_was_deleted_is_lost() -> None:
    api = FakeApi()
    first = lease(api)
    await soon(first.acquire())
    api.objects.clear()
    with pytest.raises(LeaseLost, match="deleted"):
        await soon(first.hold())


async def test_a_passing_fault_is_outlived_and_a_lasting_one_is_not() -> None:
    api, clock = FakeApi(), Clock()
    first = lease(api, clock=clock)
    await soon(first.acquire())
    api.faults["replace leases"] = [DOWN, DOWN]
    holding = asyncio.create_task(first.hold())

    await until(lambda: api.requests.count("replace leases") >= 4)
    assert not holding.done()
    api.faults["replace leases"] = [DOWN] * 100_000
    clock.now += 15.5
    with pytest.raises(LeaseLost, match="in time"):
        await soon(holding)


async def test_an_api_server_that_is_away_is_waited_for() -> None:
    api = FakeApi()
    api.faults["get leases"] = [DOWN, DOWN]
    await soon(lease(api).acquire())
    assert holder(api) == "one"


async def test_who_loses_the_race_for_a_free_lease_stands_by() -> None:
    api = FakeApi()
    rival = {"metadata": {"name": "operator"}, "spec": {"holderIdentity": "two", "leaseDurationSeconds": 15}}
    api.before["create leases"] = lambda: api.add(LEASE, rival)
    waiting = asyncio.create_task(lease(api).acquire())
    await until(lambda: api.requests.count("get leases") >= 3)
    assert not waiting.done()
    assert holder(api) == "two"
    waiting.cancel()


async def test_what_is_not_held_is_not_released() -> None:
    api = FakeApi()
    await lease(api).release()
    assert api.requests == []


async def test_a_release_that_fails_is_no_fault() -> None:
    api = FakeApi()
    first = lease(api)
    await soon(first.acquire())
    api.faults["replace leases"] = [DOWN]
    await first.release()
    assert holder(api) == "one"


@pytest.mark.fault("O7")
async def test_a_renewal_that_hangs_does_not_outlive_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    first = lease(api, seconds=1, renew=0.95, monotonic=asyncio.get_running_loop().time)
    await soon(first.acquire())

    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(api, "replace", hang)
    with pytest.raises(LeaseLost, match="no answer"):
        await soon(first.hold())


async def test_a_renewal_whose_answer_was_lost_is_our_own() -> None:
    api = FakeApi()
    first = lease(api)
    await soon(first.acquire())
    replace, lost = api.replace, [True]

    async def losing(*args: Any) -> Any:
        answer = await replace(*args)
        if lost and lost.pop():
            raise DOWN
        return answer

    api.replace = losing  # type: ignore[assignment,method-assign]
    holding = asyncio.create_task(first.hold())
    await until(lambda: api.requests.count("replace leases") >= 4)
    assert not holding.done()
    holding.cancel()


async def test_the_race_for_a_lapsed_lease_has_one_winner() -> None:
    api = FakeApi()
    api.add(LEASE, {"metadata": {"name": "operator"}, "spec": {"holderIdentity": ""}})
    api.before["replace leases"] = lambda: api.add(
        LEASE, {"metadata": {"name": "operator"}, "spec": {"holderIdentity": "two", "leaseDurationSeconds": 15}}
    )
    waiting = asyncio.create_task(lease(api).acquire())
    await until(lambda: api.requests.count("get leases") >= 3)
    assert not waiting.done()
    assert holder(api) == "two"
    waiting.cancel()
