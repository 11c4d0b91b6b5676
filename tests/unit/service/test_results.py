"""Stored results: exact, checked, and kept within bounds."""

import asyncio
import hashlib

import pytest

from mcptasks_crds.errors import ApiFailure, NotFound
from mcptasks_crds.kinds import RESULT
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.result import new_result, result_ref
from mcptasks_service.errors import ResultNotReady, TaskNotFound, Unavailable

from .core_parts import Parts, replica

TEXT = '{"content":[{"type":"text","text":"h\u00e9"}],  "x": 1.50}'


async def completed(parts: Parts, task_id: str = "t", text: str = TEXT) -> TaskRecord:
    await parts.make(task_id)
    await parts.api.complete(task_id, text)
    await parts.caught_up()
    found: TaskRecord = await parts.tasks.get(parts.caller, task_id)
    return found


@pytest.mark.req("R-9.4")
async def test_each_read_of_a_result_is_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="mcptasks.audit")
    async with replica() as parts:
        task = await completed(parts)
        caplog.clear()
        await parts.tasks.result(parts.caller, task)
        await parts.tasks.result(parts.caller, task)
    read = [record.getMessage() for record in caplog.records if '"result_read"' in record.getMessage()]
    assert len(read) == 2
    assert TEXT not in caplog.text


@pytest.mark.req("R-2.2")
@pytest.mark.fault("P20")
async def test_a_result_is_read_as_it_was_stored_to_the_byte_as_often_as_one_likes() -> None:
    async with replica() as here:
        task = await completed(here)
        for _ in range(3):
            assert await here.tasks.result(here.caller, task) == TEXT.encode()
        assert here.api.count("get mcptaskresults") == 1, "the second reading costs the API server nothing"
        async with replica(here.api) as there:
            assert await there.tasks.result(there.caller, task) == TEXT.encode()


async def test_without_a_result_there_is_none_to_read() -> None:
    async with replica() as parts:
        with pytest.raises(ResultNotReady, match="is submitted"):
            await parts.tasks.result(parts.caller, await parts.make("t"))


@pytest.mark.fault("T6")
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (NotFound(404, "NotFound", "gone"), TaskNotFound),
        (ApiFailure(0, "Unreachable", "no route"), Unavailable),
        (ApiFailure(403, "Forbidden", "no"), Unavailable),
    ],
)
async def test_a_result_that_cannot_be_read_is_an_error_never_an_empty_success(
    error: ApiFailure, raised: type[Exception]
) -> None:
    async with replica() as parts:
        task = await completed(parts)
        parts.api.refuse("get mcptaskresults", error)
        with pytest.raises(raised):
            await parts.tasks.result(parts.caller, task)
        assert await parts.tasks.result(parts.caller, task) == TEXT.encode()


async def test_a_result_whose_checksum_differs_is_not_handed_out() -> None:
    async with replica() as parts:
        task = await completed(parts)
        assert task.result is not None
        assert task.result.name is not None
        parts.api.objects[RESULT.plural, task.result.name]["spec"]["result"] = '{"content":[]}'
        with pytest.raises(Unavailable, match="damaged"):
            await parts.tasks.result(parts.caller, task)


async def test_the_cache_never_holds_more_than_its_bound_and_drops_the_least_recently_read() -> None:
    async with replica(result_cache=4000) as parts:
        cache = parts.core.tasks._results
        tasks = [await completed(parts, str(n), f'{{"content":[],"pad":"{str(n) * 900}"}}') for n in range(6)]
        for task in tasks[:4]:
            await parts.tasks.result(parts.caller, task)
        await parts.tasks.result(parts.caller, tasks[0])
        await parts.tasks.result(parts.caller, tasks[4])
        assert cache.size == sum(len(text) for text in cache._kept.values()) <= 4000
        before = parts.api.count("get mcptaskresults")
        await parts.tasks.result(parts.caller, tasks[0])
        assert parts.api.count("get mcptaskresults") == before, "read a moment ago"
        await parts.tasks.result(parts.caller, tasks[1])
        assert parts.api.count("get mcptaskresults") == before + 1


async def test_one_large_result_does_not_push_out_all_others() -> None:
    async with replica(result_cache=4000) as parts:
        cache = parts.core.tasks._results
        cache.keep("small", b"x" * 1000)
        cache.keep("large", b"x" * 1001)
        cache.keep("small", b"x" * 1000)
        assert list(cache._kept) == ["small"]
        assert cache.size == 1000


async def test_a_cache_of_nothing_keeps_nothing() -> None:
    async with replica(result_cache=0) as parts:
        task = await completed(parts)
        for _ in range(2):
            assert await parts.tasks.result(parts.caller, task) == TEXT.encode()
        assert parts.core.tasks._results.size == 0


@pytest.mark.fault("P16")
async def test_no_reader_ever_sees_completed_without_a_result() -> None:
    async with replica() as here, replica(here.api) as there:
        seen: list[TaskRecord] = []
        with there.core.informers[0].listen(None, lambda _key, task: seen.append(task)):

            async def run(n: int) -> None:
                task = await here.make(str(n), caller=None)
                await here.core.reports.result(task, f'{{"content":[],"n":{n}}}'.encode())

            await asyncio.gather(*(run(n) for n in range(90)))
            await there.caught_up()
            completed = [task for task in seen if task.state == "completed"]
            assert len(completed) == 90
            for task in completed:
                assert task.result is not None
                n = task.task_id
                assert await there.tasks.result(there.caller, task) == f'{{"content":[],"n":{n}}}'.encode()


def test_the_reference_of_a_result_tells_its_checksum() -> None:
    body = new_result("t-1", "u", TEXT, is_error=False)
    assert result_ref(body).sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
