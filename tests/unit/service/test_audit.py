"""The audit log."""

import json
import logging

import pytest

from mcptasks_crds.names import owner_hash
from mcptasks_service import audit
from mcptasks_service.callers import anonymous
from mcptasks_service.errors import ArgumentsInvalid, LimitExceeded, TaskExists, TaskNotFound

from .core_parts import replica

SECRET = "hunter2"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="mcptasks.audit")
    return caplog


def events(log: pytest.LogCaptureFixture) -> list[dict[str, str]]:
    return [json.loads(r.getMessage()) for r in log.records if r.name == "mcptasks.audit"]


@pytest.mark.req("R-9.4")
async def test_a_task_s_life_is_in_the_log_without_its_arguments_or_its_owner(log: pytest.LogCaptureFixture) -> None:
    async with replica() as parts:
        task = await parts.make("t", arguments={"path": SECRET})
        await parts.tasks.cancel(parts.caller, "t", SECRET)
        await parts.tasks.delete(parts.caller, "t")
    said = events(log)
    assert [e["event"] for e in said] == ["created", "cancelled", "deleted"]
    for event in said:
        assert event["caller"] == owner_hash(parts.caller.key)
        assert (event["task"], event["taskId"], event["tool"]) == (task.name, "t", "build")
    assert SECRET not in log.text
    assert "session" not in log.text


@pytest.mark.req("R-9.4")
async def test_every_refusal_is_in_the_log_with_its_reason(log: pytest.LogCaptureFixture) -> None:
    async with replica(open_tasks=1) as parts:
        with pytest.raises(TaskNotFound):
            await parts.tasks.get(parts.caller, "x" * 1000)
        with pytest.raises(ArgumentsInvalid):
            await parts.make("t", arguments={"path": 7})
        await parts.make("t")
        with pytest.raises(LimitExceeded):
            await parts.make("u")
        parts.core.tasks._limits._open_tasks = 9
        with pytest.raises(TaskExists):
            await parts.make("t")
    refused = [e for e in events(log) if e["event"] == "refused"]
    assert [e["reason"] for e in refused] == ["task_not_found", "ArgumentsInvalid", "open_tasks", "task_exists"]
    assert max(len(e["subject"]) for e in refused) == 128


def test_a_line_is_one_line_whatever_a_client_sends(log: pytest.LogCaptureFixture) -> None:
    audit.refusal("task_not_found", anonymous(None), "a\nb\u2028c\ud800")
    (record,) = log.records
    assert record.getMessage().isascii()
    assert "\n" not in record.getMessage()
    assert json.loads(record.getMessage())["caller"] == "anyone"
