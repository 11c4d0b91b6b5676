"""Jobs end to end on real programs, and what a kill of the control plane leaves of them."""

import asyncio
import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcptasks_local.controllers import Controllers
from mcptasks_local.errors import ApiError

from .laptop import NAMESPACE, Laptop, conditions, eventually, job, laptop, sh, terminated


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Laptop]:
    (tmp_path / "state").mkdir()
    async with laptop(tmp_path / "state") as one:
        yield one


async def test_a_job_that_succeeds(world: Laptop) -> None:
    world.run(job("a", *sh("echo done")))
    done = await world.finished("a")
    assert list(conditions(done)) == ["SuccessCriteriaMet", "Complete"]
    assert done["status"]["succeeded"] == 1
    assert "active" not in done["status"]
    (pod,) = world.pods("a")
    assert pod["metadata"]["name"].startswith("a-")
    assert world.events("a") == ["SuccessfulCreate", "Started", "Completed"]
    assert await world.log(pod) == b"done\n"


@pytest.mark.parametrize(
    ("command", "code"), [(sh("exit 3"), 3), (("no-such-program",), 128), (sh("kill -SEGV $$"), 139)]
)
async def test_a_job_that_fails(world: Laptop, command: tuple[str, ...], code: int) -> None:
    world.run(job("a", *command))
    assert list(conditions(await world.finished("a"))) == ["FailureTarget", "Failed"]
    (pod,) = world.pods("a")
    assert terminated(pod)["exitCode"] == code
    assert world.events("a")[-1] == "BackoffLimitExceeded"


async def test_work_killed_from_outside_is_a_failure(world: Laptop) -> None:
    world.run(job("a", *sh("echo $$; sleep 60")))
    pod = await world.running("a")
    await eventually(lambda: (world.pod_folder(pod) / "containers/tool/log").read_bytes().endswith(b"\n"))
    os.kill(int(await world.log(pod)), signal.SIGKILL)
    assert conditions(await world.finished("a"))["Failed"] == "BackoffLimitExceeded"
    assert terminated(world.pods("a")[0])["exitCode"] == 137


async def test_five_megabytes_and_bytes_that_are_no_text_come_through(world: Laptop) -> None:
    world.run(job("a", *sh("head -c 5000000 /dev/urandom | tee /dev/stderr | sha256sum >/dev/termination-log")))
    await world.finished("a")
    (pod,) = world.pods("a")
    log = await world.log(pod)
    assert len(log) == 5_000_000
    assert terminated(pod)["message"].split()[0] == hashlib.sha256(log).hexdigest()


async def test_a_deadline(world: Laptop) -> None:
    world.run(job("a", *sh("sleep 60"), spec={"activeDeadlineSeconds": 1}))
    done = await world.finished("a")
    assert conditions(done) == {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"}
    assert world.pods("a") == []
    assert "SuccessfulDelete" in world.events("a")


async def test_two_hundred_jobs_at_once(world: Laptop) -> None:
    for number in range(200):
        world.run(job(f"j{number}", *sh(f"echo {number}")))
    began = time.monotonic()
    for number in range(200):
        assert "Complete" in conditions(await world.finished(f"j{number}"))
    assert time.monotonic() - began < 20
    logs = [await world.log(world.pods(f"j{number}")[0]) for number in range(200)]
    assert logs == [f"{number}\n".encode() for number in range(200)]


async def test_deleting_the_owner_of_a_job_ends_its_processes(world: Laptop, tmp_path: Path) -> None:
    owner = world.create("configmaps", {"metadata": {"name": "owner"}})["metadata"]
    item = job("a", *sh(f"echo $$ >{tmp_path}/pid; echo up; sleep 60"))
    item["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"], "controller": True}
    ]
    world.run(item)
    await world.running("a")
    pid = int((tmp_path / "pid").read_text())
    world.delete("configmaps", "owner")
    await world.until(lambda: not world.pods())
    with pytest.raises(ApiError):
        world.get("jobs.batch", "a")
    await eventually(lambda: not Path(f"/proc/{pid}").exists())


