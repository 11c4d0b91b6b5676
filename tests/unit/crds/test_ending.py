"""The one status patch that ends a task."""

from typing import Any

import pytest

from mcptasks_crds.ending import MESSAGE_LIMIT, ended, with_condition
from mcptasks_crds.errors import IllegalMove
from mcptasks_crds.lifecycle import State, may_move
from mcptasks_crds.record import TaskRecord, record
from mcptasks_crds.task import MILLISECONDS_LIMIT, ResultRef, TaskError, TaskStatus
from mcptasks_crds.times import render

NOW = 1_785_240_100.0


def a_task(state: State = State.WORKING, *, retention: dict[str, Any] | None = None, **status: Any) -> TaskRecord:
    return record(
        {
            "metadata": {
                "name": "t-1",
                "namespace": "ns",
                "uid": "u",
                "resourceVersion": "7",
                "creationTimestamp": render(NOW - 100),
            },
            "spec": {"taskId": "1", "request": {"name": "t"}, **({"retention": retention} if retention else {})},
            "status": {"state": str(state), **status},
        }
    )


def end(task: TaskRecord, state: State = State.COMPLETED, **fields: Any) -> dict[str, Any]:
    return ended(task, state, now=NOW, reason="Succeeded", message="done", **fields)


REF = ResultRef(name="r", uid="u", size=2, sha256="0")


@pytest.mark.fault("P16")
def test_the_state_and_the_result_are_in_one_patch() -> None:
    status = end(a_task(), result=REF)
    assert status["state"] == "completed"
    assert status["result"] == {"name": "r", "uid": "u", "size": 2, "sha256": "0", "isError": False}
    assert status["finishedAt"] == status["lastUpdatedAt"] == render(NOW)
    assert "error" not in status
    assert "inputs" not in status


@pytest.mark.req("R-5.2")
@pytest.mark.parametrize(
    ("retention", "expires"),
    [
        (None, None),
        ({"milliseconds": 60_000}, render(NOW + 60)),
        ({"after": "Creation", "milliseconds": 30_000}, render(NOW + 30)),
        ({"after": "Creation", "milliseconds": 3_600_000}, render(NOW + 3500)),
        ({"milliseconds": MILLISECONDS_LIMIT}, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_the_end_says_when_the_task_expires(retention: dict[str, Any] | None, expires: str | None) -> None:
    assert end(a_task(retention=retention), result=REF)["expiresAt"] == expires


@pytest.mark.req("R-8.2")
def test_a_failure_carries_its_error() -> None:
    status = end(a_task(), State.FAILED, error=TaskError(code=-32603, message="m", data={"reason": "ImagePull"}))
    assert status["error"] == {"code": -32603, "message": "m", "data": {"reason": "ImagePull"}}
    assert "result" not in status


@pytest.mark.req("R-4.3")
def test_questions_still_open_end_with_the_task() -> None:
    task = a_task(State.INPUT_REQUIRED, inputs={"k": {"request": {}}})
    assert end(task, State.CANCELLED)["inputs"] is None


@pytest.mark.req("R-3.2")
@pytest.mark.parametrize("old", State)
@pytest.mark.parametrize("new", [state for state in State if state.terminal])
def test_a_task_that_has_ended_does_not_end_otherwise(old: State, new: State) -> None:
    if may_move(old, new):
        assert end(a_task(old), new)["state"] == str(new)
    else:
        with pytest.raises(IllegalMove):
            end(a_task(old), new)


def test_the_conditions_tell_the_end_and_that_it_no_longer_waits() -> None:
    queued = {"type": "Queued", "status": "True", "reason": "ConcurrencyLimit", "lastTransitionTime": render(1)}
    started = {"type": "Started", "status": "True", "reason": "JobCreated", "lastTransitionTime": render(2)}
    conditions = {c["type"]: c for c in end(a_task(conditions=[queued, started]), result=REF)["conditions"]}
    assert conditions["Started"] == started
    assert (conditions["Finished"]["status"], conditions["Finished"]["reason"]) == ("True", "Succeeded")
    assert (conditions["Queued"]["status"], conditions["Queued"]["lastTransitionTime"]) == ("False", render(NOW))


def test_a_task_that_never_waited_gets_no_such_condition() -> None:
    assert [c["type"] for c in end(a_task(), result=REF)["conditions"]] == ["Finished"]


def test_a_message_over_the_limit_of_the_schema_is_cut() -> None:
    status = ended(a_task(), State.FAILED, now=NOW, reason="r", message="x" * 10_000)
    assert len(status["message"]) == MESSAGE_LIMIT
    limit = TaskStatus.model_fields["message"].metadata[0].max_length
    assert limit == MESSAGE_LIMIT


def test_a_condition_moves_its_time_only_with_its_status() -> None:
    first = with_condition([], "Queued", "True", "A", "a", 1)
    again = with_condition(first, "Queued", "True", "B", "b", 2)
    moved = with_condition(again, "Queued", "False", "C", "c", 3)
    assert [c[0]["lastTransitionTime"] for c in (first, again, moved)] == [render(1), render(1), render(3)]
    assert (again[0]["reason"], again[0]["message"]) == ("B", "b")
