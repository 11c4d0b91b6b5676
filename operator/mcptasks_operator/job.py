"""The Job of one attempt, from a tool's template."""

import copy
import math
from typing import Any

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.kinds import JOB
from mcptasks_crds.names import (
    AUDIENCE,
    LABEL_ATTEMPT,
    LABEL_MANAGED_BY,
    LABEL_OWNER,
    LABEL_TASK,
    LABEL_TASK_UID,
    LABEL_TOOL,
    MANAGED_BY,
    job_name,
)
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.result import owner_reference
from mcptasks_crds.times import seconds
from mcptasks_crds.tool import ToolSpec, tool_container
from mcptasks_operator.arguments import ANNOTATION, ANNOTATION_LIMIT, FILE, variables
from mcptasks_operator.surroundings import Surroundings

MOUNT = "/mcptasks"
VOLUME = "mcptasks"
TOKEN_FILE = "token"  # noqa: S105 (its name)
TOKEN_SECONDS = 3600
"""Life of the pod's token; the kubelet renews the file well before."""
GRACE_SECONDS = 5
"""Seconds between SIGTERM and SIGKILL unless the template says otherwise: a cancel must be felt soon."""
TERMINATION_LOG = "/dev/termination-log"
LONGEST = 2**31 - 1
"""The largest activeDeadlineSeconds."""

Object = dict[str, Any]


def labels(task: TaskRecord, attempt: int) -> dict[str, str]:
    """What marks the Jobs and pods of a task. A tool's name has 63 characters at most here, as label values do."""
    return {
        LABEL_MANAGED_BY: MANAGED_BY,
        LABEL_TASK: task.name,
        LABEL_TASK_UID: task.uid,
        LABEL_TOOL: task.tool[:63].rstrip("-_."),
        LABEL_OWNER: task.owner,
        LABEL_ATTEMPT: str(attempt),
    }


def needs_secret(arguments: str) -> bool:
    """Whether arguments are too large for an annotation."""
    return len(arguments.encode(errors="surrogatepass")) > ANNOTATION_LIMIT


def arguments_secret(task: TaskRecord, arguments: str) -> Object:
    """The Secret that carries large arguments; the task owns it."""
    return {
        "metadata": {
            "name": _secret_name(task),
            "labels": labels(task, 1),
            "ownerReferences": [owner_reference(task.name, task.uid)],
        },
        "immutable": True,
        "stringData": {FILE: arguments},
    }


def build_job(task: TaskRecord, arguments: str, tool: ToolSpec, attempt: int, surroundings: Surroundings) -> Object:
    """The Job to create. Its name is derived, so that making it twice meets 409; it never retries by itself.

    ``arguments`` is the exact JSON text. The deadline is a fence for when the operator is away: the operator itself
    counts the run from the program's start, the Job from before the image is pulled.

    Raises:
        InvalidValue: the tool's template has no container.
    """
    marks = labels(task, attempt)
    deadline = math.ceil(seconds(tool.timeouts.start) + seconds(tool.timeouts.run)) + 1
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "metadata": {
            "name": job_name(task.uid, attempt),
            "labels": marks,
            "ownerReferences": [owner_reference(task.name, task.uid)],
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": min(deadline, LONGEST),
            "template": _template(task, arguments, tool, marks, surroundings),
        },
    }


def build_pod(tool: ToolSpec, task: TaskRecord, surroundings: Surroundings) -> Object:
    """A pod as such a Job would make it, for a dry run.

    Raises:
        InvalidValue: the tool's template has no container.
    """
    template = _template(task, "{}", tool, labels(task, 1), surroundings)
    return {"metadata": {"generateName": "mct-try-", **template["metadata"]}, "spec": template["spec"]}


def _template(
    task: TaskRecord, arguments: str, tool: ToolSpec, marks: dict[str, str], surroundings: Surroundings
) -> Object:
    template: Object = copy.deepcopy(tool.job.template)
    container = tool_container(template)
    if container is None:
        raise InvalidValue("spec.job.template has no container; give it one under spec.containers")
    secret = needs_secret(arguments)
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **marks}
    if not secret:
        meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION: arguments}

    spec = template["spec"]
    spec["restartPolicy"] = "Never"
    surroundings.apply(spec)
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    spec["volumes"] = [*(spec.get("volumes") or []), _volume(_secret_name(task) if secret else None)]

    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    mount = {"name": VOLUME, "mountPath": MOUNT, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
    ours = {
        "MCPTASKS_TASK": task.name,
        "MCPTASKS_URL": surroundings.worker_url,
        "MCPTASKS_TOKEN_FILE": f"{MOUNT}/{TOKEN_FILE}",
        "MCPTASKS_ARGUMENTS": f"{MOUNT}/{FILE}",
        "MCPTASKS_TERMINATION_LOG": container.get("terminationMessagePath") or TERMINATION_LOG,
    }
    container["env"] = [
        # First: the kubelet expands a value from what is listed before it, and these are a caller's words.
        *variables(arguments, tool.input_schema),
        *({"name": name, "value": value} for name, value in ours.items()),
        *(container.get("env") or []),
    ]
    return template


def _volume(secret: str | None) -> Object:
    path = [{"path": FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{ANNOTATION}']"}}]
    arguments: Object = (
        {"downwardAPI": {"items": path}}
        if secret is None
        else {"secret": {"name": secret, "items": [{"key": FILE, "path": FILE}]}}
    )
    token = {"serviceAccountToken": {"path": TOKEN_FILE, "audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS}}
    return {"name": VOLUME, "projected": {"sources": [arguments, token]}}


def _secret_name(task: TaskRecord) -> str:
    return f"mct-{task.uid}"
