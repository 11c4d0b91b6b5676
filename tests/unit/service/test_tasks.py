"""The use cases, whatever the dialect."""

import asyncio
import math
from contextlib import aclosing
from typing import Any

import pytest

from mcptasks_crds.errors import ApiFailure, Conflict, NotFound, Refused
from mcptasks_crds.kinds import TASK
from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import call_hash, owner_key, task_name
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.task import MILLISECONDS_LIMIT, Owner, Retention
from mcptasks_crds.tool import MCPTool
from mcptasks_service import store as store_module
from mcptasks_service.callers import ANYONE, Caller, anonymous
from mcptasks_service.errors import (
    ArgumentsInvalid,
    InvalidParams,
    LimitExceeded,
    ResultNotReady,
    ServiceError,
    TaskEnded,
    TaskExists,
    TaskNotFound,
    ToolNotFound,
    Unavailable,
)
from mcptasks_service.tasks import granted

from .core_parts import BOUND, replica
from .fake_api import NAMESPACE

AWAY = ApiFailure(0, "Unreachable", "no route to host")
CONFLICT = Conflict(409, "Conflict", "the object has been modified")
ALICE, BOB = anonymous("alice"), anonymous("bob")


def identified(subject: str) -> Caller:
    owner = Owner(issuer="https://id.example", subject=subject)
    return Caller(owner=owner, keys=(owner_key(owner),), identified=True, session="")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "RETRY_PAUSES", (0.0, 0.0, 0.0))


# Create


@pytest.mark.req("R-1.1", "R-3.1")
async def test_a_task_is_stored_as_it_was_asked_for() -> None:
    async with replica() as parts:
        task = await parts.make(
            "t", caller=ALICE, arguments={"path": "é<"}, call="c", retention=Retention(milliseconds=5)
        )
        item = parts.api.objects[TASK.plural, task.name]
        assert task.name == task_name(owner_key(Owner(session="alice")), "t")
        assert item["spec"] == {
            "taskId": "t",
            "owner": {"session": "alice"},
            "request": {"method": "tools/call", "name": "build", "arguments": '{"path": "é<"}'},
            "origin": "sep-1686",
            "retention": {"after": "Finish", "milliseconds": 5},
            "call": "c",
            "createdAt": "2026-07-25T17:20:00.000Z",
        }
        assert item["metadata"]["labels"]["mcptasks.dev/tool"] == "build"
        assert item["metadata"]["labels"]["mcptasks.dev/call"] == "c"
        assert task.state is State.SUBMITTED
        text = parts.core.metrics.render().decode()
        assert 'mcptasks_service_tasks_created_total{origin="sep-1686",tool="build"} 1.0' in text


@pytest.mark.fault("P4")
async def test_an_id_made_here_has_128_random_bits_and_belongs_to_whoever_holds_it() -> None:
    async with replica() as parts:
        made = [await parts.make(None, caller=ALICE) for _ in range(20)]
        assert len({task.task_id for task in made}) == 20
        assert {len(task.task_id) for task in made} == {22}
        assert {task.owner_key for task in made} == {owner_key(ANYONE)}
        assert (await parts.tasks.get(BOB, made[0].task_id)).uid == made[0].uid


async def test_an_id_made_here_for_somebody_known_is_theirs_alone() -> None:
    async with replica() as parts:
        task = await parts.make(None, caller=identified("alice"))
        with pytest.raises(TaskNotFound):
            await parts.tasks.get(identified("bob"), task.task_id)


@pytest.mark.req("R-1.6")
async def test_a_used_id_is_refused_by_name_and_nothing_runs_twice() -> None:
    async with replica() as parts:
        first = await parts.make("t", arguments={"path": "a"})
        for arguments in ({"path": "a"}, {"path": "b"}):
            with pytest.raises(TaskExists, match="Task already exists: 't'"):
                await parts.make("t", arguments=arguments)
        assert parts.api.tasks() == 1
        assert (await parts.stored(first)).uid == first.uid


