"""Results of workers: durable before they are acknowledged, and never two."""

import hashlib
import json
from typing import Any

import pytest

from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, NotFound, Refused
from mcptasks_crds.kinds import RESULT, TASK
from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import result_name
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.sizes import RESULT_LIMIT
from mcptasks_service.errors import TaskEnded, TaskNotFound, Unavailable
from mcptasks_service.worker_identity import WorkerRefused

from .core_parts import Parts, replica
from .fake_api import NAMESPACE

AWAY = ApiFailure(0, "Unreachable", "no route to host")
CONFLICT = Conflict(409, "Conflict", "modified")
GONE = NotFound(404, "NotFound", "gone")


def a_result(text: str = "hi", **fields: Any) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text}], **fields}).encode()


async def report(parts: Parts, task: TaskRecord, body: bytes) -> TaskRecord:
    return await parts.core.reports.result(task, body)


def results(parts: Parts) -> int:
    return sum(plural == RESULT.plural for plural, _ in parts.api.objects)


@pytest.mark.req("R-2.2")
@pytest.mark.fault("P16", "E4")
async def test_a_result_is_stored_before_the_task_completes_and_named_by_the_same_write() -> None:
    body = b'{"content": [{"type":"text","text":"one\\ntwo"}],  "x": 1.50}'
    async with replica() as parts:
        task = await parts.make("t")
        before = len(parts.api.requests)
        done = await report(parts, task, body)
        assert parts.api.requests[before:] == ["create mcptaskresults", "patch mcptasks"]
        assert (done.state, done.reason, done.message) == (State.COMPLETED, "Succeeded", "one")
        assert done.result is not None
        assert done.result.sha256 == hashlib.sha256(body).hexdigest()
        assert done.result.size == len(body)
        assert await parts.stored(task) == done
        assert await parts.tasks.result(parts.caller, done) == body
        assert parts.api.count("get mcptaskresults") == 0, "kept from the report"


@pytest.mark.req("R-3.5")
@pytest.mark.fault("P10")
async def test_a_tool_s_own_error_completes_the_task_and_its_words_are_its_message() -> None:
    async with replica() as parts:
        done = await report(parts, await parts.make("t"), a_result("disk full\nat line 3", isError=True))
        assert (done.state, done.reason, done.message) == (State.COMPLETED, "ToolError", "disk full")
        assert done.result is not None
        assert done.result.is_error


@pytest.mark.fault("P25")
async def test_the_same_result_again_is_fine_and_counted_once() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        done = await report(parts, task, a_result())
        before = len(parts.api.requests)
        assert await report(parts, done, a_result()) == done
        assert len(parts.api.requests) == before
        assert await report(parts, task, a_result()) == done, "also by a replica that has yet to hear of the first"
        text = parts.core.metrics.render().decode()
        assert 'results_reported_total{outcome="completed",tool="build"} 2.0' in text


@pytest.mark.req("R-3.2")
async def test_another_result_is_refused_and_changes_nothing() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        done = await report(parts, task, a_result("first"))
        with pytest.raises(TaskEnded, match="it is completed"):
            await report(parts, done, a_result("second"))
        with pytest.raises(WorkerRefused, match="already has another result") as refused:
            await report(parts, task, a_result("second"))
        assert (refused.value.code, refused.value.reason) == (409, "another_result")
        assert await parts.tasks.result(parts.caller, await parts.stored(task)) == a_result("first")


@pytest.mark.fault("E4")
@pytest.mark.parametrize("error", [AWAY, ApiFailure(500, "", "etcd")])
async def test_a_crash_between_the_result_and_the_state_heals_by_reporting_again(error: ApiFailure) -> None:
    async with replica() as here, replica(here.api) as there:
        task = await here.make("t")
        here.api.refuse("patch mcptasks", error)
        with pytest.raises(Unavailable):
            await report(here, task, a_result())
        stored = await here.stored(task)
        assert (stored.state, results(here)) == (State.SUBMITTED, 1)
        done = await report(there, stored, a_result())
        assert done.state is State.COMPLETED
        assert results(here) == 1


async def test_an_answer_that_got_lost_after_the_state_was_written_heals_too() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.refuse("patch mcptasks", AWAY, landed=True)
        with pytest.raises(Unavailable):
            await report(parts, task, a_result())
        assert (await report(parts, task, a_result())).state is State.COMPLETED


