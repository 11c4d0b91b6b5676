"""Does what was decided: one step, guarded by the resourceVersion it was decided on.

Every step may be cut off by a crash after any of its requests, and is then decided anew from the objects: names are
derived, so a create that is repeated meets itself, and a result that exists is never made again.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mcptasks_crds.api import Api
from mcptasks_crds.ending import ended, with_condition
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, InvalidValue, NotFound
from mcptasks_crds.kinds import EVENT, JOB, POD, RESULT, SECRET, TASK, TOOL
from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import LABEL_TASK_UID, job_name, result_name
from mcptasks_crds.reasons import Reason
from mcptasks_crds.record import TaskRecord, record
from mcptasks_crds.result import new_result, result_ref
from mcptasks_crds.sizes import RESULT_LIMIT, stored_size
from mcptasks_crds.task import ResultRef, TaskError
from mcptasks_crds.times import render
from mcptasks_crds.tool import JobTemplate
from mcptasks_operator.actions import (
    Action,
    Collect,
    DeleteJob,
    End,
    Fail,
    FindPods,
    JobMissing,
    Note,
    Queue,
    ReadEvents,
    Reschedule,
    Retry,
    Start,
    ToolMissing,
    Wait,
    Work,
)
from mcptasks_operator.decide import QUOTA
from mcptasks_operator.job import arguments_secret, build_job, needs_secret
from mcptasks_operator.logs import tail
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.observe import JobState, read_job, read_pod, read_tool
from mcptasks_operator.outcome import Log, Outcome, outcome, wants_log
from mcptasks_operator.pace import Pace
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store
from mcptasks_operator.surroundings import Surroundings

logger = logging.getLogger(__name__)

INTERNAL_ERROR = -32603
"""JSON-RPC code of a failed task."""
LOG_PATIENCE = 300.0
"""Seconds after its end for which an unreadable log (its kubelet does not answer) is tried again."""
FORBIDDEN_TRIES = 5
"""Tries of a Job that is answered 403: an API server that has just started has not loaded its roles."""

Patch = dict[str, Any]


class Executor:
    """The only writer of tasks in the operator. ``clock`` is epoch seconds."""

    def __init__(
        self,
        api: Api,
        store: Store,
        metrics: Metrics,
        pace: Pace[Key],
        clock: Callable[[], float],
        surroundings: Surroundings,
    ) -> None:
        self._api, self._store, self._metrics, self._pace = api, store, metrics, pace
        self._clock, self._surroundings = clock, surroundings

    async def execute(self, task: TaskRecord, action: Action, failures: int = 0) -> float | None:
        """Do it. The seconds after which to look at the task again; None = when there is news.

        ``failures`` is how often this task has failed in a row.

        Raises:
            ApiFailure: to be tried again later.
        """
        self._metrics.actions.labels(action=type(action).__name__).inc()
        try:
            return await self._do(task, action, failures)
        except (Conflict, NotFound):
            # It has changed, or is gone: decide again from what it is now.
            self._metrics.conflicts.inc()
            return 0.0 if await self._refreshed(task) else None

    async def _do(self, task: TaskRecord, action: Action, failures: int) -> float | None:
        match action:
            case Wait(until):
                return None if until is None else max(until - self._clock(), 0.05)
            case Queue(reason, message):
                await self._queue(task, reason, message)
            case Start(attempt):
                return await self._start(task, attempt, failures)
            case ToolMissing():
                await self._tool_missing(task)
            case Note(job, reason, message):
                await self._note(task, job, reason, message)
            case Work(job, since):
                await self._work(task, job, since)
            case Collect():
                await self._collect(task, action)
            case Fail(reason, message):
                await self._fail(task, reason, message)
            case Retry(attempt, reason, message):
                await self._retry(task, attempt, reason, message)
            case End(state, reason, message):
                await self._end(task, state, reason, message)
            case JobMissing(name):
                await self._job_missing(task, name)
            case FindPods(job):
                await self._find_pods(job)
            case ReadEvents(job):
                await self._read_events(job)
            case DeleteJob(job):
                await self._delete_job(job)
            case Reschedule(expires):
                await self._patch(task, {"expiresAt": None if expires is None else render(expires)})
        return None

    # Before it runs

    async def _queue(self, task: TaskRecord, reason: Reason, message: str) -> None:
        now = self._clock()
        conditions = with_condition(task.conditions, "Queued", "True", reason, message, now)
        await self._patch(task, {"reason": reason, "message": message, "conditions": conditions} | _updated(now))
        _say(task, "queued", message)

    async def _start(self, task: TaskRecord, attempt: int, failures: int) -> float | None:
        if (delay := self._pace.turn(task.key)) > 0:
            return delay
        # The arguments are not kept in memory; and this is the last look before something runs.
        fresh = await self._api.get(TASK, task.namespace, task.name)
        now_known = record(fresh)
        if now_known.resource_version != task.resource_version:
            self._store.put_task(now_known)
            return 0.0
        tool = self._store.tool((task.namespace, task.tool))
        if tool is None:
            return 0.0
        arguments = fresh["spec"]["request"].get("arguments", "{}")
        try:
            body = build_job(task, arguments, tool.spec, attempt, self._surroundings)
        except InvalidValue as error:
            await self._fail(task, Reason.TOOL_INVALID, f"tool {task.tool}: {error}")
            return None
        try:
            if needs_secret(arguments):
                await self._make_secret(task, arguments)
            created = await self._api.create(JOB, task.namespace, body)
        except AlreadyExists:
            created = await self._api.get(JOB, task.namespace, job_name(task.uid, attempt))
            if (created["metadata"].get("labels") or {}).get(LABEL_TASK_UID) != task.uid:
                message = f"a Job {job_name(task.uid, attempt)} that is none of ours is in the way"
                await self._fail(task, Reason.TOOL_INVALID, message)
                return None
        except NotFound as error:
            raise _again(error) from error  # the namespace is going away, and the task with it
        except ApiFailure as error:
            return await self._refused(task, error, failures)
        else:
            self._metrics.started.labels(tool=task.tool).inc()
            _say(task, "created", f"Job {job_name(task.uid, attempt)}")
        self._store.put_job(read_job(created))
        return None

    async def _make_secret(self, task: TaskRecord, arguments: str) -> None:
        try:
            await self._api.create(SECRET, task.namespace, arguments_secret(task, arguments))
        except AlreadyExists:
            pass  # named after the task's uid: it is this one's

    async def _refused(self, task: TaskRecord, error: ApiFailure, failures: int) -> float | None:
        if QUOTA in str(error):
            if not any(c["type"] == "Queued" and c["status"] == "True" for c in task.conditions):
                await self._queue(task, Reason.QUOTA_EXCEEDED, str(error))
            raise _again(error) from error
        if error.retryable or (error.code in (401, 403) and failures < FORBIDDEN_TRIES):
            raise _again(error) from error
        await self._fail(task, Reason.TOOL_INVALID, f"the Job of tool {task.tool} was refused: {error}")
        return None

    async def _tool_missing(self, task: TaskRecord) -> None:
        # The tool's watch may be behind that of the tasks.
        try:
            tool = await self._api.get(TOOL, task.namespace, task.tool)
        except NotFound:
            await self._fail(task, Reason.TOOL_NOT_FOUND, f"there is no MCPTool {task.tool} in {task.namespace}")
        else:
            self._store.put_tool(read_tool(tool))

    async def _note(self, task: TaskRecord, job: JobState, reason: Reason, message: str) -> None:
        now = self._clock()
        await self._patch(task, _attempt(task, job, now) | {"reason": reason, "message": message[:1024]})
        _say(task, "held up", f"{reason}: {message}")

    # While it runs

    async def _work(self, task: TaskRecord, job: JobState, since: float) -> None:
        now = self._clock()
        status = _attempt(task, job, now) | {"reason": Reason.RUNNING, "message": None}
        if task.state is State.SUBMITTED:
            status["state"] = str(State.WORKING)
        if task.started is None:
            # The pod's clock has whole seconds, and no work began before it was asked for.
            status["startedAt"] = render(max(since, task.created))
            self._metrics.start_seconds.labels(tool=task.tool).observe(max(since - task.created, 0))
        await self._patch(task, status)
        _say(task, "started", f"attempt {job.attempt}" if job.attempt > 1 else "")

    async def _retry(self, task: TaskRecord, attempt: int, reason: Reason, message: str) -> None:
        if await self._completed_by_stored(task):
            return
        now = self._clock()
        words = f"attempt {attempt}, since the last ended as {reason}: {message}"
        conditions = with_condition(task.conditions, "Started", "False", Reason.RETRYING, words, now)
        status = {"attempt": attempt, "job": None, "reason": Reason.RETRYING, "message": words}
        await self._patch(task, status | {"conditions": conditions} | _updated(now))
        _say(task, "retried", words)

    # Its end

    async def _collect(self, task: TaskRecord, action: Collect) -> None:
        ended_as, pod = action.exit, action.pod
        log: Log | None = None
        if wants_log(ended_as.code, ended_as.message, log_as_message=pod.log_as_message):
            log = await self._log(task, action)
        got = outcome(ended_as.code, ended_as.message, log, log_as_message=pod.log_as_message)
        if (size := stored_size(got.text)) > RESULT_LIMIT:
            message = f"the result takes {size} bytes as it is stored, and at most {RESULT_LIMIT} are kept"
            await self._fail(task, Reason.RESULT_TOO_LARGE, message)
            return
        body = new_result(task.name, task.uid, got.text, is_error=got.is_error)
        try:
            created = await self._api.create(RESULT, task.namespace, body)
        except AlreadyExists:
            # The worker's, or ours from before a crash: what is stored stands.
            if not await self._completed_by_stored(task):
                raise Conflict(409, "Conflict", "the result went away while it was read") from None
            return
        ref = result_ref(created)
        try:
            await self._complete(task, ref, got)
        except Conflict:
            await self._drop_loser(task, ref)
            raise

    async def _drop_loser(self, task: TaskRecord, ref: ResultRef) -> None:
        """A cancel has landed before: nobody may take this result for the task's. What a fault leaves goes with it."""
        await self._refreshed(task)
        now_known = self._store.task(task.key)
        if now_known is not None and now_known.terminal and now_known.result is None:
            await self._api.delete(RESULT, task.namespace, ref.name or "", uid=ref.uid)

    async def _log(self, task: TaskRecord, action: Collect) -> Log | None:
        tool = self._store.tool((task.namespace, task.tool))
        limit = tool.spec.job.log_limit if tool else JobTemplate(template={}).log_limit
        try:
            return await tail(self._api, action.pod, limit)
        except ApiFailure as error:
            if self._clock() < action.exit.finished + LOG_PATIENCE:
                raise
            logger.warning("task %s: its log can't be read, and is given up: %s", task.name, error)
            return None

    async def _complete(self, task: TaskRecord, ref: ResultRef, got: Outcome) -> None:
        await self._finish(task, State.COMPLETED, got.reason, got.message, result=ref)

    async def _completed_by_stored(self, task: TaskRecord) -> bool:
        """Complete the task from a result that is there already: its status patch was lost, or is on its way."""
        try:
            stored = await self._api.get(RESULT, task.namespace, result_name(task.uid))
        except NotFound:
            return False
        ref = result_ref(stored)
        await self._complete(task, ref, Outcome("", ref.is_error, "its result was found stored"))
        return True

    async def _fail(self, task: TaskRecord, reason: Reason, message: str) -> None:
        if await self._completed_by_stored(task):
            return
        error = TaskError(code=INTERNAL_ERROR, message=message[:4096], data={"reason": reason})
        await self._finish(task, State.FAILED, reason, message, error=error)

    async def _end(self, task: TaskRecord, state: State, reason: Reason, message: str) -> None:
        await self._finish(task, state, reason, message)

    async def _finish(
        self,
        task: TaskRecord,
        state: State,
        reason: Reason,
        message: str,
        *,
        result: ResultRef | None = None,
        error: TaskError | None = None,
    ) -> None:
        now = self._clock()
        self._pace.leave(task.key)
        status = ended(task, state, now=now, reason=reason, message=message, result=result, error=error)
        await self._patch(task, status)
        self._metrics.ended.labels(tool=task.tool, state=state, reason=reason).inc()
        took = now - (task.started or task.created)
        _say(task, state, f"{reason} after {took:.1f} s{': ' if message else ''}{message}")

    async def _job_missing(self, task: TaskRecord, name: str) -> None:
        try:
            job = await self._api.get(JOB, task.namespace, name)
        except NotFound:
            await self._fail(task, Reason.INTERRUPTED, f"its Job {name} was deleted while it ran")
        else:
            self._store.put_job(read_job(job))

    async def _find_pods(self, job: JobState) -> None:
        labels = f"{LABEL_TASK_UID}={job.task_uid}"
        pods = [read_pod(pod) for pod in (await self._api.list(POD, job.namespace, labels=labels))["items"]]
        for pod in pods:
            self._store.put_pod(pod)
        if not any(pod.job_uid == job.uid for pod in pods):
            self._store.found(replace(job, podless=True))

    async def _read_events(self, job: JobState) -> None:
        events = await self._api.list(EVENT, job.namespace, fields=f"involvedObject.uid={job.uid}")
        why = [e for e in events["items"] if e.get("reason") == "FailedCreate"]
        why.sort(key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or "")
        self._store.found(replace(job, asked=self._clock(), refusal=why[-1].get("message", "") if why else ""))

    async def _delete_job(self, job: JobState) -> None:
        try:
            await self._api.delete(JOB, job.namespace, job.name, uid=job.uid)
        except NotFound:
            self._store.drop_job(job.task_uid, job.name, job.uid)
        else:
            self._store.deleting(job)

    # The object itself

    async def _patch(self, task: TaskRecord, status: Patch) -> None:
        answer = await self._api.patch(
            TASK,
            task.namespace,
            task.name,
            {"status": status},
            subresource="status",
            resource_version=task.resource_version,
        )
        self._store.put_task(record(answer))

    async def _refreshed(self, task: TaskRecord) -> bool:
        try:
            fresh = record(await self._api.get(TASK, task.namespace, task.name))
        except NotFound:
            self._store.drop_task(task.key, task.uid)
            return False
        if fresh.uid != task.uid:
            self._store.drop_task(task.key, task.uid)
        self._store.put_task(fresh)
        return True


def _attempt(task: TaskRecord, job: JobState, now: float) -> Patch:
    conditions = with_condition(task.conditions, "Started", "True", Reason.JOB_CREATED, "", now)
    if any(c["type"] == "Queued" and c["status"] == "True" for c in conditions):
        conditions = with_condition(conditions, "Queued", "False", Reason.JOB_CREATED, "", now)
    reference = {"name": job.name, "uid": job.uid}
    return {"job": reference, "attempt": job.attempt, "conditions": conditions} | _updated(now)


def _updated(now: float) -> Patch:
    return {"lastUpdatedAt": render(now)}


def _again(error: ApiFailure) -> ApiFailure:
    """The same as a plain failure, which neither conflicts nor finds the task gone."""
    return ApiFailure(error.code, error.reason, str(error), error.causes)


def _say(task: TaskRecord, what: str, more: str = "") -> None:
    line = " ".join(more.split())
    logger.info("%s %s %s%s", task.tool, task.name[:10], what, f" · {line[:200]}" if line else "")
