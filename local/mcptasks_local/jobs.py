"""What a Job wants next, as a value: its status, pods to make, pods to end.

Like Kubernetes' Job controller for `completionMode: NonIndexed` and `restartPolicy: Never`, without success and failure
policies. A pod that is told to stop counts as failed at once (`podReplacementPolicy: TerminatingOrFailed`).

Pods carry no finalizer. What keeps a lost pod from being run again is the status: ``active`` is written only after the
pod, so a Job whose status counts more pods than there are has lost one, and a lost pod is a failed one.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcptasks_crds.times import parse
from mcptasks_local.errors import Object
from mcptasks_local.pod_status import stamp

BACKOFF = (10.0, 360.0)
"""Seconds between the first failure of a Job and its next pod; doubled with each failure up to the second number."""
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


class Note(NamedTuple):
    """An event of the Job."""

    reason: str
    message: str
    warning: bool = False


@dataclass
class Step:
    """What to do now. ``status`` None: leave it; ``again``: seconds until to look once more."""

    status: Object | None = None
    make: int = 0
    end: list[str] = field(default_factory=list)
    delete: bool = False
    again: float | None = None
    notes: list[Note] = field(default_factory=list)


def over(pod: Object) -> bool:
    """Whether a pod has ended."""
    return _phase(pod) in ("Succeeded", "Failed")


def stopping(pod: Object) -> bool:
    """Whether it has been told to stop and still runs."""
    return not over(pod) and "deletionTimestamp" in pod["metadata"]


def finished(job: Object) -> str:
    """``Complete``, ``Failed``, or empty."""
    return next((c["type"] for c in _conditions(job) if c["type"] in ("Complete", "Failed") and _holds(c)), "")


def step(job: Object, pods: Sequence[Object], now: float) -> Step:
    """What to do about a Job whose pods are these; ``now`` in epoch seconds."""
    if "deletionTimestamp" in job["metadata"]:
        return Step()
    if word := finished(job):
        return _expire(job, word, now)
    spec, old = job["spec"], job.get("status") or {}
    completions = spec["completions"] if spec.get("completions") is not None else 1
    parallelism = spec["parallelism"] if spec.get("parallelism") is not None else 1
    limit = spec["backoffLimit"] if spec.get("backoffLimit") is not None else 6
    active = [pod for pod in pods if not over(pod) and not stopping(pod)]
    halting = [pod for pod in pods if stopping(pod)]
    paused = bool(spec.get("suspend")) or _is(job, "Suspended")
    if paused and halting and not spec.get("suspend"):
        return Step()  # resumed, but what the suspension ended still runs
    done = sum(_phase(pod) == "Succeeded" for pod in pods)
    bad = [pod for pod in pods if _phase(pod) == "Failed" or stopping(pod)]
    lost = max(0, old.get("active", 0) + old.get("failed", 0) + min(done, old.get("succeeded", 0)) - len(pods))
    if paused:  # what a suspension ends has not failed
        bad, lost = [pod for pod in bad if "deletionTimestamp" not in pod["metadata"]], 0
    succeeded = max(old.get("succeeded", 0), done)
    failed = max(old.get("failed", 0), len(bad) + lost)

    out, conditions = Step(), list(_conditions(job))
    started = old.get("startTime")
    if spec.get("suspend"):
        out.end = [pod["metadata"]["name"] for pod in active]
        active, started = [], None
        if not _is(job, "Suspended"):
            _set(conditions, "Suspended", "JobSuspended", "Job suspended", now)
            out.notes.append(Note("Suspended", "Job suspended"))
    else:
        if _is(job, "Suspended"):
            _set(conditions, "Suspended", "JobResumed", "Job resumed", now, holds=False)
            out.notes.append(Note("Resumed", "Job resumed"))
        started = started or stamp(now)
        deadline = spec.get("activeDeadlineSeconds")
        left = None if deadline is None else parse(started) + deadline - now
        if (reason := _target(conditions, "FailureTarget")) is None and _target(
            conditions, "SuccessCriteriaMet"
        ) is None:
            reason = _failure(failed > limit, left)
            if reason is not None:
                _set(conditions, "FailureTarget", *reason, now)
            elif succeeded >= completions:
                met = ("CompletionsReached", "Reached expected number of succeeded pods")
                _set(conditions, "SuccessCriteriaMet", *met, now)
        if reason is None:
            out.again = left
        if reason is not None or _target(conditions, "SuccessCriteriaMet") is not None:
            out.end = [pod["metadata"]["name"] for pod in active]
            if not active and not halting:
                _conclude(conditions, reason, now, out)
        elif not halting and (short := min(parallelism, completions - succeeded) - len(active)) > 0:
            wait = _backoff(bad, failed, now)
            if wait > 0:
                out.again = wait if out.again is None else min(wait, out.again)
            else:
                out.make = short
    status: Object = {
        "active": len(active) + out.make,
        "succeeded": succeeded,
        "failed": failed,
        "ready": sum(_is(pod, "Ready") for pod in active),
        "terminating": len(halting),
        "uncountedTerminatedPods": {},
        "startTime": started,
        "conditions": conditions,
    }
    # What is nothing is left out, but for the two that the real thing writes too.
    status = {k: v for k, v in status.items() if v or k in ("ready", "terminating", "uncountedTerminatedPods")}
    if conditions and conditions[-1]["type"] == "Complete":
        status["completionTime"] = stamp(now)
    out.status = status if status != old else None
    return out


def pod_of(job: Object) -> Object:
    """A new pod of a Job."""
    meta, template = job["metadata"], job["spec"]["template"]
    above = template.get("metadata") or {}
    suffix = "".join(secrets.choice(_SUFFIX) for _ in range(5))
    return {
        "metadata": {
            "name": f"{meta['name'][:57]}-{suffix}",
            "namespace": meta["namespace"],
            "labels": {**(above.get("labels") or {}), **pod_labels(job)},
            "annotations": dict(above.get("annotations") or {}),
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"serviceAccountName": "default", **template["spec"]},
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


def pod_labels(job: Object) -> dict[str, str]:
    """The labels by which a Job's pods are found."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    new = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
    return {**new, "controller-uid": uid, "job-name": name}


