"""The tasks of the 2025-11-25 specification: ``params.task`` asks, the answer is the task, the result is a request."""

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from mcptasks_crds.record import TaskRecord
from mcptasks_crds.tool import MCPTool
from mcptasks_service import follow
from mcptasks_service.dialects import asks, shape
from mcptasks_service.dialects.asks import AskedRetention, ToolCall
from mcptasks_service.dialects.pace import poll_ms
from mcptasks_service.errors import InvalidParams
from mcptasks_service.exchange import Exchange
from mcptasks_service.tasks import NewTask
from mcptasks_service.wire import Wire

VERSION = NAME = "2025-11-25"
PLAIN = "plain"
RELATED = "io.modelcontextprotocol/related-task"


def asks_for_task(params: Mapping[str, Any]) -> bool:
    """Whether a request is augmented."""
    return params.get("task") is not None


def related(task_id: str) -> dict[str, Any]:
    """What ties a result to its task, as members of it."""
    return {"_meta": {RELATED: {"taskId": task_id}}}


def capability(*, listable: bool) -> dict[str, Any]:
    """``capabilities.tasks`` of an ``initialize`` answer; tasks can be listed where callers can be told apart."""
    return {**({"list": {}} if listable else {}), "cancel": {}, "requests": {"tools": {"call": {}}}}


def words(task: TaskRecord, poll: int) -> dict[str, Any]:
    """A task. A tool's result that says isError makes it ``failed`` in this dialect."""
    failed = task.result is not None and task.result.is_error
    return {
        "taskId": task.task_id,
        "status": "failed" if failed else shape.status(task),
        **shape.stamps(task),
        "ttl": shape.ttl_ms(task),
        "pollInterval": poll,
    }


def refusal(tool: MCPTool, *, as_task: bool) -> str | None:
    """Why a tool may not be called in this way; None = it may."""
    if as_task and tool.spec.task_support == "forbidden":
        return f"Tool {tool.metadata.name} can't be called as a task; call it without params.task"
    if not as_task and tool.spec.task_support == "required":
        return f'Tool {tool.metadata.name} must be called as a task; add "task": {{}} to the params'
    return None


async def call(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tools/call`` as a task: answered with the task as soon as it is durable."""
    request, ask = asks.tool_call(params), params["task"]
    if not isinstance(ask, Mapping):
        raise InvalidParams(f"Invalid task: {str(ask)[:80]}; it must be an object, with a ttl or empty")
    _check(wire, request.name, as_task=True)
    new = _new(exchange, request, NAME, asks.retention("ttl", ask, "Creation"))
    task = await follow.uncut(wire.tasks.create(exchange.caller, new))
    # The 2.x Python SDK reads the answer as a tool's result, which has content.
    return {"task": words(task, poll_ms(wire.tasks, task, wire.clock())), "content": []}


async def plain_call(wire: Wire, exchange: Exchange, params: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """``tools/call`` of the handshake era without a task: answered at the end; a broken stream cancels nothing."""
    request = asks.tool_call(params)
    if version == VERSION:
        _check(wire, request.name, as_task=False)
    new = _new(exchange, request, version, "default", plain=True)
    task = await follow.uncut(wire.tasks.create(exchange.caller, new))
    await exchange.prime(task.task_id, PLAIN)
    task = await follow.ended(exchange, wire.tasks, task, None)
    return await follow.answer(exchange.caller, wire.tasks, task, {})


async def get(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/get``."""
    task = await wire.tasks.get(exchange.caller, asks.task_id(params))
    return words(task, poll_ms(wire.tasks, task, wire.clock()))


async def result(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/result``: waits for the end, then answers as the plain request would."""
    task = await wire.tasks.get(exchange.caller, asks.task_id(params))
    if not task.terminal:
        await exchange.prime(task.task_id, NAME)
        task = await follow.ended(exchange, wire.tasks, task, related(task.task_id)["_meta"])
    return await follow.answer(exchange.caller, wire.tasks, task, related(task.task_id))


async def cancel(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/cancel``: answers the cancelled task; one that has ended is an error."""
    task_id = asks.task_id(params)
    task = await follow.uncut(wire.tasks.cancel(exchange.caller, task_id))
    return words(task, poll_ms(wire.tasks, task, wire.clock()))


def _new(
    exchange: Exchange, request: ToolCall, origin: str, retention: AskedRetention, *, plain: bool = False
) -> NewTask:
    return NewTask(
        tool=request.name,
        arguments=request.arguments,
        origin=origin,
        retention=retention,
        plain=plain,
        call=exchange.call,
    )


def _check(wire: Wire, name: str, *, as_task: bool) -> None:
    if (why := refusal(wire.tasks.catalogue.tool(name), as_task=as_task)) is not None:
        raise MCPError(code=METHOD_NOT_FOUND, message=why)
