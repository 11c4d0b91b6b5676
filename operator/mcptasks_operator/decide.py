"""What to do about one task, from what is known of it: a function from values to one action.

Watches of different kinds have no common order, so every branch must be right whichever news came first: a finished
Job before the result's status, a cancelled task before its Job was seen, a pod that is gone before its Job says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import job_name
from mcptasks_crds.reasons import Reason
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.retention import expires_at
from mcptasks_crds.times import render, seconds
from mcptasks_crds.tool import Timeouts, ToolSpec
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
from mcptasks_operator.observe import JobState, PodState
from mcptasks_operator.pods import DISRUPTIONS, Exited, Lost, Running, Starting, Stopping, verdict

RESTORED_AFTER = 600.0
"""Seconds between ``createdAt`` and creationTimestamp beyond which an object was restored from a backup."""
QUEUED_AFTER = 1.0
"""Seconds of waiting before condition Queued is written: most waits are over by then, and cost no write."""
NOTED_AFTER = 5.0
"""Seconds of a pod's trouble before it is told: most is over by then (a node comes, a registry answers)."""
LINGER = 5.0
"""Seconds that a worker has between reporting its result and ending by itself."""
QUOTA = "exceeded quota"
"""What the API server says when a namespace is full; it is no fault of the tool, and passes."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether a task may have a Job now, and if not, why."""

    granted: bool = True
    message: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is known about one task."""

    task: TaskRecord
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    """Its Jobs, by name."""
    pods: tuple[PodState, ...] = ()
    tool: ToolSpec | None = None
    turn: Turn = Turn()
    gone: frozenset[str] = frozenset()
    """Names of its Jobs that were seen deleted."""


def decide(known: Situation, now: float) -> Action:
    """The next step for a task at ``now`` (epoch seconds)."""
    task = known.task
    if task.deleting:
        return Wait()
    name = job_name(task.uid, max(task.attempt, 1))
    for other in known.jobs.values():
        if other.name != name and not other.deleting:
            return DeleteJob(other)  # of an attempt that another has taken over from
    job = known.jobs.get(name)
    pod = _pod(known.pods, job.uid if job else task.job_uid)
    if task.terminal:
        return _after_end(task, job, pod, now)
    if task.stored - task.created > RESTORED_AFTER:
        return End(
            State.UNKNOWN,
            Reason.RESTORED,
            f"created {render(task.created)} and restored from a backup {render(task.stored)}: "
            "what became of its work can't be told",
        )
    if task.cancel_reason is not None:
        message = f"cancelled: {task.cancel_reason}" if task.cancel_reason else "cancelled"
        return End(State.CANCELLED, Reason.CANCELLED, message)
    if job is None:
        return _without_job(known, name, now)
    timeouts = known.tool.timeouts if known.tool else Timeouts()
    if pod is None:
        return _without_pod(task, job, timeouts, now)
    return _by_pod(task, job, pod, known.tool, timeouts, now)


def _pod(pods: tuple[PodState, ...], job_uid: str | None) -> PodState | None:
    """The pod of a Job; should there be several, the one that got furthest."""
    ours = [pod for pod in pods if pod.job_uid == job_uid]
    return max(ours, key=lambda pod: (pod.exit is not None, pod.running is not None, pod.created), default=None)


def _after_end(task: TaskRecord, job: JobState | None, pod: PodState | None, now: float) -> Action:
    if job is not None and not job.deleting:
        linger = (task.finished or 0) + LINGER
        if task.state is State.COMPLETED and now < linger and pod is not None and _runs(pod, job, now):
            return Wait(linger)
        return DeleteJob(job)
    if task.finished is not None:
        # To the millisecond, as it is stored.
        expires = expires_at(task.retention, task.created, task.finished)
        if (expires is None) != (task.expires is None) or abs((expires or 0) - (task.expires or 0)) > 0.002:
            return Reschedule(expires)
    return Wait()


def _runs(pod: PodState, job: JobState, now: float) -> bool:
    return isinstance(verdict(pod, job, now), Running)


def _without_job(known: Situation, name: str, now: float) -> Action:
    task = known.task
    if task.job_uid is not None or name in known.gone:
        return JobMissing(name)
    if known.tool is None:
        return ToolMissing()
    if known.turn.granted:
        return Start(max(task.attempt, 1))
    if _queued_for(task, Reason.CONCURRENCY_LIMIT):
        return Wait()
    if now < task.created + QUEUED_AFTER:
        return Wait(task.created + QUEUED_AFTER)
    return Queue(Reason.CONCURRENCY_LIMIT, known.turn.message)


def _queued_for(task: TaskRecord, reason: Reason) -> bool:
    return any(c["type"] == "Queued" and c["status"] == "True" and c["reason"] == reason for c in task.conditions)


def _without_pod(task: TaskRecord, job: JobState, timeouts: Timeouts, now: float) -> Action:
    if job.failure == "DeadlineExceeded":
        return Fail(Reason.DEADLINE_EXCEEDED, "it ran longer than its Job may")
    if job.ended or job.failure:
        if not job.podless:
            return FindPods(job)  # the pod's last event may be on its way
        return Fail(Reason.INTERRUPTED, "its pod is gone, and with it what it printed")
    if job.suspended or job.deleting:
        return Wait()  # a queue such as Kueue holds it; or its end is on its way
    start = seconds(timeouts.start)
    # A busy controller manager may take minutes to make the pod. That is no time-out unless an event says why.
    due = start + (job.created if job.asked is None else job.asked)
    quota = QUOTA in job.refusal
    if job.refusal and not quota:
        return Fail(Reason.POD_NOT_CREATED, job.refusal)
    if quota and not _queued_for(task, Reason.QUOTA_EXCEEDED):
        return Queue(Reason.QUOTA_EXCEEDED, job.refusal)
    return Wait(due) if now < due else ReadEvents(job)


def _by_pod(
    task: TaskRecord, job: JobState, pod: PodState, tool: ToolSpec | None, timeouts: Timeouts, now: float
) -> Action:
    match verdict(pod, job, now):
        case Running(since):
            if task.job_uid != job.uid or task.started is None:
                return Work(job, since)
            # startedAt has whole seconds: one more, so that nothing is ended early.
            due = since + seconds(timeouts.run) + 1
            return Wait(due) if now < due else Fail(Reason.DEADLINE_EXCEEDED, f"it ran longer than {timeouts.run}")
        case Exited(ended):
            return Collect(job, pod, ended)
        case Stopping(until):
            return Wait(until)
        case Lost(reason, message):
            retries = tool.retries if tool else None
            attempt = max(task.attempt, 1)
            if reason in DISRUPTIONS and retries and "Disrupted" in retries.on and attempt <= retries.limit:
                return Retry(attempt + 1, reason, message)
            return Fail(reason, message)
        case Starting(reason, message, hopeless):
            due = pod.created + seconds(timeouts.start)
            if hopeless:
                return Fail(reason, message)
            if now >= due:
                return Fail(reason, f"nothing ran within {timeouts.start}: {message}")
            if reason is Reason.START_TIMEOUT or task.reason == reason:
                return Wait(due)
            tell = pod.created + NOTED_AFTER
            return Note(job, reason, message) if now >= tell else Wait(min(tell, due))
