"""The HTTP interface that a Job's pod reports to: arguments, progress, result."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, NotFound
from mcptasks_crds.kinds import TASK
from mcptasks_service.errors import ServiceError, TaskEnded, TaskNotFound, Unavailable
from mcptasks_service.metrics import Metrics
from mcptasks_service.reports import Reports
from mcptasks_service.store import unavailable
from mcptasks_service.worker_identity import WorkerIdentity, WorkerRefused

Authorization = Annotated[str | None, Header()]

RESULT_BODY_LIMIT = 8 * 1024 * 1024
"""Bytes of a result that are read at all: more than any that fits when it is stored, so that both sizes can be told."""

PROGRESS_BODY_LIMIT = 64 * 1024
"""Bytes of a progress report."""


class ProgressReport(BaseModel):
    """How far the work is."""

    progress: float = Field(allow_inf_nan=False)
    """How much is done, in the worker's own unit."""
    total: float | None = Field(default=None, allow_inf_nan=False)
    """How much there is in all."""
    message: str | None = Field(default=None, max_length=4096)
    """What is being done."""


class Reported(BaseModel):
    """What became of the task."""

    task: str
    """The name of the MCPTask."""
    state: str
    """Its state."""


def router(api: Api, identity: WorkerIdentity, reports: Reports) -> APIRouter:
    """The routes. Every one takes the pod's projected token; the token alone says which task is meant."""
    routes = APIRouter(prefix="/worker/v1", tags=["worker"])

    @routes.get("/arguments", summary="The exact arguments of the call")
    async def arguments(authorization: Authorization = None) -> Response:
        task = await identity.task(authorization)
        try:
            stored = await api.get(TASK, task.namespace, task.name)
        except NotFound:
            raise TaskNotFound(task.task_id) from None
        except ApiFailure as error:
            raise unavailable(error) from error
        return Response(stored["spec"]["request"].get("arguments", "{}"), media_type="application/json")

    # The body is read by hand: FastAPI would judge it before the token, and answers 1e999 with a 500.
    schema = {"requestBody": {"content": {"application/json": {"schema": ProgressReport.model_json_schema()}}}}

    @routes.post("/progress", status_code=202, summary="Say how far the work is", openapi_extra=schema)
    async def progress(request: Request, authorization: Authorization = None) -> Reported:
        task = await identity.task(authorization)
        if (body := await _body(request, PROGRESS_BODY_LIMIT)) is None:
            raise WorkerRefused(413, "bad_progress", f"A progress report has {PROGRESS_BODY_LIMIT} bytes at most")
        try:
            report = ProgressReport.model_validate_json(body)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in error.errors())
            raise WorkerRefused(422, "bad_progress", f"The progress report is not one: {wrong}") from None
        reports.progress(task, report.progress, report.total, report.message)
        return Reported(task=task.name, state=task.state)

    @routes.put("/result", summary="Report the tool's result and complete the task")
    async def result(request: Request, authorization: Authorization = None) -> Reported:
        task = await identity.task(authorization)
        if (body := await _body(request, RESULT_BODY_LIMIT)) is None:
            await reports.too_large(task, f"more than {RESULT_BODY_LIMIT} bytes")
        done = await reports.result(task, body)
        return Reported(task=done.name, state=done.state)

    return routes


async def _body(request: Request, limit: int) -> bytes | None:
    """The body; None as soon as it is longer than ``limit`` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)


def refused(metrics: Metrics, error: WorkerRefused | ServiceError) -> JSONResponse:
    """The answer to a worker whose request failed: what is wrong, and whether trying again helps."""
    code, reason = 500, type(error).__name__
    headers: dict[str, str] = {}
    if isinstance(error, WorkerRefused):
        code, reason = error.code, error.reason
    elif isinstance(error, TaskNotFound):
        code = 404
    elif isinstance(error, TaskEnded):
        code = 409
    elif isinstance(error, Unavailable):
        code, headers = 503, {"Retry-After": "1"}
    metrics.worker_refusals.labels(reason=reason).inc()
    content: dict[str, Any] = {"error": {"reason": reason, "message": str(error)}}
    return JSONResponse(content, status_code=code, headers=headers)