@pytest.mark.req("R-1.6", "R-9.1")
async def test_a_used_id_of_another_owner_is_another_task() -> None:
    async with replica() as parts:
        one, other = await parts.make("t", caller=ALICE), await parts.make("t", caller=BOB)
        assert one.name != other.name
        assert parts.api.tasks() == 2


@pytest.mark.req("R-1.6")
@pytest.mark.fault("P25")
@pytest.mark.parametrize("lost", [AWAY, ApiFailure(500, "", "etcd"), ApiFailure(429, "TooManyRequests", "slow down")])
async def test_a_create_whose_answer_got_lost_is_tried_again_and_recognised(lost: ApiFailure) -> None:
    async with replica() as parts:
        parts.api.refuse("create mcptasks", lost, landed=True)
        task = await parts.make("t", arguments={"path": "a"}, retention=Retention(milliseconds=5))
        assert parts.api.tasks() == 1
        assert (await parts.tasks.get(parts.caller, "t")).uid == task.uid


@pytest.mark.fault("P25")
async def test_a_name_taken_by_another_task_while_the_answer_was_lost_is_taken() -> None:
    async with replica() as parts:
        await parts.make("t", arguments={"path": "a"})
        parts.api.refuse("create mcptasks", AWAY)
        with pytest.raises(TaskExists):
            await parts.make("t", arguments={"path": "b"})
        parts.api.refuse("create mcptasks", AWAY)
        parts.api.refuse("get mcptasks", NotFound(404, "NotFound", "deleted in between"))
        with pytest.raises(TaskExists):
            await parts.make("t", arguments={"path": "a"})
        parts.api.refuse("create mcptasks", AWAY)
        parts.api.refuse("get mcptasks", AWAY)
        with pytest.raises(Unavailable):
            await parts.make("t", arguments={"path": "a"})


@pytest.mark.fault("T6")
async def test_with_the_api_server_away_a_create_may_be_tried_again() -> None:
    async with replica() as parts:
        parts.api.refuse("create mcptasks", AWAY, times=4)
        with pytest.raises(Unavailable, match="try again"):
            await parts.make("t")
        assert parts.api.count("create mcptasks") == 4
        assert parts.api.tasks() == 0
        parts.api.refuse("create mcptasks", ApiFailure(403, "Forbidden", "no"))
        with pytest.raises(Unavailable):
            await parts.make("t")


async def test_what_the_api_server_finds_invalid_is_the_client_s_to_mend() -> None:
    async with replica() as parts:
        parts.api.refuse("create mcptasks", Refused(422, "Invalid", "spec.taskId: too odd"))
        with pytest.raises(InvalidParams, match="too odd"):
            await parts.make("t")


@pytest.mark.req("R-8.1")
@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"tool": "nope"}, ToolNotFound, "Unknown tool: 'nope'"),
        ({"arguments": {"path": 7}}, ArgumentsInvalid, "arguments.path: 7 is not of type 'string'"),
        ({"arguments": {"path": "x" * 300_000}}, ArgumentsInvalid, "take 300018 bytes.*at most 204800"),
        ({"arguments": {"path": "<" * 40_000}}, ArgumentsInvalid, "take 240018 bytes.*at most 204800"),
        ({"arguments": {"n": math.nan}}, ArgumentsInvalid, "NaN or Infinity"),
        ({"arguments": {"n": [-math.inf]}}, ArgumentsInvalid, "NaN or Infinity"),
        ({"arguments": {"path": "a\ud800"}}, ArgumentsInvalid, "half a surrogate pair"),
        ({"arguments": {"\udfff": 1}}, ArgumentsInvalid, "half a surrogate pair"),
        ({"task_id": ""}, InvalidParams, "Invalid taskId: it has 0 characters; it must have 1 to 1024"),
        ({"task_id": "x" * 10_240}, InvalidParams, "Invalid taskId: it has 10240 characters"),
        ({"task_id": "a\ud800"}, InvalidParams, "half a surrogate pair"),
    ],
)
@pytest.mark.fault("E8")
async def test_bad_input_is_refused_with_words_that_help_and_leaves_nothing(
    fields: dict[str, Any], error: type[ServiceError], words: str
) -> None:
    async with replica() as parts:
        with pytest.raises(error, match=words):
            await parts.make(**{"task_id": "t", **fields})
        assert parts.api.tasks() == 0
        assert parts.api.count("create mcptasks") == 0


