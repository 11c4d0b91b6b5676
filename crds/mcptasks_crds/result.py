"""MCPTaskResult: the exact result of one task, owned by it and gone with it."""

import hashlib
from typing import Any, Literal

from pydantic import Field

from mcptasks_crds.kinds import RESULT, TASK
from mcptasks_crds.model import Metadata, Model
from mcptasks_crds.names import LABEL_TASK, result_name
from mcptasks_crds.task import ResultRef


class ResultSpec(Model):
    """The result, as text. Immutable."""

    task_uid: str = Field(max_length=64)
    """The uid of the task it belongs to."""
    result: str
    """The exact JSON text of the MCP result."""
    sha256: str = Field(max_length=64)
    """SHA-256 of the text in UTF-8, in hex."""
    is_error: bool = False
    """Whether the result says isError."""


class MCPTaskResult(Model):
    """The exact result of one task."""

    api_version: str = RESULT.api_version
    kind: Literal["MCPTaskResult"] = "MCPTaskResult"
    metadata: Metadata = Metadata()
    spec: ResultSpec
    """The result, as text."""


def new_result(task_name: str, task_uid: str, text: str, *, is_error: bool) -> dict[str, Any]:
    """The MCPTaskResult to create for one life of a task; the collector takes it when the task goes."""
    body = MCPTaskResult(
        metadata=Metadata(name=result_name(task_uid), labels={LABEL_TASK: task_name}),
        spec=ResultSpec(
            task_uid=task_uid, result=text, sha256=hashlib.sha256(text.encode()).hexdigest(), is_error=is_error
        ),
    ).wire()
    body["metadata"]["ownerReferences"] = [owner_reference(task_name, task_uid)]
    return body


def owner_reference(task_name: str, task_uid: str) -> dict[str, Any]:
    """What makes Kubernetes collect an object when its task goes.

    ``blockOwnerDeletion`` is false: where OwnerReferencesPermissionEnforcement is on, true asks for more rights.
    """
    return {
        "apiVersion": TASK.api_version,
        "kind": TASK.name,
        "name": task_name,
        "uid": task_uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def result_ref(created: dict[str, Any]) -> ResultRef:
    """The reference that completes a task with an MCPTaskResult as the API server answered it."""
    result = MCPTaskResult.model_validate(created)
    return ResultRef(
        name=result.metadata.name,
        uid=result.metadata.uid,
        size=len(result.spec.result.encode()),
        sha256=result.spec.sha256,
        is_error=result.spec.is_error,
    )
