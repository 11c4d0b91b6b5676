"""The audit log: one JSON line for each creation, cancel, deletion, read of a result, and refusal (R-9.4).

Never arguments, results or tokens; owners only as hashes.
"""

import json
import logging

from mcptasks_crds.names import owner_hash
from mcptasks_crds.record import TaskRecord
from mcptasks_service.callers import Caller

logger = logging.getLogger("mcptasks.audit")


def task_event(event: str, caller: Caller, task: TaskRecord) -> None:
    """``event`` (created, cancelled, deleted, result_read) happened to a task."""
    _write(event=event, caller=owner_hash(caller.key), task=task.name, taskId=task.task_id, tool=task.tool)


def refusal(reason: str, caller: Caller, subject: str) -> None:
    """Something was refused: a limit, an unknown or foreign id, a used id."""
    _write(event="refused", reason=reason, caller=owner_hash(caller.key), subject=subject[:128])


def _write(**fields: str) -> None:
    logger.info("%s", json.dumps(fields))
