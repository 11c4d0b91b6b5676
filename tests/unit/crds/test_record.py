"""What operator and service keep of a task."""

from typing import Any

import pytest

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import owner_hash, owner_key
from mcptasks_crds.record import TaskRecord, later_version, record
from mcptasks_crds.task import Owner, Retention

Object = dict[str, Any]
META = {
    "name": "t-1",
    "namespace": "ns",
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "2026-07-28T12:00:00Z",
}
STORED = 1_785_240_000.0


def a_task(*, spec: Object | None = None, meta: Object | None = None, **status: Any) -> Object:
    return {
        "metadata": {**META, **(meta or {})},
        "spec": {"taskId": "1", "request": {"name": "t"}, **(spec or {})},
        **({"status": status} if status else {}),
    }


@pytest.mark.req("R-3.1")
def test_a_bare_task_is_submitted_and_its_creation_is_that_of_the_object() -> None:
    task = record(a_task())
    assert (task.key, task.uid, task.resource_version) == (("ns", "t-1"), "u", "7")
    assert (task.state, task.terminal, task.created, task.stored) == (State.SUBMITTED, False, STORED, STORED)
    assert (task.owner_key, task.owner) == ("", "anyone")
    assert [task.retention, task.result, task.expires, task.cancel_reason] == [None] * 4
    assert not task.plain
    assert not task.deleting
    assert task.attempt == 0


def test_a_task_made_by_hand_is_known_by_its_uid() -> None:
    item = a_task(meta={"name": "nightly-tests", "uid": "6c0f3a52-77e0-4b7e-8d5a-1f5a7c1f6b52"})
    assert not record(item).by_hand
    assert record(item).short_name == "nightly-te"
    del item["spec"]["taskId"]
    task = record(item)
    assert (task.task_id, task.by_hand, task.owner_key) == (task.uid, True, "")
    assert task.short_name == "nightly-tests"


def test_everything_that_is_decided_on_is_read() -> None:
    task = record(
        a_task(
            spec={
                "owner": {"issuer": "i", "subject": "s"},
                "createdAt": "2026-07-28T11:59:59.500Z",
                "plain": True,
                "retention": {"milliseconds": 5},
                "call": "c",
                "parent": "p",
                "cancel": {"reason": "why"},
            },
            meta={"deletionTimestamp": "2026-07-28T12:00:10Z"},
            state="completed",
            reason="Succeeded",
            message="m",
            startedAt="2026-07-28T12:00:01Z",
            finishedAt="2026-07-28T12:00:02Z",
            expiresAt="2026-07-28T12:00:03Z",
            lastUpdatedAt="2026-07-28T12:00:04Z",
            job={"name": "j", "uid": "ju"},
            attempt=2,
            progress={"progress": 1},
            inputs={"k": {}},
            result={"name": "r", "size": 1, "sha256": "0", "isError": True},
            error={"code": 1},
            conditions=[{"type": "Finished"}],
        )
    )
    assert task.owner_key == owner_key(Owner(issuer="i", subject="s"))
    assert task.owner == owner_hash(task.owner_key)
    assert (task.created, task.stored) == (STORED - 0.5, STORED)
    assert (task.started, task.finished, task.expires, task.updated) == (
        STORED + 1,
        STORED + 2,
        STORED + 3,
        STORED + 4,
    )
    assert task.retention == Retention(milliseconds=5)
    assert (task.plain, task.call, task.parent, task.cancel_reason, task.deleting) == (True, "c", "p", "why", True)
    assert (task.job_name, task.job_uid, task.attempt) == ("j", "ju", 2)
    assert task.result is not None
    assert task.result.is_error
    assert (task.terminal, task.conditions) == (True, ({"type": "Finished"},))
    assert (task.progress, task.inputs, task.error) == ({"progress": 1}, {"k": {}}, {"code": 1})


@pytest.mark.parametrize(("cancel", "reason"), [(None, None), ({}, ""), ({"reason": "r"}, "r")])
def test_a_cancel_without_a_reason_is_still_a_cancel(cancel: Object | None, reason: str | None) -> None:
    assert record(a_task(spec={"cancel": cancel} if cancel is not None else {})).cancel_reason == reason


@pytest.mark.parametrize("status", [None, {}])
def test_an_empty_status_counts_as_none(status: Object | None) -> None:
    assert record({**a_task(), "status": status}).state is State.SUBMITTED


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (a_task(state="paused"), ValueError),
        (a_task(meta={"creationTimestamp": "yesterday"}), InvalidValue),
        (a_task(spec={"owner": {"subject": "a\0b"}}), ValueError),
        (a_task(spec={"retention": {"milliseconds": -1}}), ValueError),
        ({"metadata": META, "spec": {}}, KeyError),
    ],
)
def test_what_the_crd_would_not_have_let_in_is_refused(item: Object, error: type[Exception]) -> None:
    with pytest.raises(error):
        record(item)


def test_a_record_keeps_no_arguments() -> None:
    task = record(a_task(spec={"request": {"name": "t", "arguments": "x" * 1000}}))
    assert "xxx" not in repr(task)


@pytest.mark.parametrize(
    ("mine", "other", "later"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("a", "9", True), ("9", "", True)],
)
def test_the_later_of_two_states_is_told_by_number_not_by_text(mine: str, other: str, later: bool) -> None:
    def at(version: str) -> TaskRecord:
        return record(a_task(meta={"resourceVersion": version}))

    assert later_version(mine, other) is later
    assert at(mine).newer_than(at(other)) is later
