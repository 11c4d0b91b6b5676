"""Task records for tests of the dialects' words."""

from typing import Any

from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.task import ResultRef

CREATED = 1_785_000_000.0


def task(state: State = State.WORKING, **fields: Any) -> TaskRecord:
    """A task made at CREATED."""
    return TaskRecord(
        **{
            "namespace": "default",
            "name": "t-1",
            "uid": "u",
            "resource_version": "1",
            "task_id": "abc",
            "owner_key": "",
            "tool": "build",
            "created": CREATED,
            "stored": CREATED,
            "state": state,
            **fields,
        }
    )


def result(*, is_error: bool = False) -> ResultRef:
    return ResultRef(name="r", size=2, sha256="0", is_error=is_error)