async def test_arguments_nested_beyond_any_sense_are_refused() -> None:
    deep: Any = None
    for _ in range(200_000):
        deep = [deep]
    async with replica() as parts:
        with pytest.raises(ArgumentsInvalid, match="nested too deeply"):
            await parts.make("t", arguments={"deep": deep})
    while deep:
        deep = deep.pop()


@pytest.mark.parametrize("task_id", ["\0", "a\0b", "x" * 1024, "日本語 😀", "a\nb", " ", "../.."])
async def test_any_other_id_is_taken_as_it_is(task_id: str) -> None:
    async with replica() as parts:
        await parts.make(task_id)
        assert (await parts.tasks.get(parts.caller, task_id)).task_id == task_id


async def test_a_nul_in_the_arguments_is_legal_json_and_kept_escaped() -> None:
    async with replica() as parts:
        task = await parts.make("t", arguments={"path": "a\0b"})
        assert parts.api.objects[TASK.plural, task.name]["spec"]["request"]["arguments"] == '{"path": "a\\u0000b"}'


@pytest.mark.req("R-5.3", "R-9.3")
async def test_a_burst_cannot_pass_the_bound_on_open_tasks() -> None:
    async with replica(open_tasks=3) as parts:
        parts.api.gate = asyncio.Event()
        burst = asyncio.gather(*(parts.make(str(n)) for n in range(20)), return_exceptions=True)
        await asyncio.sleep(0)
        parts.api.gate.set()
        made = await burst
        assert sum(isinstance(m, TaskRecord) for m in made) == 3
        assert sum(isinstance(m, LimitExceeded) and m.reason == "open_tasks" for m in made) == 17
        assert parts.api.tasks() == 3
        await parts.make("bob's", caller=BOB)
        await parts.tasks.cancel(parts.caller, next(m.task_id for m in made if isinstance(m, TaskRecord)))
        await parts.make("again")
        assert not parts.core.tasks._creating


async def test_a_refused_create_gives_its_place_back() -> None:
    async with replica(open_tasks=1) as parts:
        for _ in range(3):
            with pytest.raises(ArgumentsInvalid):
                await parts.make("t", arguments={"path": 7})
        await parts.make("t")


@pytest.mark.req("R-9.3")
async def test_creations_above_the_rate_are_refused_and_nothing_is_created() -> None:
    async with replica(creations="2/hour") as parts:
        await parts.make("1")
        await parts.make("2")
        with pytest.raises(LimitExceeded) as over:
            await parts.make("3")
        assert over.value.reason == "creations"
        assert parts.api.tasks() == 2


def a_tool(**retention: str | None) -> MCPTool:
    return MCPTool.model_validate({"spec": {"job": {"template": {}}, "retention": retention}})


@pytest.mark.req("R-5.1")
@pytest.mark.parametrize(
    ("asked", "tool", "got"),
    [
        ("default", a_tool(), Retention(milliseconds=3_600_000)),
        ("default", a_tool(default="5m"), Retention(milliseconds=300_000)),
        ("default", a_tool(default=None), None),
        ("default", a_tool(default=None, max="1h"), Retention(milliseconds=3_600_000)),
        ("default", a_tool(default="2h", max="1h"), Retention(milliseconds=3_600_000)),
        ("unlimited", a_tool(), None),
        ("unlimited", a_tool(max="1h"), Retention(milliseconds=3_600_000)),
        (Retention(milliseconds=5), a_tool(max="1h"), Retention(milliseconds=5)),
        (Retention(milliseconds=0), a_tool(), Retention(milliseconds=0)),
        (Retention(milliseconds=MILLISECONDS_LIMIT), a_tool(), Retention(milliseconds=MILLISECONDS_LIMIT)),
        (
            Retention(after="Creation", milliseconds=10**10),
            a_tool(max="1h"),
            Retention(after="Creation", milliseconds=3_600_000),
        ),
        ("default", a_tool(default="999999999999999999d"), Retention(milliseconds=MILLISECONDS_LIMIT)),
    ],
)
@pytest.mark.fault("P19")
def test_the_retention_granted_is_what_was_asked_or_the_default_cut_to_the_maximum(
    asked: Any, tool: MCPTool, got: Retention | None
) -> None:
    assert granted(asked, tool) == got


