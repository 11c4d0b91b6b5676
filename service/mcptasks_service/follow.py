"""Waiting for the end of a task on behalf of an open request."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_service.callers import Caller
from mcptasks_service.errors import ServiceError, TaskNotFound, shown
from mcptasks_service.exchange import Exchange
from mcptasks_service.stored import merged, whole
from mcptasks_service.tasks import Tasks
from mcptasks_service.wire_errors import REQUEST_CANCELLED

T = TypeVar("T")

CANCEL_SECONDS = 10.0
"""How long the cancel of a task may take whose client has gone; then it runs on, unseen."""


async def uncut(write: Awaitable[T]) -> T:
    """Finish a write: a client that goes away in the middle of it must not leave it half done."""
    with anyio.CancelScope(shield=True):
        done = await write
    return done  # noqa: RET504 (mypy believes that a cancel scope may swallow an exception)


async def ended(exchange: Exchange, tasks: Tasks, task: TaskRecord, meta: Mapping[str, Any] | None) -> TaskRecord:
    """The last state of a task, once it has one; until then its progress goes to the client, ``meta`` with it.

    Raises:
        MCPError: it was deleted.
    """
    last = float("-inf")
    try:
        async with aclosing(tasks.changes(task)) as states:  # type: ignore[type-var]
            async for state in states:
                task = state
                said = state.progress or {}
                # It must rise with every notification; another attempt begins again from nothing.
                if (now := said.get("progress", last)) > last and not state.terminal:
                    last = now
                    await exchange.progress(now, said.get("total"), said.get("message"), meta)
    except TaskNotFound:
        why = f"Task {shown(task.task_id)} was deleted before it had ended"
        raise MCPError(code=REQUEST_CANCELLED, message=why) from None
    return task


async def answer(caller: Caller, tasks: Tasks, task: TaskRecord, members: Mapping[str, Any]) -> dict[str, Any]:
    """What the plain request answers to a task that has ended: the stored result, ``members`` added to it.

    Raises:
        MCPError: it has no result; the error is the task's own where it has one.
    """
    if task.result is not None:
        return whole(merged(await tasks.result(caller, task), members))
    error = failure(task)
    raise MCPError(code=error["code"], message=error["message"], data=error.get("data"))


def failure(task: TaskRecord) -> dict[str, Any]:
    """The JSON-RPC error of a task that ended without a result."""
    if task.error is not None:
        return dict(task.error)
    said = task.message or task.reason or f"Task {task.task_id!r} is {task.state}"
    data = {"taskId": task.task_id, "status": str(task.state), **({"reason": task.reason} if task.reason else {})}
    code = REQUEST_CANCELLED if task.state is State.CANCELLED else INTERNAL_ERROR
    return {"code": code, "message": said, "data": data}


@asynccontextmanager
async def cancelled_with_stream(exchange: Exchange, tasks: Tasks, task: TaskRecord) -> AsyncIterator[None]:
    """Cancel a task if the client closes the stream before it has a handle: then nobody can ever ask for it."""
    try:
        await anyio.lowlevel.checkpoint_if_cancelled()
        yield
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(ServiceError):
            await tasks.cancel(exchange.caller, task.task_id, "the response stream was closed")
        raise
