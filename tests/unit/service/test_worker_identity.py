"""Which task a worker speaks for."""

from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure
from mcptasks_crds.kinds import POD, TASK
from mcptasks_crds.record import TaskRecord
from mcptasks_service import worker_identity
from mcptasks_service.errors import Unavailable
from mcptasks_service.worker_identity import CACHE_SECONDS, WorkerRefused

from .core_parts import Parts, replica
from .fake_api import NAMESPACE

AWAY = ApiFailure(0, "Unreachable", "no route to host")


async def asked(parts: Parts, authorization: str | None) -> TaskRecord:
    return await parts.core.workers.task(authorization)


async def refused(parts: Parts, authorization: str | None) -> tuple[int, str]:
    with pytest.raises(WorkerRefused) as error:
        await asked(parts, authorization)
    assert str(error.value)
    return error.value.code, error.value.reason


def pod(parts: Parts) -> Any:
    return next(item for (plural, _), item in parts.api.objects.items() if plural == POD.plural)


async def test_a_pod_of_the_present_attempt_speaks_for_its_task_also_before_its_job_is_recorded() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        header = await parts.worker(task)
        assert (await asked(parts, header)).uid == task.uid
        job = {"name": f"mct-{task.uid}-1", "uid": f"uid-of-mct-{task.uid}-1"}
        await parts.api._status(await parts.api.task(), {"state": "working", "attempt": 1, "job": job})
        await parts.caught_up()
        assert (await asked(parts, header.replace("Bearer", "bearer"))).attempt == 1


@pytest.mark.fault("P5")
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic dXNlcg==", "token"])
async def test_without_a_token_nobody_is_asked(header: str | None) -> None:
    async with replica() as parts:
        assert await refused(parts, header) == (401, "no_token")
        assert parts.api.count("review tokenreviews") == 0


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    "status",
    [
        {"error": "invalid bearer token"},
        {"authenticated": False},
        {"authenticated": True},
        {"authenticated": True, "audiences": ["https://kubernetes.default.svc"]},
        {"authenticated": True, "audiences": None},
        {},
    ],
)
async def test_a_token_of_another_audience_or_none_is_refused(status: dict[str, Any]) -> None:
    async with replica() as parts:
        header = await parts.worker(await parts.make("t"))
        user = parts.api.tokens["token"]["user"]
        parts.api.tokens["token"] = {**status, "user": user}
        assert await refused(parts, header) == (401, "bad_token")


@pytest.mark.parametrize(
    "user",
    [
        None,
        {},
        {"username": f"system:serviceaccount:{NAMESPACE}:default"},
        {"username": f"system:serviceaccount:{NAMESPACE}:default", "extra": {}},
        {"username": "system:serviceaccount:elsewhere:default", "extra": "of the pod"},
        {"username": f"system:serviceaccount:{NAMESPACE}-2:default", "extra": "of the pod"},
        {"username": f"{NAMESPACE}:default", "extra": "of the pod"},
        {"username": "alice", "extra": "of the pod"},
    ],
)
async def test_a_token_of_another_namespace_or_of_no_pod_is_refused(user: Any) -> None:
    async with replica() as parts:
        header = await parts.worker(await parts.make("t"))
        extra = parts.api.tokens["token"]["user"]["extra"]
        parts.api.tokens["token"]["user"] = user and {
            **user,
            **({"extra": extra} if user.get("extra") == "of the pod" else {}),
        }
        assert await refused(parts, header) == (403, "not_a_pod")


async def test_a_pod_that_is_gone_or_another_of_its_name_or_told_to_stop_is_refused() -> None:
    async with replica() as parts:
        header = await parts.worker(await parts.make("t"))
        its = pod(parts)
        its["metadata"]["deletionTimestamp"] = "2026-07-28T12:00:00Z"
        assert await refused(parts, header) == (403, "pod_gone")
        del its["metadata"]["deletionTimestamp"]
        its["metadata"]["uid"] = "another"
        assert await refused(parts, header) == (403, "pod_gone")
        del parts.api.objects[POD.plural, its["metadata"]["name"]]
        assert await refused(parts, header) == (403, "pod_gone")


@pytest.mark.parametrize(
    "change",
    [
        {"ownerReferences": []},
        {"ownerReferences": None},
        {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u"}]},
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "j", "uid": "u", "controller": True}]},
        {"labels": {}},
        {"labels": None},
    ],
)
async def test_a_pod_that_runs_no_task_is_refused(change: dict[str, Any]) -> None:
    async with replica() as parts:
        header = await parts.worker(await parts.make("t"))
        pod(parts)["metadata"].update(change)
        assert await refused(parts, header) == (403, "not_a_worker")


