"""SEP-1686: the requestor names the task in ``_meta``, and still gets its answer at the end."""

from collections.abc import Mapping
from typing import Any

from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.retention import keep_alive
from mcptasks_service import follow
from mcptasks_service.dialects import asks
from mcptasks_service.dialects.pace import poll_ms
from mcptasks_service.errors import InvalidParams, ResultNotReady
from mcptasks_service.exchange import Exchange
from mcptasks_service.tasks import NewTask
from mcptasks_service.wire import Wire

NAME = "sep-1686"
TASK = "modelcontextprotocol.io/task"
RELATED = "modelcontextprotocol.io/related-task"


def asks_for_task(params: Mapping[str, Any]) -> bool:
    """Whether a request is augmented (R-1.1)."""
    return TASK in asks.meta(params)


def marked(params: Mapping[str, Any]) -> bool:
    """Whether a request shows that its sender speaks this dialect."""
    return not asks.meta(params).keys().isdisjoint((TASK, RELATED))


def related(task_id: str) -> dict[str, Any]:
    """What ties a message to its task (R-6.1), as members of a result or of params."""
    return {"_meta": {RELATED: {"taskId": task_id}}}


def words(task: TaskRecord, poll: int) -> dict[str, Any]:
    """A task in ``tasks/get`` and ``tasks/list`` (R-2.1, R-5.1, R-8.2)."""
    error = (task.error or {}).get("message") or task.message or task.reason
    return {
        "taskId": task.task_id,
        "status": str(task.state),
        "keepAlive": keep_alive(task.retention, task.created, task.finished),
        "pollFrequency": poll,
        **({"error": error} if task.state is State.FAILED and error else {}),
    }


async def call(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tools/call`` as a task: the created notification, then the real answer on the same stream (R-1.3, R-1.5)."""
    request, ask = asks.tool_call(params), asks.meta(params)[TASK]
    if not isinstance(ask, Mapping):
        raise InvalidParams(f'Invalid _meta["{TASK}"]: it must be an object with a taskId')
    new = NewTask(
        tool=request.name,
        arguments=request.arguments,
        origin=NAME,
        task_id=asks.task_id(ask),
        retention=asks.retention("keepAlive", ask, "Finish"),
        call=exchange.call,
    )
    task = await follow.uncut(wire.tasks.create(exchange.caller, new))
    members = related(task.task_id)
    await exchange.prime(task.task_id, NAME)
    await exchange.notify("notifications/tasks/created", members)
    task = await follow.ended(exchange, wire.tasks, task, members["_meta"])
    return await follow.answer(exchange.caller, wire.tasks, task, members)


async def get(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/get``."""
    task = await wire.tasks.get(exchange.caller, asks.task_id(params))
    return {**words(task, poll_ms(wire.tasks, task, wire.clock())), **related(task.task_id)}


async def result(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/result``: only of a completed task (R-2.2)."""
    task = await wire.tasks.get(exchange.caller, asks.task_id(params))
    if task.state is not State.COMPLETED:
        raise ResultNotReady(task.task_id, task.state)
    return await follow.answer(exchange.caller, wire.tasks, task, related(task.task_id))


async def delete(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/delete`` (R-2.5)."""
    task_id = asks.task_id(params)
    await follow.uncut(wire.tasks.delete(exchange.caller, task_id))
    return related(task_id)