# Get


@pytest.mark.fault("P27")
async def test_a_poll_of_a_task_known_here_costs_the_api_server_nothing() -> None:
    async with replica() as parts:
        await parts.make("t")
        before = len(parts.api.requests)
        for _ in range(100):
            await parts.tasks.get(parts.caller, "t")
        assert len(parts.api.requests) == before


@pytest.mark.fault("P24")
async def test_a_task_made_elsewhere_a_moment_ago_is_found_with_one_request() -> None:
    async with replica() as here, replica(here.api) as there:
        here.api.moving.clear()
        task = await here.make("t", caller=anonymous(None))
        before = here.api.count("get mcptasks")
        assert (await there.tasks.get(anonymous(None), "t")).uid == task.uid
        assert here.api.count("get mcptasks") == before + 1
        await there.tasks.get(anonymous(None), "t")
        assert here.api.count("get mcptasks") == before + 1, "and then it is known"
        here.api.moving.set()


@pytest.mark.req("R-9.1")
@pytest.mark.fault("P2", "P6")
async def test_someone_else_s_task_is_an_unknown_task_word_for_word() -> None:
    async with replica() as parts:
        await parts.make("t", caller=identified("alice"))
        calls: list[Any] = [parts.tasks.get, parts.tasks.cancel, parts.tasks.delete]
        for caller in (identified("bob"), BOB, anonymous(None)):
            for call in calls:
                said = []
                requests = []
                for task_id in ("t", "u"):
                    before = len(parts.api.requests)
                    with pytest.raises(TaskNotFound) as refused:
                        await call(caller, task_id)
                    said.append(str(refused.value).replace(repr(task_id), "ID"))
                    requests.append(parts.api.requests[before:])
                assert said[0] == said[1]
                assert requests[0] == requests[1], "nor do the requests tell"
        assert parts.api.tasks() == 1


@pytest.mark.req("R-9.1")
async def test_an_id_made_up_from_an_owner_and_an_id_leads_nowhere() -> None:
    async with replica() as here, replica(here.api) as there:
        here.api.moving.clear()
        await here.make("t", caller=ALICE)
        for parts in (here, there):
            with pytest.raises(TaskNotFound):
                await parts.tasks.get(anonymous(None), "\0alice\0t")
            with pytest.raises(TaskNotFound):
                await parts.tasks.cancel(BOB, "\0alice\0t")
        here.api.moving.set()


@pytest.mark.fault("T6")
async def test_a_task_made_by_hand_is_known_by_its_uid_to_whoever_holds_it() -> None:
    async with replica() as parts:
        body = {"metadata": {"name": "nightly"}, "spec": {"request": {"name": "build"}}}
        uid = (await parts.api.create(TASK, NAMESPACE, body))["metadata"]["uid"]
        await parts.caught_up()
        before = list(parts.api.requests)
        for caller in (ALICE, anonymous(None)):
            task = await parts.tasks.get(caller, uid)
            assert (task.name, task.task_id, task.state) == ("nightly", uid, State.SUBMITTED)
        assert parts.api.requests == before, "it is found in memory"
        for caller, task_id in ((identified("alice"), uid), (ALICE, "nightly"), (ALICE, uid.upper() + "x")):
            with pytest.raises(TaskNotFound):
                await parts.tasks.get(caller, task_id)
        assert not parts.tasks.has_listed(anonymous(None))
        assert (await parts.tasks.cancel(ALICE, uid)).state is State.CANCELLED
        await parts.tasks.delete(ALICE, uid)
        with pytest.raises(TaskNotFound):
            await parts.tasks.get(ALICE, uid)