def controller_of(pod: Object) -> Object | None:
    """The reference to the Job that controls a pod."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller") and owner["kind"] == "Job"), None)


def _failure(too_many: bool, left: float | None) -> tuple[str, str] | None:
    if too_many:
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _conclude(conditions: list[Object], reason: tuple[str, str] | None, now: float, out: Step) -> None:
    if reason is None:
        _set(conditions, "Complete", "CompletionsReached", "Reached expected number of succeeded pods", now)
        out.notes.append(Note("Completed", "Job completed"))
    else:
        _set(conditions, "Failed", *reason, now)
        out.notes.append(Note(*reason, warning=True))


def _expire(job: Object, word: str, now: float) -> Step:
    if (ttl := job["spec"].get("ttlSecondsAfterFinished")) is None:
        return Step()
    ended = next(c["lastTransitionTime"] for c in _conditions(job) if c["type"] == word)
    left = parse(ended) + ttl - now
    return Step(again=left) if left > 0 else Step(delete=True)


def _backoff(bad: Sequence[Object], failed: int, now: float) -> float:
    """Seconds until the next pod may be made."""
    if not failed:
        return 0.0
    least, most = BACKOFF
    ends = [
        parse(state["terminated"]["finishedAt"])
        for pod in bad
        for container in (pod.get("status") or {}).get("containerStatuses") or ()
        if "terminated" in (state := container["state"])
    ]
    pause: float = min(most, least * 2 ** min(failed - 1, 10))
    return max(ends, default=0.0) + pause - now


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _conditions(item: Object) -> Sequence[Object]:
    found: Sequence[Object] = (item.get("status") or {}).get("conditions") or ()
    return found


def _holds(condition: Object) -> bool:
    return bool(condition["status"] == "True")


def _is(item: Object, kind: str) -> bool:
    return any(c["type"] == kind and _holds(c) for c in _conditions(item))


def _target(conditions: Sequence[Object], kind: str) -> tuple[str, str] | None:
    return next(((c["reason"], c["message"]) for c in conditions if c["type"] == kind and _holds(c)), None)


def _set(conditions: list[Object], kind: str, reason: str, message: str, now: float, *, holds: bool = True) -> None:
    """Replace a condition in its place, or add it at the end; the objects in the list are shared and not changed."""
    at = stamp(now)
    new = {"type": kind, "status": "True" if holds else "False", "lastProbeTime": at, "lastTransitionTime": at}
    new |= {"reason": reason, "message": message}
    for place, old in enumerate(conditions):
        if old["type"] == kind:
            conditions[place] = new
            return
    conditions.append(new)
