"""Tasks as objects: what is known here, what is asked for, and what an answer does to the cache."""

import pytest

from mcptasks_crds.errors import ApiFailure, Conflict, NotFound, Refused
from mcptasks_crds.kinds import TASK
from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import owner_key
from mcptasks_crds.task import Owner
from mcptasks_service.errors import Unavailable
from mcptasks_service.store import Store

from .core_parts import Parts, replica
from .fake_api import NAMESPACE

AWAY = ApiFailure(0, "Unreachable", "no route to host")
KEY = owner_key(Owner(session="session"))


def store(parts: Parts) -> Store:
    found: Store = parts.core.tasks._store
    return found


async def test_what_is_written_is_known_at_once_though_the_watch_lags() -> None:
    async with replica() as parts:
        parts.api.moving.clear()
        task = await parts.make("t")
        assert store(parts).known(KEY, "t") == store(parts).latest(task) == task
        done = await store(parts).patch_status(task, {"state": "working"})
        assert store(parts).known(KEY, "t") == store(parts).latest(task) == done
        assert done.state is State.WORKING
        parts.api.moving.set()


@pytest.mark.req("R-9.1")
async def test_a_task_is_known_to_its_owner_and_by_its_id_alone() -> None:
    async with replica() as parts:
        await parts.make("t")
        assert store(parts).known(KEY, "t") is not None
        for key, task_id in (("", "t"), (KEY, "u"), ("", "\0session\0t"), (owner_key(Owner(subject="session")), "t")):
            assert store(parts).known(key, task_id) is None
            assert await store(parts).fetch(key, task_id) is None


async def test_a_refresh_gives_the_same_life_of_the_task_or_none() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.work("t")
        fresh = await store(parts).refresh(task)
        assert fresh is not None
        assert fresh.state is State.WORKING
        parts.api.refuse("get mcptasks", AWAY)
        with pytest.raises(Unavailable):
            await store(parts).refresh(task)
        await parts.api.delete(TASK, NAMESPACE, task.name)
        assert await store(parts).refresh(task) is None
        assert store(parts).latest(task) is None, "and is forgotten here"
        again = await parts.make("t")
        assert await store(parts).refresh(task) is None
        assert store(parts).latest(task) is None
        assert store(parts).latest(again) == again
        parts.api.moving.set()


async def test_a_task_that_is_being_deleted_counts_as_gone() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        item = parts.api.objects[TASK.plural, task.name]
        item["metadata"] |= {"deletionTimestamp": "2026-07-28T12:00:00Z", "resourceVersion": "999"}
        assert await store(parts).refresh(task) is None
        assert await store(parts).fetch(KEY, "t") is None
        assert store(parts).known(KEY, "t") is None


@pytest.mark.fault("T6")
@pytest.mark.parametrize("code", [0, 403, 429, 500, 503])
async def test_a_failure_of_the_api_server_is_one_that_may_pass_and_its_details_are_for_the_log(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        error = ApiFailure(code, "Secret", "etcd-7.internal refused")
        for request in ("patch mcptasks", "get mcptasks", "delete mcptasks", "list mcptasks"):
            parts.api.refuse(request, error)
        for call in (
            store(parts).patch_status(task, {}),
            store(parts).fetch(KEY, "u"),
            store(parts).delete(task),
            store(parts).fetch_call("c"),
        ):
            with pytest.raises(Unavailable) as refused:
                await call
            assert "etcd-7" not in str(refused.value)
        assert caplog.text.count("etcd-7.internal") == 4


@pytest.mark.parametrize(
    "error", [Conflict(409, "Conflict", ""), NotFound(404, "NotFound", ""), Refused(422, "Invalid", "")]
)
async def test_what_a_patch_can_meet_is_left_to_who_decides(error: ApiFailure) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.refuse("patch mcptasks", error)
        with pytest.raises(type(error)):
            await store(parts).patch_status(task, {})


async def test_a_deletion_forgets_this_life_of_the_task_only() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        await store(parts).delete(task)
        assert store(parts).latest(task) is None
        again = await parts.make("t")
        parts.api.refuse("delete mcptasks", Conflict(409, "Conflict", "another uid"))
        await store(parts).delete(task)
        assert store(parts).latest(again) == again