async def test_a_task_of_one_s_own_comes_before_one_made_by_hand_whose_uid_is_its_id() -> None:
    async with replica() as parts:
        body = {"metadata": {"name": "nightly"}, "spec": {"request": {"name": "build"}}}
        uid = (await parts.api.create(TASK, NAMESPACE, body))["metadata"]["uid"]
        mine = await parts.make(uid, caller=ALICE)
        await parts.caught_up()
        assert (await parts.tasks.get(ALICE, uid)).name == mine.name
        assert (await parts.tasks.get(BOB, uid)).name == "nightly"


async def test_with_the_api_server_away_an_unknown_id_is_never_said_to_be_unknown() -> None:
    async with replica() as parts:
        parts.api.away = True
        with pytest.raises(Unavailable):
            await parts.tasks.get(parts.caller, "t")


@pytest.mark.req("R-9.3")
async def test_look_ups_of_unknown_ids_are_limited_apart_and_those_of_known_ones_go_on() -> None:
    async with replica(lookups="2/hour") as parts:
        await parts.make("t")
        for _ in range(2):
            with pytest.raises(TaskNotFound):
                await parts.tasks.get(parts.caller, "u")
        before = len(parts.api.requests)
        with pytest.raises(LimitExceeded) as over:
            await parts.tasks.get(parts.caller, "u")
        assert over.value.reason == "lookups"
        await parts.tasks.get(parts.caller, "t")
        assert len(parts.api.requests) == before


@pytest.mark.req("R-5.2", "R-2.6")
async def test_a_task_whose_time_is_over_is_unknown_though_the_operator_has_yet_to_delete_it() -> None:
    async with replica() as parts:
        await parts.make("t", retention=Retention(milliseconds=60_000))
        await parts.tasks.cancel(parts.caller, "t")
        parts.api.now += 59.9
        assert (await parts.tasks.get(parts.caller, "t")).state is State.CANCELLED
        parts.api.now += 0.2
        with pytest.raises(TaskNotFound, match="unknown or has expired"):
            await parts.tasks.get(parts.caller, "t")
        assert await parts.tasks.list(parts.caller, None, 10) == ([], None)


@pytest.mark.req("R-9.3")
async def test_a_list_counts_as_a_poll() -> None:
    async with replica(polls="1/minute") as parts:
        await parts.tasks.list(parts.caller, None, 10)
        with pytest.raises(LimitExceeded) as caught:
            await parts.tasks.list(parts.caller, None, 10)
        assert caught.value.reason == "polls"


async def test_a_stored_object_that_cannot_be_read_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.objects[TASK.plural, task.name]["status"] = {"state": "from-the-future"}
        parts.core.informers[0].drop(task.key)
        with pytest.raises(TaskNotFound):
            await parts.tasks.get(parts.caller, "t")
        assert "can't be read" in caplog.text


async def test_look_ups_are_counted_by_how_they_ended() -> None:
    async with replica() as here, replica(here.api) as there:
        here.api.moving.clear()
        await here.make("t")
        await there.tasks.get(here.caller, "t")
        await there.tasks.get(here.caller, "t")
        with pytest.raises(TaskNotFound):
            await there.tasks.get(here.caller, "u")
        here.api.moving.set()
        text = there.core.metrics.render().decode()
        for outcome in ("hit", "fetched", "unknown"):
            assert f'mcptasks_service_lookups_total{{outcome="{outcome}"}} 1.0' in text


# List


@pytest.mark.req("R-2.3", "R-2.4")
async def test_the_pages_of_a_list_hold_every_task_once_oldest_first() -> None:
    async with replica() as parts:
        for n in range(7):
            await parts.make(f"t{n}")
            parts.api.now += n % 2
        await parts.make("bob's", caller=BOB)
        await parts.make("plain", plain=True)
        found: list[TaskRecord] = []
        after: str | None = None
        pages = 0
        while True:
            page, after = await parts.tasks.list(parts.caller, after, 3)
            found += page
            pages += 1
            if after is None:
                break
        assert sorted(task.task_id for task in found) == [f"t{n}" for n in range(7)]
        assert [task.created for task in found] == sorted(task.created for task in found)
        assert pages == 3