@pytest.mark.parametrize(
    ("request_", "error"), [("create mcptaskresults", AWAY), ("create mcptaskresults", ApiFailure(403, "", "no"))]
)
async def test_with_the_api_server_away_nothing_is_decided(request_: str, error: ApiFailure) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.refuse(request_, error)
        with pytest.raises(Unavailable):
            await report(parts, task, a_result())
        assert not (await parts.stored(task)).terminal
        parts.api.refuse(request_, AlreadyExists(409, "AlreadyExists", "taken"))
        parts.api.refuse("get mcptaskresults", error)
        with pytest.raises(Unavailable):
            await report(parts, task, a_result())


@pytest.mark.req("R-7.1")
@pytest.mark.fault("P14")
async def test_a_cancel_that_lands_first_wins_and_the_result_is_deleted() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.fail("t", state=State.CANCELLED)
        with pytest.raises(TaskEnded, match="it is cancelled"):
            await report(parts, task, a_result())
        assert results(parts) == 0
        assert (await parts.stored(task)).state is State.CANCELLED
        parts.api.moving.set()


async def test_a_result_that_loses_and_cannot_be_deleted_is_left_to_its_task() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.fail("t", state=State.CANCELLED)
        parts.api.refuse("delete mcptaskresults", AWAY)
        with pytest.raises(TaskEnded):
            await report(parts, task, a_result())
        parts.api.moving.set()


async def test_a_task_known_to_have_ended_takes_no_result() -> None:
    async with replica() as parts:
        await parts.make("t")
        done = await parts.tasks.cancel(parts.caller, "t")
        before = len(parts.api.requests)
        with pytest.raises(TaskEnded):
            await report(parts, done, a_result())
        assert len(parts.api.requests) == before


@pytest.mark.fault("E16", "E17")
async def test_an_attempt_that_has_been_superseded_does_not_complete_the_task() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        await parts.api._status(await parts.api.task(), {"state": "working", "attempt": 1})
        await parts.caught_up()
        first = await parts.tasks.get(parts.caller, "t")
        parts.api.moving.clear()
        await parts.api._status(await parts.api.task(), {"attempt": 2})
        with pytest.raises(WorkerRefused, match=r"Attempt 2 .* has taken over") as refused:
            await report(parts, first, a_result("of the first"))
        assert refused.value.reason == "superseded"
        assert results(parts) == 0, "and leaves no result in the way of the second"
        done = await report(parts, await parts.stored(task), a_result("of the second"))
        assert done.message == "of the second"
        parts.api.moving.set()


async def test_a_conflict_that_settles_nothing_is_decided_again() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.work("t", progress=1)
        done = await report(parts, task, a_result())
        assert (done.state, done.progress) == (State.COMPLETED, {"progress": 1})
        parts.api.moving.set()


@pytest.mark.parametrize(
    ("faults", "raised"),
    [
        ([("patch mcptasks", GONE, 1)], TaskNotFound),
        ([("patch mcptasks", CONFLICT, 1), ("get mcptasks", GONE, 1)], TaskNotFound),
        ([("create mcptaskresults", AlreadyExists(409, "", ""), 1), ("get mcptaskresults", GONE, 1)], TaskNotFound),
        ([("patch mcptasks", CONFLICT, 9)], Unavailable),
        ([("patch mcptasks", Refused(422, "Invalid", "rules"), 9)], Unavailable),
    ],
)
async def test_a_report_of_a_task_that_goes_or_never_rests_ends_with_what_happened(
    faults: list[tuple[str, ApiFailure, int]], raised: type[Exception]
) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        for request_, error, times in faults:
            parts.api.refuse(request_, error, times=times)
        with pytest.raises(raised):
            await report(parts, task, a_result())


@pytest.mark.fault("E6", "E7", "E8")
@pytest.mark.parametrize("character", ["x", "<", '"'])
async def test_a_result_too_large_fails_the_task_with_both_sizes(character: str) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        with pytest.raises(WorkerRefused, match=rf"takes \d+ bytes.*at most {RESULT_LIMIT}") as refused:
            await report(parts, task, a_result(character * RESULT_LIMIT))
        assert (refused.value.code, refused.value.reason) == (413, "too_large")
        stored = await parts.stored(task)
        assert (stored.state, stored.reason) == (State.FAILED, "ResultTooLarge")
        assert stored.error is not None
        assert str(RESULT_LIMIT) in stored.error["message"]
        assert stored.error["code"] == -32603
        assert results(parts) == 0