async def test_a_suspended_job_waits_and_a_resumed_one_runs(world: Laptop) -> None:
    world.run(job("a", *sh("echo up; sleep 60"), spec={"suspend": True}))
    await world.until(lambda: "Suspended" in conditions({"status": {}} | world.get("jobs.batch", "a")))
    assert world.pods("a") == []
    world.patch("jobs.batch", "a", {"spec": {"suspend": False}})
    await world.running("a")
    world.patch("jobs.batch", "a", {"spec": {"suspend": True}})
    await world.until(lambda: not world.pods("a"))
    assert "Failed" not in conditions(world.get("jobs.batch", "a"))


async def test_a_finished_job_goes_after_its_time(world: Laptop) -> None:
    world.run(job("a", "true", spec={"ttlSecondsAfterFinished": 0}))
    await world.until(lambda: not world.objects.list(world.objects.resource("jobs.batch"))[0] and not world.pods())


async def test_a_pod_that_can_not_be_made_is_tried_again(world: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcptasks_local.controllers._RETRY", 0.01)
    create, refused = world.objects.create, 2

    def sometimes(resource, namespace, item, **options):  # type: ignore[no-untyped-def]
        nonlocal refused
        if resource.id == "pods" and refused:
            refused -= 1
            raise ApiError(403, "Forbidden", "exceeded quota")
        return create(resource, namespace, item, **options)

    monkeypatch.setattr(world.objects, "create", sometimes)
    world.run(job("a", "true"))
    assert "Complete" in conditions(await world.finished("a"))
    assert world.events("a")[:3] == ["FailedCreate", "FailedCreate", "SuccessfulCreate"]


async def test_one_odd_object_does_not_stop_the_others(world: Laptop, caplog: pytest.LogCaptureFixture) -> None:
    broken = world.run(job("broken", "true", spec={"suspend": True}))
    broken = {**broken, "spec": {**broken["spec"], "suspend": False, "template": None}}
    world.storage.put("jobs.batch", NAMESPACE, "broken", broken)
    world.run(job("good", "true"))
    assert "Complete" in conditions(await world.finished("good"))
    assert "Job broken could not be handled" in caplog.text
    await world.controllers.stop(end_pods=True)
    world.controllers = Controllers(world.objects, world.folder, lambda *_: "")
    await world.controllers.start()
    world.run(job("later", "true"))
    assert "Complete" in conditions(await world.finished("later"))


async def test_the_end_of_a_dev_server_ends_the_pods_and_says_so(tmp_path: Path) -> None:
    world = Laptop(tmp_path, max_pods=1)
    await world.start()
    world.run(job("runs", *sh("trap '' TERM; echo up; while :; do sleep 60; done")))
    world.run(job("waits", *sh("echo later")))
    await world.running("runs")
    began = time.monotonic()
    await world.controllers.stop(end_pods=True, grace=0.2)
    assert time.monotonic() - began < 5
    (pod,) = world.pods("runs")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "Terminated")
    assert conditions(pod)["DisruptionTarget"] == "TerminationByKubelet"
    assert "Failed" in conditions(world.get("jobs.batch", "runs"))
    await world.stop()
    async with laptop(tmp_path) as again:
        assert "Complete" in conditions(await again.finished("waits"))


