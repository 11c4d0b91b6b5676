"""What a worker reports, made durable on its behalf."""

import hashlib
import json
import logging
from collections.abc import Callable
from typing import Any, NoReturn

from mcptasks_crds.api import Api, Object
from mcptasks_crds.ending import ended
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, NotFound, Refused
from mcptasks_crds.kinds import RESULT
from mcptasks_crds.lifecycle import State
from mcptasks_crds.reasons import Reason
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.result import new_result, result_ref
from mcptasks_crds.sizes import RESULT_LIMIT, stored_size
from mcptasks_crds.task import ResultRef, TaskError
from mcptasks_service.errors import TaskEnded, TaskNotFound, Unavailable
from mcptasks_service.metrics import Metrics
from mcptasks_service.progress import ProgressWriter, in_words
from mcptasks_service.results import Results
from mcptasks_service.store import Store, unavailable
from mcptasks_service.tasks import WRITE_TRIES
from mcptasks_service.worker_identity import WorkerRefused

logger = logging.getLogger(__name__)
INTERNAL_ERROR = -32603


class Reports:
    """Results and progress of workers."""

    def __init__(
        self,
        api: Api,
        store: Store,
        results: Results,
        progress: ProgressWriter,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._api, self._store, self._results = api, store, results
        self._progress, self._metrics, self._clock = progress, metrics, clock

    def progress(self, task: TaskRecord, progress: float, total: float | None, message: str | None) -> None:
        """Take a progress report of a task that still runs.

        Raises:
            TaskEnded
        """
        if task.terminal:
            raise TaskEnded(task.task_id, task.state)
        self._metrics.progress_reported.labels(tool=task.tool).inc()
        self._progress.report(task, in_words(progress, total, message))

    async def result(self, task: TaskRecord, body: bytes) -> TaskRecord:
        """Store a tool's result, exactly as it came, and complete the task. The same result again is fine.

        The MCPTaskResult comes first, so that no reader sees ``completed`` without one; the status patch that names
        it is the commit. If a cancel lands in between, the result is the loser and is deleted.

        Raises:
            WorkerRefused: not a tool result, too large, or another one was reported before.
                Also if another attempt has taken over since.
            TaskEnded: the task was cancelled, or failed, before.
            TaskNotFound: it was deleted.
            Unavailable: nothing is decided; report again.
        """
        text, is_error, summary = _checked(body)
        sha256 = hashlib.sha256(body).hexdigest()
        if task.terminal:
            if _has(task, sha256):
                return task
            raise TaskEnded(task.task_id, task.state)
        if (size := stored_size(text)) > RESULT_LIMIT:
            await self.too_large(task, f"{size} bytes as it is stored")
        ref = result_ref(await self._stored(task, text, is_error, sha256))
        reason = Reason.TOOL_ERROR if is_error else Reason.SUCCEEDED
        try:
            done = await self._finish(task, State.COMPLETED, reason, summary, result=ref)
        except (TaskEnded, WorkerRefused):
            await self._drop(task, ref)
            raise
        self._results.keep(sha256, body)
        self._metrics.results_reported.labels(tool=task.tool, outcome="completed").inc()
        return done

    async def too_large(self, task: TaskRecord, size: str) -> NoReturn:
        """Fail a task whose result is more than can be kept: ``size`` in words, with its unit.

        Raises:
            WorkerRefused: always, once the task has failed.
            TaskEnded: it has ended otherwise.
            TaskNotFound, Unavailable
        """
        message = f"the result takes {size}, and at most {RESULT_LIMIT} bytes are kept"
        await self._finish(task, State.FAILED, Reason.RESULT_TOO_LARGE, message, error=message)
        self._metrics.results_reported.labels(tool=task.tool, outcome="too_large").inc()
        raise WorkerRefused(413, "too_large", f"ResultTooLarge: {message}; the task has failed")

    async def _stored(self, task: TaskRecord, text: str, is_error: bool, sha256: str) -> Object:
        body = new_result(task.name, task.uid, text, is_error=is_error)
        try:
            return await self._api.create(RESULT, task.namespace, body)
        except AlreadyExists:
            there = await self._existing(task, body["metadata"]["name"])
        except ApiFailure as error:
            raise unavailable(error) from error
        if there["spec"]["sha256"] != sha256:
            raise WorkerRefused(409, "another_result", f"Task {task.name} already has another result")
        return there

    async def _existing(self, task: TaskRecord, name: str) -> Object:
        try:
            return await self._api.get(RESULT, task.namespace, name)
        except NotFound:
            raise TaskNotFound(task.task_id) from None
        except ApiFailure as error:
            raise unavailable(error) from error

    async def _finish(
        self,
        task: TaskRecord,
        state: State,
        reason: Reason,
        message: str,
        *,
        result: ResultRef | None = None,
        error: str | None = None,
    ) -> TaskRecord:
        self._progress.forget(task)
        fault = TaskError(code=INTERNAL_ERROR, message=error, data={"reason": reason}) if error else None
        for _ in range(WRITE_TRIES):
            if task.terminal:
                if result is not None and _has(task, result.sha256):
                    return task
                raise TaskEnded(task.task_id, task.state)
            status = ended(task, state, now=self._clock(), reason=reason, message=message, result=result, error=fault)
            try:
                return await self._store.patch_status(task, status)
            except NotFound:
                raise TaskNotFound(task.task_id) from None
            except (Conflict, Refused):
                if (fresh := await self._store.refresh(task)) is None:
                    raise TaskNotFound(task.task_id) from None
                if fresh.attempt > max(task.attempt, 1):
                    message = f"Attempt {fresh.attempt} of task {task.name} has taken over"
                    raise WorkerRefused(409, "superseded", message) from None
                task = fresh
        raise Unavailable(f"Task {task.name} changes faster than its result can be recorded; report again")

    async def _drop(self, task: TaskRecord, ref: ResultRef) -> None:
        """The result lost against a cancel. What is left behind by a fault here goes with the task."""
        try:
            await self._api.delete(RESULT, task.namespace, ref.name or "", uid=ref.uid)
        except ApiFailure as error:
            logger.info("result %s of an ended task is left to be collected with it: %s", ref.name, error)


def _has(task: TaskRecord, sha256: str) -> bool:
    return task.result is not None and task.result.sha256 == sha256


def _checked(body: bytes) -> tuple[str, bool, str]:
    """A tool result as text, whether it says isError, and its first line.

    Raises:
        WorkerRefused: with what is wrong.
    """

    def constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        text = body.decode()
        value: Any = json.loads(text, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise WorkerRefused(422, "not_json", f"The result is not JSON in UTF-8: {error}") from None
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not all(isinstance(block, dict) and "type" in block for block in content):
        raise WorkerRefused(
            422, "not_a_result", 'The result must be an MCP tool result: {"content": [{"type": "text", "text": "…"}]}'
        )
    if (kind := value.get("resultType", "complete")) != "complete":
        # A question, say: taken for a result it would end the task with it.
        raise WorkerRefused(422, "not_a_result", f"Only a complete result ends a task, not one of resultType {kind!r}")
    is_error = value.get("isError", False)
    if not isinstance(is_error, bool):
        raise WorkerRefused(422, "not_a_result", f"isError must be true or false, not {is_error!r}")
    return text, is_error, _summary(content)


def _summary(content: list[dict[str, Any]]) -> str:
    """The first line of the first text of a result, for ``kubectl get`` and status messages."""
    words = next((block["text"] for block in content if isinstance(block.get("text"), str)), "")
    # A JSON text may hold half a surrogate pair, which no status message can.
    line: str = words.strip().partition("\n")[0].encode(errors="replace").decode()
    return line if len(line) <= 200 else f"{line[:200]}…"