@pytest.mark.fault("E6")
@pytest.mark.parametrize("size", [1024, 4096, 64 * 1024, 1_000_000])
async def test_a_result_up_to_the_limit_is_kept_whole(size: int) -> None:
    async with replica() as parts:
        body = a_result("x" * size)
        done = await report(parts, await parts.make("t"), body)
        assert await parts.tasks.result(parts.caller, done) == body


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        (b"", "not_json", "not JSON in UTF-8"),
        (b"hello", "not_json", "not JSON in UTF-8"),
        (b'{"content": []', "not_json", "not JSON in UTF-8"),
        (b"\xff\xfe", "not_json", "not JSON in UTF-8"),
        (b'{"content": [], "x": NaN}', "not_json", "NaN is not JSON"),
        (b'{"content": [], "x": -Infinity}', "not_json", "Infinity is not JSON"),
        (b"[" * 100_000, "not_json", "not JSON in UTF-8"),
        (b"[]", "not_a_result", "must be an MCP tool result"),
        (b"null", "not_a_result", "must be an MCP tool result"),
        (b"{}", "not_a_result", "must be an MCP tool result"),
        (b'{"content": "hi"}', "not_a_result", "must be an MCP tool result"),
        (b'{"content": ["hi"]}', "not_a_result", "must be an MCP tool result"),
        (b'{"content": [{"text": "hi"}]}', "not_a_result", "must be an MCP tool result"),
        (b'{"content": [], "isError": "yes"}', "not_a_result", "isError must be true or false, not 'yes'"),
        (b'{"content": [], "isError": null}', "not_a_result", "isError must be true or false, not None"),
    ],
)
async def test_what_is_no_tool_result_is_refused_and_the_task_goes_on(body: bytes, reason: str, words: str) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        with pytest.raises(WorkerRefused, match=words) as refused:
            await report(parts, task, body)
        assert (refused.value.code, refused.value.reason) == (422, reason)
        assert (await parts.stored(task)).state is State.SUBMITTED
        assert results(parts) == 0


@pytest.mark.fault("P8")
async def test_a_question_is_never_taken_for_a_result() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        with pytest.raises(WorkerRefused, match="resultType 'input_required'"):
            await report(parts, task, a_result(resultType="input_required"))
        assert (await parts.stored(task)).state is State.SUBMITTED
        assert (await report(parts, task, a_result(resultType="complete"))).state is State.COMPLETED


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ([], ""),
        ([{"type": "image", "data": "…"}], ""),
        ([{"type": "image"}, {"type": "text", "text": "\n  first\nsecond"}], "first"),
        ([{"type": "text", "text": "x" * 500}], f"{'x' * 200}…"),
        ([{"type": "text", "text": 7}], ""),
        ([{"type": "text", "text": "half \ud800 pair"}], "half ? pair"),
    ],
)
async def test_the_first_line_of_the_first_text_is_the_message(content: Any, summary: str) -> None:
    async with replica() as parts:
        done = await report(parts, await parts.make("t"), json.dumps({"content": content}).encode())
        assert done.message == summary


async def test_progress_is_refused_once_the_task_has_ended() -> None:
    async with replica() as parts:
        done = await report(parts, await parts.make("t"), a_result())
        with pytest.raises(TaskEnded):
            parts.core.reports.progress(done, 1, None, None)


@pytest.mark.fault("P16")
async def test_a_result_belongs_to_this_life_of_its_task() -> None:
    async with replica() as parts:
        first = await parts.make("t")
        await report(parts, first, a_result("first"))
        await parts.api.delete(TASK, NAMESPACE, first.name)
        await parts.caught_up()
        second = await parts.make("t")
        done = await report(parts, second, a_result("second"))
        assert done.result is not None
        assert done.result.name == result_name(second.uid) != result_name(first.uid)
        assert await parts.tasks.result(parts.caller, done) == a_result("second")
