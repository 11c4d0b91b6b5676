"""What a pod says about its attempt.

The order of reading: was it told to stop, the pod's reason, the container's reason, then the exit code. A program that
exits 0 on SIGTERM looks completed, even to the Job, so exit 0, message and log count only if nobody had told it to
stop. A container whose child ran out of memory exits 0 as well, with reason OOMKilled.
"""

from dataclasses import dataclass

from mcptasks_crds.reasons import Reason
from mcptasks_operator.observe import Exit, JobState, PodState

LOST_AFTER = 10.0
"""Seconds after its deletionTimestamp at which a pod that is still there is taken for lost with its node: the pod of a
lost node stays, running, until the node returns."""

DEADLINE_SLACK = 1.5
"""Seconds: the Job controller counts in whole ones, and ends a pod up to one early."""

_IMAGE = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
_IMAGE |= {"RegistryUnavailable", "SignatureValidationFailed"}
_START = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "CrashLoopBackOff"}
_HOPELESS = {"InvalidImageName"}
_POD_REASONS = {
    "DeadlineExceeded": Reason.DEADLINE_EXCEEDED,
    "Evicted": Reason.EVICTED,
    "Preempting": Reason.EVICTED,
    "Terminated": Reason.EVICTED,  # a node that shuts down gracefully
    "NodeShutdown": Reason.EVICTED,
    "Shutdown": Reason.EVICTED,
    "NodeLost": Reason.NODE_LOST,
}
_NODE_GONE = {"DeletionByTaintManager", "DeletionByPodGC"}
DISRUPTIONS = frozenset({Reason.EVICTED, Reason.NODE_LOST})
"""Ends that a tool may have tried again."""


@dataclass(frozen=True, slots=True)
class Starting:
    """The program does not run yet. ``reason`` is what holds it up, START_TIMEOUT if nothing says so."""

    reason: Reason
    message: str
    hopeless: bool = False
    """Time can't mend it."""


@dataclass(frozen=True, slots=True)
class Running:
    """The program runs."""

    since: float


@dataclass(frozen=True, slots=True)
class Stopping:
    """It was told to stop and has yet to do so; ``until`` is when to look again, if nothing comes before."""

    until: float | None


@dataclass(frozen=True, slots=True)
class Exited:
    """The program ended by itself."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Lost:
    """The attempt ended in a way that the work can't be blamed for."""

    reason: Reason
    message: str


Verdict = Starting | Running | Stopping | Exited | Lost


def verdict(pod: PodState, job: JobState, now: float) -> Verdict:
    """What became of an attempt, as far as its pod tells."""
    if _told_to_stop(pod):
        return _stopped(pod, job, now)
    if (reason := _POD_REASONS.get(pod.reason)) is not None:
        return Lost(reason, _sentence(pod.reason, pod.message))
    if pod.exit is not None:
        return _ended(pod, pod.exit)
    if pod.phase in ("Failed", "Succeeded"):
        # Refused by the kubelet, or an init container failed: the tool's container never was.
        return Lost(Reason.START_ERROR, pod.init_failure or _sentence(pod.reason or pod.phase, pod.message))
    if pod.running is not None:
        return Running(pod.running)
    return _starting(pod)


def _told_to_stop(pod: PodState) -> bool:
    told = [at for at in (pod.told_at, pod.disrupted_at) if at is not None]
    if pod.ended_first or not told:
        return False
    # Whole seconds on both sides: a tie is an interruption, unless it was seen ended before.
    return pod.exit is None or pod.exit.finished >= min(told)


def _stopped(pod: PodState, job: JobState, now: float) -> Verdict:
    if pod.disruption is None and _past_deadline(pod, job):
        return Lost(Reason.DEADLINE_EXCEEDED, "it ran longer than its Job may")
    if pod.exit is None and pod.phase not in ("Failed", "Succeeded"):
        if pod.gone_by is not None and now >= pod.gone_by + LOST_AFTER:
            return Lost(Reason.NODE_LOST, f"its pod {pod.name} was told to stop, and its node does not answer")
        return Stopping(None if pod.gone_by is None else pod.gone_by + LOST_AFTER)
    if pod.disruption in _NODE_GONE or (pod.exit is not None and pod.exit.reason == "ContainerStatusUnknown"):
        return Lost(Reason.NODE_LOST, _sentence(pod.disruption or "ContainerStatusUnknown", pod.message))
    if pod.disruption is not None:
        return Lost(Reason.EVICTED, _sentence(pod.disruption, pod.message))
    return Lost(Reason.INTERRUPTED, f"its pod {pod.name} was deleted while it ran")


def _past_deadline(pod: PodState, job: JobState) -> bool:
    if "DeadlineExceeded" in (job.failure, pod.reason):
        return True
    # The pod may be told to stop before we hear that its Job has failed.
    if pod.told_at is None or job.begun is None or job.deadline is None:
        return False
    return pod.told_at >= job.begun + job.deadline - DEADLINE_SLACK


def _ended(pod: PodState, ended: Exit) -> Verdict:
    if ended.reason == "OOMKilled":
        return Lost(Reason.OUT_OF_MEMORY, f"it was killed at its memory limit (exit code {ended.code})")
    if ended.reason in ("StartError", "ContainerCannotRun"):
        return Lost(Reason.START_ERROR, ended.message or "its program could not be started")
    if ended.reason == "ContainerStatusUnknown":
        return Lost(Reason.NODE_LOST, f"the state of its pod {pod.name} was lost with its node")
    return Exited(ended)


def _starting(pod: PodState) -> Starting:
    why, message = pod.waiting or ("", "")
    if why in _IMAGE:
        return Starting(Reason.IMAGE_PULL, _sentence(why, message), hopeless=why in _HOPELESS)
    if why in _START:
        return Starting(Reason.START_ERROR, _sentence(why, message))
    if pod.unschedulable is not None:
        return Starting(Reason.UNSCHEDULABLE, pod.unschedulable)
    return Starting(Reason.START_TIMEOUT, _sentence(why or f"the pod is {pod.phase}", message))


def _sentence(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason
