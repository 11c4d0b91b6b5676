"""The operator against a control plane whose Jobs are real processes."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcptasks_crds.api import Api, Object
from mcptasks_crds.errors import NotFound
from mcptasks_crds.kinds import JOB, POD, RESULT, TASK, TOOL
from mcptasks_crds.names import result_name, task_name
from mcptasks_crds.result import new_result
from mcptasks_crds.times import render
from mcptasks_operator.app import Operator
from mcptasks_operator.settings import Settings

if TYPE_CHECKING:
    from tests.conftest import ControlPlane

NAMESPACE = "default"
PATIENCE = 30.0


def settings(kubeconfig: Path, **changes: Any) -> Settings:
    defaults: dict[str, Any] = {
        "kubeconfig": str(kubeconfig),
        "namespaces": [NAMESPACE],
        "host": "127.0.0.1",
        "port": 0,
        "worker_url": "http://127.0.0.1:9",
        "lease_name": "",
        "starts_per_second": 200,
    }
    return Settings(**(defaults | changes))


@asynccontextmanager
async def operating(plane: "ControlPlane", **changes: Any) -> AsyncIterator[Operator]:
    """An operator in this loop; it has taken everything in when this begins."""
    stop = asyncio.Event()
    operator = Operator(plane.api, settings(plane.kubeconfig, **changes))
    run = asyncio.create_task(operator.run(stop))
    synced = asyncio.create_task(operator.synced.wait())
    await asyncio.wait({run, synced}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    synced.cancel()
    try:
        assert operator.synced.is_set(), run
        yield operator
    finally:
        stop.set()
        await asyncio.wait_for(run, PATIENCE)


async def offer(api: Api, name: str, *command: str, **spec: Any) -> None:
    container = {"name": "tool", "image": "none", "command": list(command)}
    body = {"metadata": {"name": name}, "spec": {"job": {"template": {"spec": {"containers": [container]}}}, **spec}}
    await api.create(TOOL, NAMESPACE, body)


async def ask(api: Api, tool: str, number: int = 0, *, keep: float = 600, **arguments: Any) -> str:
    task_id = f"{tool}-{number}"
    spec = {
        "taskId": task_id,
        "request": {"name": tool, "arguments": json.dumps(arguments)},
        "retention": {"after": "Finish", "milliseconds": round(keep * 1000)},
        "createdAt": render(time.time()),
    }
    name = task_name("", task_id)
    await api.create(TASK, NAMESPACE, {"metadata": {"name": name}, "spec": spec})
    return name


async def until(seen: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Ask until there is an answer, within bounds."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if answer := await seen():
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {PATIENCE:g} s")


async def state(api: Api, name: str, *wanted: str) -> Object:
    """The task's status once it is in one of these states."""

    async def there() -> Object | None:
        status: Object = (await api.get(TASK, NAMESPACE, name)).get("status") or {}
        return status if status.get("state") in wanted else None

    found: Object = await until(there, f"{name} {'/'.join(wanted)}")
    return found


async def result(api: Api, name: str) -> Object:
    uid = (await api.get(TASK, NAMESPACE, name))["metadata"]["uid"]
    text = (await api.get(RESULT, NAMESPACE, result_name(uid)))["spec"]["result"]
    value: Object = json.loads(text)
    return value


async def none_left(api: Api, kind: Any) -> None:
    async def empty() -> bool:
        return not (await api.list(kind, NAMESPACE))["items"]

    await until(empty, f"the last of {kind.plural} went")


async def test_a_call_runs_and_what_it_prints_is_its_result(control_plane: "ControlPlane") -> None:
    api = control_plane.api
    await offer(
        api,
        "echo",
        "echo",
        "$(ARG_text)",
        inputSchema={"type": "object", "properties": {"text": {"type": "string"}}},
    )
    async with operating(control_plane):
        name = await ask(api, "echo", text="$(HOME) $HOME $$ 'quoted' \n two")
        status = await state(api, name, "completed", "failed")
        assert status["reason"] == "Succeeded", status
        assert (await result(api, name))["content"][0]["text"] == "$(HOME) $HOME $$ 'quoted' \n two\n"
        await none_left(api, JOB)
        await none_left(api, POD)