@pytest.mark.req("R-2.3")
async def test_there_is_a_next_page_exactly_when_more_remain() -> None:
    async with replica() as parts:
        for n in range(3):
            await parts.make(str(n))
        assert (await parts.tasks.list(parts.caller, None, 3))[1] is None
        assert (await parts.tasks.list(parts.caller, None, 2))[1] is not None


@pytest.mark.req("R-2.3")
async def test_a_page_goes_on_where_the_last_ended_though_tasks_come_and_go() -> None:
    async with replica() as parts:
        for n in range(4):
            await parts.make(str(n))
            parts.api.now += 1
        page, after = await parts.tasks.list(parts.caller, None, 2)
        await parts.tasks.delete(parts.caller, page[1].task_id)
        await parts.make("new")
        rest, _ = await parts.tasks.list(parts.caller, after, 10)
        assert [task.task_id for task in rest] == ["2", "3", "new"]


@pytest.mark.req("R-2.3", "R-8.1")
@pytest.mark.parametrize("cursor", ["", "x", "1.5", "nan t", "inf t", "-inf t", "\0", "1.5 ", "one t"])
async def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    async with replica() as parts:
        with pytest.raises(InvalidParams, match="Invalid cursor"):
            await parts.tasks.list(parts.caller, cursor, 10)


# Cancel


@pytest.mark.req("R-7.1", "R-7.3")
@pytest.mark.fault("P14")
@pytest.mark.parametrize("state", [State.SUBMITTED, State.WORKING, State.INPUT_REQUIRED])
async def test_a_task_is_cancelled_at_once_with_one_write_wherever_it_is(state: State) -> None:
    async with replica() as parts:
        task = await parts.make("t", retention=Retention(milliseconds=1000))
        if state is not State.SUBMITTED:
            await parts.api._status(await parts.api.task(), {"state": str(state)})
            await parts.caught_up()
        before = len(parts.api.requests)
        done = await parts.tasks.cancel(parts.caller, "t", "no longer needed")
        assert parts.api.requests[before:] == ["patch mcptasks"]
        assert (done.state, done.reason, done.message) == (
            State.CANCELLED,
            "Cancelled",
            "cancelled by the requestor: no longer needed",
        )
        assert done.expires == parts.api.now + 1
        assert await parts.stored(task) == done
        assert 'tasks_cancelled_total{tool="build"} 1.0' in parts.core.metrics.render().decode()


@pytest.mark.req("R-7.2")
@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED, State.UNKNOWN])
async def test_a_task_that_has_ended_is_not_cancelled(state: State) -> None:
    async with replica() as parts:
        task = await parts.make("t")
        await (parts.api.complete() if state is State.COMPLETED else parts.api.fail(state=state))
        await parts.caught_up()
        ended = await parts.stored(task)
        with pytest.raises(TaskEnded, match=f"it is {state}"):
            await parts.tasks.cancel(parts.caller, "t")
        assert await parts.stored(task) == ended


@pytest.mark.fault("O3")
async def test_a_cancel_that_meets_another_write_is_decided_again() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.work("t", progress=1)
        done = await parts.tasks.cancel(parts.caller, "t")
        assert done.state is State.CANCELLED
        assert done.progress == {"progress": 1}, "and loses nothing of the other"
        assert await parts.stored(task) == done
        parts.api.moving.set()


@pytest.mark.req("R-7.2", "R-3.2")
async def test_a_cancel_that_meets_the_end_loses() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.complete("t")
        with pytest.raises(TaskEnded, match="it is completed"):
            await parts.tasks.cancel(parts.caller, "t")
        assert (await parts.stored(task)).state is State.COMPLETED
        parts.api.moving.set()