@pytest.mark.req("R-9.1")
async def test_a_label_that_names_another_task_does_not_give_it() -> None:
    async with replica() as parts:
        mine, theirs = await parts.make("mine"), await parts.make("theirs")
        header = await parts.worker(mine)
        pod(parts)["metadata"]["labels"] = {"mcptasks.dev/task": theirs.name}
        assert await refused(parts, header) == (409, "superseded")


@pytest.mark.fault("E16", "E17")
async def test_an_attempt_that_has_been_superseded_is_refused() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        first, second = await parts.worker(task, 1, "first"), await parts.worker(task, 2, "second")
        assert await refused(parts, second) == (409, "superseded")
        job = {"name": f"mct-{task.uid}-2", "uid": f"uid-of-mct-{task.uid}-2"}
        await parts.api._status(await parts.api.task(), {"state": "working", "attempt": 2, "job": job})
        await parts.caught_up()
        assert await refused(parts, first) == (409, "superseded")
        assert (await asked(parts, second)).attempt == 2


async def test_a_job_of_the_right_name_that_is_not_the_recorded_one_is_refused() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        header = await parts.worker(task)
        job = {"name": f"mct-{task.uid}-1", "uid": "the real one"}
        await parts.api._status(await parts.api.task(), {"state": "working", "attempt": 1, "job": job})
        await parts.caught_up()
        assert await refused(parts, header) == (409, "superseded")


@pytest.mark.fault("P24")
async def test_a_worker_is_not_refused_because_a_replica_s_watch_lags() -> None:
    async with replica() as here, replica(here.api) as there:
        here.api.moving.clear()
        task = await here.make("t")
        header = await here.worker(task)
        assert (await asked(there, header)).uid == task.uid
        assert here.api.count("get mcptasks") == 1
        job = {"name": f"mct-{task.uid}-2", "uid": f"uid-of-mct-{task.uid}-2"}
        await here.api._status(await here.api.task(), {"state": "working", "attempt": 2, "job": job})
        assert (await asked(there, await here.worker(task, 2, "second"))).attempt == 2
        here.api.moving.set()


async def test_a_task_that_is_gone_or_cannot_be_read_has_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        header = await parts.worker(task)
        item = parts.api.objects[TASK.plural, task.name]
        parts.core.informers[0].drop(task.key)
        item["status"] = {"state": "from-the-future"}
        assert await refused(parts, header) == (404, "no_task")
        del item["status"]
        await parts.tasks.delete(parts.caller, "t")
        assert await refused(parts, header) == (404, "no_task")


async def test_with_the_api_server_away_a_worker_may_try_again() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        header = await parts.worker(task)
        for request in ("review tokenreviews", "get pods"):
            parts.api.refuse(request, AWAY)
            with pytest.raises(Unavailable):
                await asked(parts, header)
        parts.core.informers[0].drop(task.key)
        parts.api.refuse("get mcptasks", AWAY)
        with pytest.raises(Unavailable):
            await asked(parts, header)
        assert (await asked(parts, header)).uid == task.uid


async def test_an_answer_is_believed_for_some_seconds_and_a_refusal_never() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        header = await parts.worker(task)
        for _ in range(10):
            await asked(parts, header)
        assert parts.api.count("review tokenreviews") == parts.api.count("get pods") == 1
        parts.api.now += CACHE_SECONDS
        pod(parts)["metadata"]["deletionTimestamp"] = "2026-07-28T12:00:00Z"
        for _ in range(2):
            assert await refused(parts, header) == (403, "pod_gone")
        assert parts.api.count("review tokenreviews") == 3


@pytest.mark.fault("P26")
async def test_the_cache_is_bounded_and_holds_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_identity, "CACHE_SIZE", 10)
    async with replica() as parts:
        task = await parts.make("t")
        for n in range(30):
            await asked(parts, await parts.worker(task, 1, f"secret-token-{n}"))
        cache = parts.core.workers._cache
        assert len(cache) == 10
        assert "secret" not in repr(cache)
        parts.api.now += CACHE_SECONDS
        await asked(parts, await parts.worker(task, 1, "the-next"))
        assert len(cache) == 1, "what has run out goes first"
        await asked(parts, await parts.worker(task, 1, "\ud800"))