async def test_an_exit_code_is_a_result_that_says_is_error(control_plane: "ControlPlane") -> None:
    api = control_plane.api
    await offer(api, "breaks", "sh", "-c", "echo one; echo two >&2; exit 3")
    async with operating(control_plane):
        name = await ask(api, "breaks")
        status = await state(api, name, "completed", "failed")
        assert (status["state"], status["reason"], status["message"]) == ("completed", "ToolError", "exit code 3: two")
        assert status["result"]["isError"] is True
        value = await result(api, name)
        assert value["isError"] is True
        assert value["content"][0]["text"] == "one\ntwo\n"


@pytest.mark.fault("E17", "E11")
async def test_each_of_many_waiting_tasks_runs_once_though_the_operator_restarts(
    control_plane: "ControlPlane", tmp_path: Path
) -> None:
    api, ran = control_plane.api, tmp_path / "ran"
    await offer(
        api,
        "count",
        "sh",
        "-c",
        f'echo "$ARG_i" >> {ran}',
        concurrency={"total": 8},
        inputSchema={"type": "object", "properties": {"i": {"type": "integer"}}},
    )
    names = [await ask(api, "count", number, i=number) for number in range(40)]
    for done in (5, 15):
        async with operating(control_plane):

            async def some(done: int = done) -> bool:
                return ran.exists() and len(ran.read_text().splitlines()) >= done

            await until(some, f"{done} had run")
    async with operating(control_plane):
        for name in names:
            status = await state(api, name, "completed", "failed")
            assert status["state"] == "completed", status
    assert sorted(int(line) for line in ran.read_text().split()) == list(range(40))


@pytest.mark.fault("E11")
async def test_what_ran_out_while_the_operator_was_down_goes_when_it_is_back(control_plane: "ControlPlane") -> None:
    api = control_plane.api
    await offer(api, "true", "true")
    async with operating(control_plane):
        short = [await ask(api, "true", number, keep=1.5) for number in range(3)]
        kept = await ask(api, "true", 99)
        for name in (*short, kept):
            await state(api, name, "completed")
    ends = (await api.get(TASK, NAMESPACE, short[-1]))["status"]["expiresAt"]
    assert [item["metadata"]["name"] for item in (await api.list(TASK, NAMESPACE))["items"]].count(kept) == 1
    async with operating(control_plane, deletes_per_second=1000):

        async def gone() -> bool:
            left = {item["metadata"]["name"] for item in (await api.list(TASK, NAMESPACE))["items"]}
            return left == {kept}

        await until(gone, f"what expired at {ends} went")

        async def results_gone() -> bool:
            return len((await api.list(RESULT, NAMESPACE))["items"]) == 1

        await until(results_gone, "their results went too")


@pytest.mark.parametrize("by", ["service", "kubectl"])
async def test_a_cancel_stops_the_processes(control_plane: "ControlPlane", tmp_path: Path, by: str) -> None:
    api, pid = control_plane.api, tmp_path / "pid"
    # In a container's command $$ stands for one $.
    await offer(api, "sleeper", "sh", "-c", f"echo $$$$ > {pid}; exec sleep 600")
    async with operating(control_plane):
        name = await ask(api, "sleeper")
        await state(api, name, "working")

        async def started() -> bool:
            return pid.exists() and bool(pid.read_text().strip())

        await until(started, "the process began")
        process = Path("/proc") / pid.read_text().strip()
        assert process.exists()
        if by == "service":
            status = {"state": "cancelled", "finishedAt": render(time.time())}
            await api.patch(TASK, NAMESPACE, name, {"status": status}, subresource="status")
        else:
            await api.patch(TASK, NAMESPACE, name, {"spec": {"cancel": {"reason": "not needed"}}})
            assert (await state(api, name, "cancelled"))["message"].endswith("not needed")

        async def ended() -> bool:
            return not process.exists()

        await until(ended, "the process ended")
        await none_left(api, JOB)


