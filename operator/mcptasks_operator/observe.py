"""Jobs, pods and tools as the operator keeps them: what is decided on, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcptasks_crds.names import LABEL_ATTEMPT, LABEL_TASK_UID
from mcptasks_crds.times import parse
from mcptasks_crds.tool import ToolSpec, tool_container

Object = Mapping[str, Any]


def later(new: str, old: str) -> bool:
    """Whether resourceVersion ``new`` is later than ``old``; what does not parse as a number is believed."""
    try:
        return int(new) > int(old)
    except ValueError:
        return True


@dataclass(frozen=True, slots=True)
class JobState:
    """One Job of a task. Times are epoch seconds."""

    namespace: str
    name: str
    uid: str
    version: str
    task_uid: str
    attempt: int
    created: float
    begun: float | None = None
    """When the Job controller took it up; not set while it is suspended."""
    deadline: float | None = None
    """activeDeadlineSeconds."""
    suspended: bool = False
    ended: bool = False
    failure: str | None = None
    """Reason of FailureTarget or Failed."""
    deleting: bool = False

    asked: float | None = None
    """When its events were last read, which is done if it has no pod."""
    refusal: str = ""
    """What the last of them says about why it has no pod."""
    podless: bool = False
    """A list of its pods, asked for because none was known, was empty."""

    def with_findings_of(self, old: "JobState | None") -> "JobState":
        """The same with what was found out about ``old``, which no watch event tells."""
        if old is None or old.uid != self.uid:
            return self
        return replace(self, asked=old.asked, refusal=old.refusal, podless=old.podless)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended."""

    code: int
    reason: str
    message: str
    """The termination message."""
    finished: float


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod of a task's Job. Times are epoch seconds."""

    namespace: str
    name: str
    uid: str
    version: str
    task_uid: str
    job_uid: str
    created: float
    container: str = "tool"
    """The container that runs the call."""
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    told_at: float | None = None
    """When it was told to stop: its deletionTimestamp less the grace period."""
    gone_by: float | None = None
    """Its deletionTimestamp: when it should be gone."""
    disruption: str | None = None
    """Reason of DisruptionTarget."""
    disrupted_at: float | None = None
    waiting: tuple[str, str] | None = None
    """Reason and message of the container that does not start."""
    running: float | None = None
    """Since when the container runs."""
    exit: Exit | None = None
    unschedulable: str | None = None
    init_failure: str | None = None
    """What is said of an init container that failed."""
    log_as_message: bool = False
    """Whether a failed program's termination message may be the end of its log (FallbackToLogsOnError)."""
    ended_first: bool = False
    """Whether the container was seen ended before the pod was seen told to stop."""

    def after(self, old: "PodState | None") -> "PodState":
        """The same, knowing what was seen before."""
        same = old is not None and old.uid == self.uid
        first = self.exit is not None and self.gone_by is None and self.disruption is None
        return replace(self, ended_first=first or (same and old is not None and old.ended_first))


@dataclass(frozen=True, slots=True)
class ToolState:
    """One MCPTool."""

    namespace: str
    name: str
    uid: str
    version: str
    generation: int
    spec: ToolSpec
    looked_at: int | None = None
    """The generation that its Ready condition is about."""
    ready: Mapping[str, Any] | None = None
    """The Ready condition."""
    active: int | None = None
    queued: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def read_job(job: Object) -> JobState:
    """Read a Job that this operator made.

    Raises:
        KeyError, ValueError: it is none of ours.
    """
    meta, spec, status = job["metadata"], job["spec"], job.get("status") or {}
    true = {c["type"]: c for c in status.get("conditions") or () if c["status"] == "True"}
    failed = true.get("Failed") or true.get("FailureTarget")
    return JobState(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        task_uid=meta["labels"][LABEL_TASK_UID],
        attempt=int(meta["labels"][LABEL_ATTEMPT]),
        created=parse(meta["creationTimestamp"]),
        begun=_time(status.get("startTime")),
        deadline=spec.get("activeDeadlineSeconds"),
        suspended=bool(spec.get("suspend")),
        ended="Complete" in true or "Failed" in true,
        failure=failed.get("reason") or "Failed" if failed else None,
        deleting="deletionTimestamp" in meta,
    )


def read_pod(pod: Object) -> PodState:
    """Read a pod of such a Job.

    Raises:
        KeyError, ValueError: it is none of ours.
    """
    meta, status = pod["metadata"], pod.get("status") or {}
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), {"uid": ""})
    container = tool_container({"spec": pod.get("spec")}) or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    disruption = conditions.get("DisruptionTarget") or {}
    disrupted = disruption.get("status") == "True"
    scheduled = conditions.get("PodScheduled") or {}
    gone_by = _time(meta.get("deletionTimestamp"))
    state = _state(status, container.get("name"))
    waiting = _init_waiting(status) or state.get("waiting")
    return PodState(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        task_uid=meta["labels"][LABEL_TASK_UID],
        job_uid=owner["uid"],
        created=parse(meta["creationTimestamp"]),
        container=container.get("name") or "tool",
        phase=status.get("phase") or "Pending",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        told_at=None if gone_by is None else gone_by - (meta.get("deletionGracePeriodSeconds") or 0),
        gone_by=gone_by,
        disruption=disruption.get("reason") or "DisruptionTarget" if disrupted else None,
        disrupted_at=_time(disruption.get("lastTransitionTime")) if disrupted else None,
        waiting=(waiting.get("reason") or "", waiting.get("message") or "") if waiting else None,
        running=_time((state.get("running") or {}).get("startedAt")),
        exit=_exit(state.get("terminated"), gone_by),
        unschedulable=scheduled.get("message") or "" if scheduled.get("reason") == "Unschedulable" else None,
        init_failure=_init_failure(status),
        log_as_message=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
    )


def read_tool(tool: Object) -> ToolState:
    """Read an MCPTool.

    Raises:
        KeyError, ValueError: our CRD would not have let it in.
    """
    meta, status = tool["metadata"], tool.get("status") or {}
    ready = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    return ToolState(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        generation=meta.get("generation") or 0,
        spec=ToolSpec.model_validate(tool["spec"]),
        looked_at=(ready or {}).get("observedGeneration"),
        ready=ready,
        active=status.get("active"),
        queued=status.get("queued"),
    )


def _time(text: str | None) -> float | None:
    return None if text is None else parse(text)


def _state(status: Object, name: str | None) -> Mapping[str, Any]:
    for container in status.get("containerStatuses") or ():
        if container["name"] == name:
            state: Mapping[str, Any] = container.get("state") or {}
            return state
    return {}


def _exit(terminated: Mapping[str, Any] | None, gone_by: float | None) -> Exit | None:
    if terminated is None:
        return None
    # A container whose status was lost has no time: it then ended when the pod had to be gone.
    finished = _time(terminated.get("finishedAt"))
    return Exit(
        code=terminated.get("exitCode", 0),
        reason=terminated.get("reason") or "",
        message=terminated.get("message") or "",
        finished=finished if finished is not None else gone_by or 0.0,
    )


def _init_waiting(status: Object) -> Mapping[str, Any] | None:
    """An init container that can't start is why the tool doesn't; ``PodInitializing`` alone says nothing."""
    for container in status.get("initContainerStatuses") or ():
        waiting: Mapping[str, Any] | None = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in (None, "PodInitializing"):
            return waiting
    return None


def _init_failure(status: Object) -> str | None:
    for container in status.get("initContainerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            return f"init container {container['name']} exited with {ended['exitCode']}: {ended.get('message') or ''}"
    return None
