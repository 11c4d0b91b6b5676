import asyncio
import os
from pathlib import Path

import pytest

from mcptasks_local.kubelet import Rooms
from mcptasks_local.processes import start

from .laptop import Laptop, job, laptop, phase, pod_spec, sh


async def test_places_are_given_in_order_of_asking() -> None:
    rooms, order = Rooms(1), list[int]()

    async def stay(number: int) -> None:
        await rooms.take()
        order.append(number)
        await asyncio.sleep(0)
        rooms.give()

    async with asyncio.timeout(5):
        await asyncio.gather(*(stay(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]
    assert not rooms.full


async def test_who_gives_up_waiting_takes_no_place() -> None:
    rooms = Rooms(0)
    early, late = asyncio.create_task(rooms.take()), asyncio.create_task(rooms.take())
    await asyncio.sleep(0)
    early.cancel()
    await asyncio.sleep(0)
    rooms.give()
    await asyncio.wait_for(late, 5)
    assert rooms.full


async def test_a_place_given_to_one_who_was_just_cancelled_is_not_lost() -> None:
    rooms = Rooms(0)
    waiting = asyncio.create_task(rooms.take())
    await asyncio.sleep(0)
    rooms.give()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not rooms.full


async def test_what_runs_already_may_exceed_the_number() -> None:
    rooms = Rooms(1)
    rooms.claim()
    rooms.claim()
    rooms.give()
    assert rooms.full
    rooms.give()
    assert not rooms.full


async def test_pods_beyond_the_number_wait_for_their_turn(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "s").mkdir()
    async with laptop(tmp_path / "s", max_pods=1) as world:
        world.run(job("first", *sh(f"echo up; cat {tmp_path}/gate")))
        await world.running("first")
        world.run(job("second", *sh("echo second")))
        world.run(job("third", "true"))

        def why(name: str) -> list[str]:
            found = world.pods(name)
            return [c["reason"] for c in found[0].get("status", {}).get("conditions", ())] if found else []

        await world.until(lambda: why("second") == why("third") == ["Unschedulable"])
        # Deleted while it waits: gone at once, and nothing has run.
        world.delete("jobs.batch", "third")
        await world.until(lambda: not world.pods("third"))
        await asyncio.to_thread((tmp_path / "gate").write_text, "")
        await world.finished("second")
        assert await world.log(world.pods("second")[0]) == b"second\n"


async def test_what_an_unknown_pod_left_is_ended_and_removed(tmp_path: Path) -> None:
    place = tmp_path / "pods/unknown-uid/containers/tool"
    place.mkdir(parents=True)
    process = start(place, ["sleep", "60"], dict(os.environ), "/")
    (tmp_path / "pods/empty-uid").mkdir()
    async with laptop(tmp_path) as world:
        assert await asyncio.wait_for(process.wait(), 5) == 137
        assert list((world.folder / "pods").iterdir()) == []


async def test_a_pods_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with laptop(tmp_path) as world:
        world.run(job("a", "true"))
        await world.finished("a")
        assert world.pod_folder(world.pods("a")[0]).stat().st_mode & 0o077 == 0
        assert (tmp_path / "pods").stat().st_mode & 0o077 == 0


async def test_a_state_folder_with_a_blank_in_its_name_does_not_break_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "my state").mkdir()
    async with laptop(tmp_path / "my state") as world:
        world.run(job("a", *sh("echo well > /dev/termination-log; cat /dev/termination-log")))
        await world.finished("a")
        assert await world.log(world.pods("a")[0]) == b"well\n"


async def test_a_pod_that_has_ended_is_not_run_again(tmp_path: Path) -> None:
    async with laptop(tmp_path) as world:
        item = {"metadata": {"name": "p"}, "spec": pod_spec(*sh(f"echo run >>{tmp_path}/count"))}
        world.create("pods", item)
        await world.until(lambda: phase(world.get("pods", "p")) == "Succeeded")
        world.patch("pods", "p", {"metadata": {"labels": {"x": "1"}}})
        world.run(job("after", "true"))
        await world.finished("after")
    again = Laptop(tmp_path)
    await again.start()
    again.run(job("more", "true"))
    await again.finished("more")
    await again.stop()
    assert (tmp_path / "count").read_text() == "run\n"
