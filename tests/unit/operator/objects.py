"""Objects as the API server sends them, and what the operator keeps of them."""

from collections.abc import Mapping
from typing import Any

from mcptasks_crds.names import LABEL_ATTEMPT, LABEL_MANAGED_BY, LABEL_TASK, LABEL_TASK_UID, MANAGED_BY, job_name
from mcptasks_crds.record import TaskRecord, record
from mcptasks_crds.times import render
from mcptasks_crds.tool import ToolSpec
from mcptasks_operator.observe import JobState, PodState, ToolState, read_job, read_pod, read_tool

from .cluster import NAMESPACE, START

Object = dict[str, Any]
TEMPLATE: Object = {"spec": {"containers": [{"name": "tool", "image": "busybox", "command": ["echo"]}]}}


def task_object(
    number: int = 1,
    *,
    created: float = START,
    status: Mapping[str, Any] | None = None,
    tool: str = "echo",
    version: int = 10,
    **spec: Any,
) -> Object:
    request = {"method": "tools/call", "name": tool, "arguments": spec.pop("arguments", "{}")}
    return {
        "metadata": {
            "name": f"t-{number:040x}",
            "namespace": NAMESPACE,
            "uid": f"task-{number}",
            "resourceVersion": str(version),
            "creationTimestamp": spec.pop("stored", render(created)),
        },
        "spec": {"taskId": f"id-{number}", "request": request, "createdAt": render(created), **spec},
        **({"status": dict(status)} if status is not None else {}),
    }


def task(number: int = 1, **fields: Any) -> TaskRecord:
    return record(task_object(number, **fields))


def tool_object(name: str = "echo", *, status: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"tool-{name}", "resourceVersion": "5", "generation": 1}
    return {
        "metadata": meta,
        "spec": {"job": {"template": TEMPLATE}, **spec},
        **({"status": dict(status)} if status is not None else {}),
    }


def tool(name: str = "echo", **spec: Any) -> ToolState:
    return read_tool(tool_object(name, **spec))


def tool_spec(**spec: Any) -> ToolSpec:
    return tool(**spec).spec


def job_object(
    number: int = 1, attempt: int = 1, *, created: float = START, status: Mapping[str, Any] | None = None, **meta: Any
) -> Object:
    return {
        "metadata": {
            "name": job_name(f"task-{number}", attempt),
            "namespace": NAMESPACE,
            "uid": f"job-{number}-{attempt}",
            "resourceVersion": "20",
            "creationTimestamp": render(created),
            "labels": {
                LABEL_MANAGED_BY: MANAGED_BY,
                LABEL_TASK: f"t-{number:040x}",
                LABEL_TASK_UID: f"task-{number}",
                LABEL_ATTEMPT: str(attempt),
            },
            **meta,
        },
        "spec": {"activeDeadlineSeconds": 100},
        "status": dict(status or {}),
    }


def job(number: int = 1, attempt: int = 1, **fields: Any) -> JobState:
    return read_job(job_object(number, attempt, **fields))


def condition(kind: str, reason: str, at: float = START, message: str = "") -> Object:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": render(at)}


def pod_object(
    number: int = 1,
    attempt: int = 1,
    *,
    state: Mapping[str, Any] | None = None,
    created: float = START,
    version: int = 30,
    status: Mapping[str, Any] | None = None,
    policy: str = "FallbackToLogsOnError",
    **meta: Any,
) -> Object:
    """``state`` is that of the container ``tool``."""
    containers = [] if state is None else [{"name": "tool", "state": dict(state)}]
    return {
        "metadata": {
            "name": f"pod-{number}-{attempt}",
            "namespace": NAMESPACE,
            "uid": f"pod-{number}-{attempt}",
            "resourceVersion": str(version),
            "creationTimestamp": render(created),
            "labels": {LABEL_MANAGED_BY: MANAGED_BY, LABEL_TASK_UID: f"task-{number}"},
            "ownerReferences": [
                {
                    "kind": "Job",
                    "name": job_name(f"task-{number}", attempt),
                    "uid": f"job-{number}-{attempt}",
                    "controller": True,
                }
            ],
            **meta,
        },
        "spec": {"containers": [{"name": "tool", "terminationMessagePolicy": policy}]},
        "status": {"phase": "Pending", "containerStatuses": containers, **(status or {})},
    }


def pod(number: int = 1, attempt: int = 1, **fields: Any) -> PodState:
    return read_pod(pod_object(number, attempt, **fields)).after(None)


def running(at: float = START) -> Object:
    return {"running": {"startedAt": render(at)}}


def terminated(code: int = 0, *, reason: str = "Completed", at: float = START + 5, message: str = "") -> Object:
    ended = {"exitCode": code, "reason": reason, "finishedAt": render(at)}
    return {"terminated": {**ended, **({"message": message} if message else {})}}


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def working(attempt: int = 1, number: int = 1, **status: Any) -> Object:
    """The status of a task whose Job runs."""
    return {
        "state": "working",
        "startedAt": render(START + 1),
        "attempt": attempt,
        "job": {"name": job_name(f"task-{number}", attempt), "uid": f"job-{number}-{attempt}"},
        **status,
    }


def ended(state: str = "completed", *, at: float = START + 10, expires: float | None = None, **status: Any) -> Object:
    """The status of a task that has ended."""
    result = {"name": "r-task-1", "uid": "r-1", "size": 2, "sha256": "00"}
    return {
        "state": state,
        "finishedAt": render(at),
        **({} if expires is None else {"expiresAt": render(expires)}),
        **({"result": result} if state == "completed" else {}),
        **status,
    }