async def test_a_cancel_that_meets_a_deletion_finds_no_task() -> None:
    async with replica() as parts:
        for request, error in (
            ("patch mcptasks", NotFound(404, "NotFound", "gone")),
            ("get mcptasks", NotFound(404, "NotFound", "gone")),
        ):
            await parts.make(request)
            if request == "get mcptasks":
                parts.api.refuse("patch mcptasks", CONFLICT)
            parts.api.refuse(request, error)
            with pytest.raises(TaskNotFound):
                await parts.tasks.cancel(parts.caller, request)


async def test_a_cancel_is_not_decided_again_for_ever() -> None:
    async with replica() as parts:
        await parts.make("t")
        parts.api.refuse("patch mcptasks", CONFLICT, times=20)
        with pytest.raises(Unavailable, match="changes faster than it can be cancelled"):
            await parts.tasks.cancel(parts.caller, "t")
        assert parts.api.count("patch mcptasks") == 8


async def test_a_cancel_does_not_touch_another_life_of_the_name() -> None:
    async with replica() as parts:
        old = await parts.make("t")
        parts.api.moving.clear()
        await parts.api.delete(TASK, NAMESPACE, old.name)
        async with replica(parts.api) as other:
            new = await other.make("t")
            with pytest.raises(TaskNotFound):
                await parts.tasks.cancel(parts.caller, "t")
            assert (await parts.stored(new)).state is State.SUBMITTED
            assert (await parts.tasks.get(parts.caller, "t")).uid == new.uid
        parts.api.moving.set()


@pytest.mark.req("R-7.1")
async def test_a_request_is_cancelled_by_its_id_from_any_replica() -> None:
    async with replica() as here, replica(here.api) as there:
        task = await here.make("t", caller=ALICE, call=call_hash("alice", 0))
        await there.caught_up()
        before = here.api.count("list mcptasks")
        await there.tasks.cancel_call("bob", 0)
        await there.tasks.cancel_call("alice", 1)
        assert (await here.stored(task)).state is State.SUBMITTED
        assert here.api.count("list mcptasks") == before + 2
        await there.tasks.cancel_call("alice", 0)
        assert (await here.stored(task)).state is State.CANCELLED
        assert here.api.count("list mcptasks") == before + 2, "known here: not asked for"


@pytest.mark.req("R-7.1")
async def test_also_when_its_creation_has_yet_to_reach_the_replica_and_the_id_was_used_before() -> None:
    async with replica() as here, replica(here.api) as there:
        here.api.moving.clear()
        call = call_hash("alice", 0)
        old = await here.make("old", caller=ALICE, call=call)
        here.api.now += 1
        task = await here.make("t", caller=ALICE, call=call)
        await there.tasks.cancel_call("alice", 0)
        assert (await here.stored(task)).state is State.CANCELLED
        assert (await here.stored(old)).state is State.SUBMITTED
        here.api.moving.set()


@pytest.mark.req("R-7.2")
async def test_cancelling_a_request_that_made_no_task_or_has_ended_does_nothing() -> None:
    async with replica() as parts:
        task = await parts.make("t", caller=ALICE, call=call_hash("alice", 0))
        await parts.tasks.cancel(ALICE, "t")
        await parts.tasks.cancel_call("alice", 0)
        await parts.tasks.cancel_call("alice", 9)
        assert (await parts.stored(task)).state is State.CANCELLED
        before = len(parts.api.requests)
        await parts.tasks.cancel_call("", 0)
        assert len(parts.api.requests) == before, "outside a session a request id means nothing"
        parts.api.refuse("list mcptasks", AWAY)
        with pytest.raises(Unavailable):
            await parts.tasks.cancel_call("alice", 9)


@pytest.mark.req("R-9.3")
async def test_cancels_of_requests_that_made_no_task_are_limited_like_look_ups() -> None:
    async with replica(lookups="2/hour") as parts:
        before = parts.api.count("list mcptasks")
        for n in range(10):
            await parts.tasks.cancel_call("alice", n)
        assert parts.api.count("list mcptasks") == before + 2


# Delete


