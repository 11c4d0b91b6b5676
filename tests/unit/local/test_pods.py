"""Pods as they look from outside, with real programs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcptasks_local import pods
from mcptasks_local.errors import ApiError, Object

from .laptop import Laptop, conditions, eventually, job, laptop, phase, pod_spec, sh, terminated


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Laptop]:
    (tmp_path / "state").mkdir()
    async with laptop(tmp_path / "state") as one:
        yield one


async def ended(world: Laptop, spec: Object, name: str = "p") -> Object:
    world.create("pods", {"metadata": {"name": name, "annotations": {"args": '{"x": "ü"}'}}, "spec": spec})
    await world.until(lambda: phase(world.get("pods", name)) in ("Succeeded", "Failed"))
    return world.get("pods", name)


async def test_a_pod_runs_and_says_how_it_ended(world: Laptop) -> None:
    pod = await ended(world, pod_spec(*sh("echo out; echo err >&2; printf done >/dev/termination-log")))
    assert pod["status"]["phase"] == "Succeeded"
    how = terminated(pod)
    assert (how["exitCode"], how["reason"], how["message"]) == (0, "Completed", "done")
    assert pod["status"]["startTime"] <= how["startedAt"] <= how["finishedAt"]
    assert await world.log(pod) == b"out\nerr\n"
    assert world.events("p") == ["Started"]


@pytest.mark.parametrize(
    ("command", "code", "reason", "words"),
    [
        (["sh", "-c", "exit 3"], 3, "Error", None),
        (sh("kill -9 $$"), 137, "Error", None),
        (["no-such-program"], 128, "StartError", 'exec: "no-such-program": executable file not found'),
        ([], 128, "StartError", "give the template a `command`"),
        (["true", "\0"], 128, "StartError", "holds a NUL"),
    ],
)
async def test_a_bad_end(world: Laptop, command: list[str], code: int, reason: str, words: str | None) -> None:
    pod = await ended(world, pod_spec(*command))
    assert pod["status"]["phase"] == "Failed"
    how = terminated(pod)
    assert (how["exitCode"], how["reason"]) == (code, reason)
    assert words is None or words in how["message"]
    assert await world.log(pod) == b""
    assert ("Failed" in world.events("p")) == (reason == "StartError")


async def test_the_termination_message_is_cut_and_may_come_from_the_log(world: Laptop) -> None:
    pod = await ended(world, pod_spec(*sh("head -c 9000 /dev/zero | tr '\\0' x >/dev/termination-log")))
    assert terminated(pod)["message"] == "x" * 4096
    script = "head -c 9000 /dev/zero | tr '\\0' y; printf '\\377'; exit 1"
    pod = await ended(world, pod_spec(*sh(script), terminationMessagePolicy="FallbackToLogsOnError"), "q")
    assert terminated(pod)["message"] == "y" * 2047 + "\ufffd"
    pod = await ended(world, pod_spec(*sh("echo ok"), terminationMessagePolicy="FallbackToLogsOnError"), "r")
    assert "message" not in terminated(pod)
    pod = await ended(world, pod_spec(*sh("rm /dev/termination-log")), "s")
    assert "message" not in terminated(pod)


async def test_arguments_reach_the_program_by_file_variable_and_argument(world: Laptop) -> None:
    ref = {"fieldRef": {"fieldPath": "metadata.annotations['args']"}}
    sources = [
        {"downwardAPI": {"items": [{"path": "arguments.json", **ref}]}},
        {"serviceAccountToken": {"path": "token", "audience": "mcptasks", "expirationSeconds": 600}},
    ]
    script = 'cat /mcptasks/arguments.json "$TOKEN_FILE"; echo; printf "<%s>" "$@"; echo; pwd; echo "$ARG_a"'
    spec = pod_spec(
        *sh(script),
        args=["-", "$(ARG_a)", "$(NOPE)", "/mcptasks/x"],
        env=[{"name": "ARG_a", "value": "$$(TOKEN_FILE)"}, {"name": "TOKEN_FILE", "value": "/mcptasks/token"}],
        volumes=[{"name": "mcptasks", "projected": {"sources": sources}}],
        volumeMounts=[{"name": "mcptasks", "mountPath": "/mcptasks"}],
    )
    pod = await ended(world, spec)
    local = world.pod_folder(pod) / "volumes/mcptasks"
    assert (await world.log(pod)).decode().splitlines() == [
        '{"x": "ü"}default/default/p/mcptasks/600',
        f"<$(TOKEN_FILE)><$(NOPE)><{local}/x>",
        str(Path.cwd()),
        "$(TOKEN_FILE)",
    ]


async def test_a_program_gets_no_more_of_our_environment_than_it_needs(
    world: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    pod = await ended(world, pod_spec("env", env=[{"name": "OWN", "value": "1"}]))
    names = {line.partition("=")[0] for line in (await world.log(pod)).decode().splitlines()}
    assert {"PATH", "OWN", "TERM", "HOSTNAME"} <= names
    assert not any("SECRET" in name or name.startswith("PYTEST") for name in names)


async def test_python_is_the_running_one(world: Laptop) -> None:
    pod = await ended(world, pod_spec("python", "-c", "import sys, mcptasks_local; print(sys.prefix)"))
    assert (await world.log(pod)).decode().strip() == sys.prefix


async def test_a_working_directory_is_used_or_missed(world: Laptop, tmp_path: Path) -> None:
    assert await world.log(await ended(world, pod_spec("pwd", workingDir=str(tmp_path)))) == f"{tmp_path}\n".encode()
    pod = await ended(world, pod_spec("pwd", workingDir="/no/such"), "q")
    assert "/no/such" in terminated(pod)["message"]


async def test_init_containers_run_in_order_before_the_others(world: Laptop) -> None:
    mount = [{"name": "shared", "mountPath": "/shared"}]
    spec = pod_spec("cat", "/shared/x", volumeMounts=mount, volumes=[{"name": "shared", "emptyDir": {}}])
    spec["initContainers"] = [
        {"name": name, "image": "i", "command": [*sh(f"echo {name} >>/shared/x")], "volumeMounts": mount}
        for name in ("one", "two")
    ]
    pod = await ended(world, spec)
    assert await world.log(pod) == b"one\ntwo\n"
    assert pod["status"]["initContainerStatuses"][1]["ready"] is True
    spec["initContainers"][0]["command"] = [*sh("echo sorry; exit 2")]
    pod = await ended(world, spec, "q")
    assert pod["status"]["phase"] == "Failed"
    assert "waiting" in pod["status"]["initContainerStatuses"][1]["state"]
    assert "waiting" in pod["status"]["containerStatuses"][0]["state"]
    assert await world.log(pod, container="one") == b"sorry\n"


async def test_several_containers_run_side_by_side(world: Laptop, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    spec = pod_spec(*sh(f"echo hello >{tmp_path}/pipe"))
    spec["containers"].append({"name": "other", "image": "i", "command": [*sh(f"cat {tmp_path}/pipe; exit 4")]})
    pod = await ended(world, spec)
    assert pod["status"]["phase"] == "Failed"
    assert [terminated(pod, i)["exitCode"] for i in (0, 1)] == [0, 4]
    assert await world.log(pod, container="other") == b"hello\n"
    with pytest.raises(ApiError, match=r"choose one of: \[tool other\]"):
        await world.log(pod)
    with pytest.raises(ApiError, match="container nope is not valid for pod p"):
        await world.log(pod, container="nope")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always"}]}, "sidecars are not supported"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "of kind persistentVolumeClaim"),
    ],
)
async def test_what_is_not_supported_fails_at_once_and_says_so(world: Laptop, more: Object, words: str) -> None:
    pod = await ended(world, pod_spec("true") | more)
    assert pod["status"]["phase"] == "Failed"
    assert (terminated(pod)["exitCode"], terminated(pod)["reason"]) == (128, "StartError")
    assert words in terminated(pod)["message"]


async def test_a_pod_that_makes_us_stumble_fails_with_the_reason(
    world: Laptop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mcptasks_local.volumes.prepare", full)
    pod = await ended(world, pod_spec("true"))
    assert "No space left on device" in terminated(pod)["message"]
    assert "pod p could not be run" in caplog.text


async def test_a_missing_secret_is_waited_for(world: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "RETRY", 0.01)
    variable = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    volume = {"name": "v", "secret": {"secretName": "t"}}
    world.create(
        "pods", {"metadata": {"name": "p"}, "spec": pod_spec(*sh("echo $X"), env=[variable], volumes=[volume])}
    )

    def waiting() -> Object:
        statuses = world.get("pods", "p").get("status", {}).get("containerStatuses") or [{"state": {}}]
        found: Object = statuses[0]["state"].get("waiting", {})
        return found

    await world.until(lambda: waiting().get("reason") == "ContainerCreating")
    with pytest.raises(ApiError, match="is waiting to start: ContainerCreating"):
        await world.log(world.get("pods", "p"))
    await world.until(lambda: "FailedMount" in world.events("p"))
    world.create("secrets", {"metadata": {"name": "t"}})
    await world.until(lambda: waiting().get("reason") == "CreateContainerConfigError")
    assert waiting()["message"] == 'secret "s" not found'
    world.create("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    await world.until(lambda: phase(world.get("pods", "p")) == "Succeeded")
    assert await world.log(world.get("pods", "p")) == b"v\n"
    assert world.events("p") == ["FailedMount", "Failed", "Started"]


async def test_a_pod_that_waits_for_a_secret_can_be_deleted(world: Laptop) -> None:
    variable = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    world.create("pods", {"metadata": {"name": "p"}, "spec": pod_spec("true", env=[variable])})
    await world.until(lambda: "Failed" in world.events("p"))
    world.delete("pods", "p")
    await world.until(lambda: not world.pods())


async def test_a_pods_own_deadline(world: Laptop) -> None:
    spec = pod_spec(*sh("trap 'exit 0' TERM; sleep 60 & wait"), activeDeadlineSeconds=1)
    pod = await ended(world, spec)
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert terminated(pod)["exitCode"] == 0


async def test_following_a_log_ends_with_the_container(world: Laptop, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    world.run(job("a", *sh(f"echo first; cat {tmp_path}/gate; echo last")))
    pod = await world.running("a")
    assert await world.log(pod) == b"first\n"
    reader = asyncio.create_task(world.log(pod, follow=True))
    await asyncio.to_thread((tmp_path / "gate").write_text, "middle\n")
    assert await asyncio.wait_for(reader, 10) == b"first\nmiddle\nlast\n"


async def test_what_is_deleted_gets_its_grace_and_then_is_gone(world: Laptop) -> None:
    world.run(job("a", *sh("trap 'echo bye; exit 0' TERM; echo up; sleep 60 & wait")))
    pod = await world.running("a")
    reader = asyncio.create_task(world.log(pod, follow=True))
    folder = world.pod_folder(pod)
    world.delete("pods", pod["metadata"]["name"])
    marked = world.get("pods", pod["metadata"]["name"])
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    await world.until(lambda: not world.pods())
    assert "Killing" in world.events(pod["metadata"]["name"])
    assert await asyncio.wait_for(reader, 10) == b"up\nbye\n"
    await eventually(lambda: not folder.exists())
    assert conditions(await world.finished("a"))["Failed"] == "BackoffLimitExceeded"


async def test_what_ignores_sigterm_is_killed_with_its_children_after_the_grace_period(
    world: Laptop, tmp_path: Path
) -> None:
    script = f"trap '' TERM; sh -c 'echo $$ >{tmp_path}/child; exec sleep 60' & echo up; while :; do sleep 60; done"
    world.run(job("a", *sh(script), terminationGracePeriodSeconds=1))
    await world.running("a")
    await eventually(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().endswith("\n"))
    child = Path("/proc", (tmp_path / "child").read_text().strip())
    began = asyncio.get_running_loop().time()
    world.delete("jobs.batch", "a")
    await world.until(lambda: not world.pods())
    assert 0.9 < asyncio.get_running_loop().time() - began < 5
    await eventually(lambda: not child.exists() or " Z " in (child / "stat").read_text())


async def test_a_second_delete_may_shorten_the_grace_and_force_ends_it_at_once(world: Laptop) -> None:
    world.run(job("a", *sh("trap '' TERM; echo up; while :; do sleep 60; done")))
    pod = await world.running("a")
    world.delete("pods", pod["metadata"]["name"])
    world.delete("pods", pod["metadata"]["name"], grace=0)
    assert world.pods() == []
    await eventually(lambda: not world.pod_folder(pod).exists())