async def test_a_deleted_task_takes_its_processes_with_it(control_plane: "ControlPlane") -> None:
    api = control_plane.api
    await offer(api, "sleeper", "sleep", "600")
    async with operating(control_plane):
        name = await ask(api, "sleeper")
        await state(api, name, "working")
        await api.delete(TASK, NAMESPACE, name)
        await none_left(api, POD)


@pytest.mark.fault("E4")
async def test_a_crash_between_result_and_status_heals(control_plane: "ControlPlane") -> None:
    """The worker's result was stored; then everything that could have said so was killed, and the Job with it."""
    api = control_plane.api
    await offer(api, "sleeper", "sleep", "600")
    async with operating(control_plane):
        name = await ask(api, "sleeper")
        await state(api, name, "working")
    uid = (await api.get(TASK, NAMESPACE, name))["metadata"]["uid"]
    text = '{"content":[{"type":"text","text":"from the worker"}]}'
    await api.create(RESULT, NAMESPACE, new_result(name, uid, text, is_error=False))
    for job in (await api.list(JOB, NAMESPACE))["items"]:
        await api.delete(JOB, NAMESPACE, job["metadata"]["name"])
    async with operating(control_plane):
        status = await state(api, name, "completed", "failed")
        assert status["state"] == "completed", status
        assert (await result(api, name))["content"][0]["text"] == "from the worker"


async def test_a_call_takes_no_more_than_six_writes_and_the_removal_of_its_job(control_plane: "ControlPlane") -> None:
    """POST task, POST Job, working, POST result, completed, DELETE at expiry; the Job's DELETE is counted apart."""
    api = control_plane.api
    await offer(api, "short", "sleep", "0.5")
    writes: list[str] = []
    patch, create, delete = api.patch, api.create, api.delete

    async def patched(kind: Any, *args: Any, **options: Any) -> Object:
        writes.append(f"PATCH {kind.plural}")
        return await patch(kind, *args, **options)

    async def created(kind: Any, *args: Any, **options: Any) -> Object:
        if not options.get("dry_run"):
            writes.append(f"POST {kind.plural}")
        return await create(kind, *args, **options)

    async def deleted(kind: Any, *args: Any, **options: Any) -> None:
        writes.append(f"DELETE {kind.plural}")
        await delete(kind, *args, **options)

    with contextlib.ExitStack() as stack:
        monkey = pytest.MonkeyPatch()
        stack.callback(monkey.undo)
        monkey.setattr(api, "patch", patched)
        monkey.setattr(api, "create", created)
        monkey.setattr(api, "delete", deleted)
        async with operating(control_plane):
            name = await ask(api, "short", keep=0.2)

            async def gone() -> bool:
                try:
                    await api.get(TASK, NAMESPACE, name)
                except NotFound:
                    return True
                return False

            await until(gone, "the task expired")
    ours = sorted(write for write in writes if not write.endswith("mcptools"))
    assert ours == sorted(
        [
            "POST mcptasks",
            "POST jobs",
            "PATCH mcptasks",
            "POST mcptaskresults",
            "PATCH mcptasks",
            "DELETE jobs",
            "DELETE mcptasks",
        ]
    )


async def test_a_second_replica_takes_over_when_the_first_stops(control_plane: "ControlPlane") -> None:
    api = control_plane.api
    await offer(api, "true", "true")
    lease = {"lease_name": "op", "renew_seconds": 0.1}
    async with operating(control_plane, replica="second", **lease) as second:
        await asyncio.wait_for(second.leading.wait(), PATIENCE)
        async with operating(control_plane, replica="third", **lease) as third:
            name = await ask(api, "true")
            await state(api, name, "completed")
            # The follower knows all the same.
            await until(lambda: _knows(third, name), "the follower heard of it")
            assert not third.leading.is_set()


async def _knows(operator: Operator, name: str) -> bool:
    task = operator.store.task((NAMESPACE, name))
    return task is not None and task.terminal
