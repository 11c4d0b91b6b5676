"""A task that has ended, without what nobody will ask for: 100,000 of them wait for their expiry in memory."""

from dataclasses import replace
from functools import lru_cache
from sys import intern

from mcptasks_crds.record import TaskRecord
from mcptasks_crds.task import Retention


def slim(task: TaskRecord) -> TaskRecord:
    """What is needed to expire ``task``, or to remove its Job; a task that has not ended stays as it is.

    Two thirds of a record are conditions and the reference of the result, which only a patch that ends it needs.
    """
    if not task.terminal:
        return task
    return replace(
        task,
        namespace=intern(task.namespace),
        tool=intern(task.tool),
        owner_key=intern(task.owner_key),
        task_id="",
        retention=None if task.retention is None else _shared(task.retention.after, task.retention.milliseconds),
        call=None,
        parent=None,
        cancel_reason=None,
        reason=None,
        message=None,
        job_name=None,
        job_uid=None,
        progress=None,
        inputs=None,
        result=None,
        error=None,
        conditions=(),
    )


@lru_cache(maxsize=1024)
def _shared(after: str, milliseconds: int) -> Retention:
    """Most tasks of a tool are kept for the same time."""
    return Retention.model_validate({"after": after, "milliseconds": milliseconds})