@pytest.mark.req("R-2.5", "R-2.6")
async def test_a_deleted_task_is_gone_at_once_whatever_its_state() -> None:
    async with replica() as parts:
        await parts.make("t")
        await parts.tasks.delete(parts.caller, "t")
        assert parts.api.tasks() == 0
        for call in (parts.tasks.get, parts.tasks.delete):
            with pytest.raises(TaskNotFound):
                await call(parts.caller, "t")
        await parts.make("t")


@pytest.mark.parametrize("error", [NotFound(404, "NotFound", "gone"), CONFLICT])
async def test_a_deletion_that_comes_second_is_fine(error: ApiFailure) -> None:
    async with replica() as parts:
        await parts.make("t")
        parts.api.refuse("delete mcptasks", error)
        await parts.tasks.delete(parts.caller, "t")


async def test_a_deletion_that_does_not_reach_the_api_server_is_no_deletion() -> None:
    async with replica() as parts:
        await parts.make("t")
        parts.api.refuse("delete mcptasks", AWAY)
        with pytest.raises(Unavailable):
            await parts.tasks.delete(parts.caller, "t")
        assert (await parts.tasks.get(parts.caller, "t")).task_id == "t"


# Changes, watch, result


async def test_the_changes_of_a_task_end_with_its_end() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        states: list[State] = []

        async def follow() -> None:
            async with aclosing(parts.tasks.changes(task)) as changes:
                states.extend([state.state async for state in changes])

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        await parts.api.work("t")
        await parts.caught_up()
        await parts.api.complete("t")
        async with asyncio.timeout(BOUND):
            await following
        assert states == [State.SUBMITTED, State.WORKING, State.COMPLETED]
        assert parts.core.informers[0]._listeners.keys() == {None}, "nobody listens any more"


async def test_who_waits_for_a_task_that_is_deleted_is_told() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        changes = parts.tasks.changes(task)
        await anext(changes)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await parts.tasks.delete(parts.caller, "t")
        with pytest.raises(TaskNotFound):
            async with asyncio.timeout(BOUND):
                await waiting


async def test_who_waits_for_a_task_is_not_given_its_successor() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        await parts.tasks.delete(parts.caller, "t")
        await parts.make("t")
        with pytest.raises(TaskNotFound):
            await anext(parts.tasks.changes(task))


@pytest.mark.req("R-10.1")
@pytest.mark.parametrize(
    ("caller", "seen"),
    [
        (ALICE, ["alice's", "by alice's call"]),
        (BOB, []),
        (anonymous(None), []),
        (identified("carol"), ["carol's"]),
    ],
)
async def test_a_watch_brings_the_caller_s_own_tasks(caller: Caller, seen: list[str]) -> None:
    async with replica() as parts:
        watch = parts.tasks.watch(caller)
        first = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        await parts.make("alice's", caller=ALICE)
        await parts.make("plain", caller=ALICE, plain=True)
        by_call = await parts.make(None, caller=ALICE, call=call_hash("alice", 1))
        await parts.make(None, caller=ALICE)
        await parts.make("carol's", caller=identified("carol"))
        await parts.caught_up()
        found: list[str] = []
        for _ in seen:
            async with asyncio.timeout(BOUND):
                task = await (first if not found else anext(watch))
            found.append("by alice's call" if task.uid == by_call.uid else task.task_id)
        assert found == seen
        if seen:
            first = asyncio.ensure_future(anext(watch))
            await asyncio.sleep(0)
        assert not first.done()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await watch.aclose()


async def test_a_watch_skips_states_that_come_faster_than_they_are_read_but_never_the_last() -> None:
    async with replica() as parts:
        watch = parts.tasks.watch(parts.caller)
        first = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        await parts.make("t")
        await first
        for n in range(50):
            await parts.api.work("t", progress=n)
        await parts.api.complete("t")
        await parts.caught_up()
        assert (await anext(watch)).state is State.COMPLETED
        await watch.aclose()


@pytest.mark.req("R-2.2")
async def test_a_task_that_has_not_ended_has_no_result() -> None:
    async with replica() as parts:
        task = await parts.make("t")
        with pytest.raises(ResultNotReady, match="Task 't' is submitted"):
            await parts.tasks.result(parts.caller, task)