async def test_a_stop_that_leaves_pods_alone_is_gone_on_from(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    world = Laptop(tmp_path)
    await world.start()
    world.run(job("a", *sh(f"echo up; cat {tmp_path}/gate; exit 4")))
    await world.running("a")
    await world.stop(end_pods=False)
    async with laptop(tmp_path) as again:
        await asyncio.to_thread((tmp_path / "gate").write_text, "on\n")
        await again.finished("a")
        (pod,) = again.pods("a")
        assert terminated(pod)["exitCode"] == 4
        assert await again.log(pod) == b"up\non\n"


async def test_a_watch_that_was_ended_is_begun_again_and_misses_nothing(world: Laptop) -> None:
    first = world.controllers
    await first.stop(end_pods=False)
    real = world.objects.watch

    def ends_at_once(*given, **named):  # type: ignore[no-untyped-def]
        world.objects.watch = real  # type: ignore[method-assign]
        return aiter_of_nothing()

    world.objects.watch = ends_at_once  # type: ignore[method-assign]
    world.controllers = Controllers(world.objects, world.folder, lambda *_: "")
    await world.controllers.start()
    world.run(job("a", "true"))
    assert "Complete" in conditions(await world.finished("a"))


async def aiter_of_nothing() -> AsyncIterator[object]:
    for nothing in list[object]():
        yield nothing


REPOSITORY = Path(__file__).parents[3]
CONTROL_PLANE = """
import asyncio, sys
from pathlib import Path
from tests.unit.local.laptop import Laptop, job, sh

async def main():
    world = Laptop(Path(sys.argv[1]), max_pods=4)
    await world.start()
    for number in range(int(sys.argv[2])):
        world.run(job(f"j{number}", *sh(sys.argv[3].replace("NUMBER", str(number)))))
        await asyncio.sleep(0)
    print("up", flush=True)
    await asyncio.sleep(120)

asyncio.run(main())
"""


@contextlib.contextmanager
def control_plane(folder: Path, jobs: int, script: str):  # type: ignore[no-untyped-def]
    """One in a process of its own, which is killed at the end."""
    command = [sys.executable, "-c", CONTROL_PLANE, str(folder), str(jobs), script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process
        finally:
            process.kill()


async def test_work_outlives_a_killed_control_plane(tmp_path: Path) -> None:
    """One job ends while nothing runs, one after the restart; both ran once and both exit codes are known."""
    for number in range(2):
        os.mkfifo(tmp_path / f"gate{number}")
    script = f"echo run >>{tmp_path}/countNUMBER; cat {tmp_path}/gateNUMBER; exit 1NUMBER"
    with control_plane(tmp_path, 2, script):
        await eventually(lambda: all((tmp_path / f"count{n}").exists() for n in (0, 1)))
    await asyncio.to_thread((tmp_path / "gate0").write_text, "while down\n")
    await eventually(lambda: list(tmp_path.glob("pods/*/containers/tool/exit")))
    async with laptop(tmp_path) as world:
        await world.finished("j0")
        assert world.pods("j1")[0]["status"]["phase"] == "Running"
        await asyncio.to_thread((tmp_path / "gate1").write_text, "after\n")
        await world.finished("j1")
        assert [terminated(world.pods(f"j{n}")[0])["exitCode"] for n in (0, 1)] == [10, 11]
        assert await world.log(world.pods("j0")[0]) == b"while down\n"
    assert [(tmp_path / f"count{n}").read_text() for n in (0, 1)] == ["run\n", "run\n"]


async def test_a_pod_that_was_being_ended_when_the_control_plane_was_killed_is_ended(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 60; done"
    with control_plane(tmp_path, 1, script):
        await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    # Its Job was deleted with nobody there to see it but the store.
    world = Laptop(tmp_path)
    (pod,) = world.pods("j0")
    world.objects.grace = lambda _resource, _item: 1
    world.delete("jobs.batch", "j0", grace=0)
    world.delete("pods", pod["metadata"]["name"], grace=1)
    await world.start()
    await world.until(lambda: not world.pods())
    await eventually(lambda: not Path("/proc", (tmp_path / "pid").read_text().strip()).exists())
    await world.stop()


@pytest.mark.fault("E17")
async def test_killed_again_and_again_each_job_still_runs_once(tmp_path: Path) -> None:
    """SIGKILL at arbitrary moments of a burst: no Job is run twice, none is forgotten, none lost."""
    jobs, chance = 30, random.Random(7)
    (tmp_path / "ran").mkdir()
    script = f"echo run >>{tmp_path}/ran/NUMBER; sleep 0.05; exit 0"
    with control_plane(tmp_path, jobs, script):
        pass
    for _ in range(5):
        with control_plane(tmp_path, 0, script):
            await asyncio.sleep(chance.uniform(0.0, 0.12))  # the moment of the kill, not a wait
    async with laptop(tmp_path) as world:
        for number in range(jobs):
            assert "Complete" in conditions(await world.finished(f"j{number}"))
            assert len(world.pods(f"j{number}")) == 1
    assert {path.name: path.read_text() for path in (tmp_path / "ran").iterdir()} == {
        str(number): "run\n" for number in range(jobs)
    }
