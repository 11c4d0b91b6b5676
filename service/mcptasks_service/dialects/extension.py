"""The extension ``io.modelcontextprotocol/tasks`` on 2026-07-28: the server decides, the result comes with the task."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY

from mcptasks_crds.record import TaskRecord
from mcptasks_service import follow
from mcptasks_service.dialects import asks, shape
from mcptasks_service.dialects.asks import ToolCall
from mcptasks_service.dialects.pace import poll_ms
from mcptasks_service.errors import InvalidParams, ServiceError, TaskEnded, TaskNotFound
from mcptasks_service.exchange import Exchange
from mcptasks_service.stored import Raw
from mcptasks_service.tasks import NewTask
from mcptasks_service.wire import Wire

VERSION = NAME = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
COMPLETE = {"resultType": "complete"}

METHODS = frozenset({"tasks/get", "tasks/cancel", "tasks/update"})
"""What only a client that declared the extension may ask."""

WATCHED_LIMIT = 100
"""Tasks that one subscription may name."""


def declared(capabilities: object) -> bool:
    """Whether a request's client capabilities have the extension."""
    if not isinstance(capabilities, Mapping):
        return False
    extensions = capabilities.get("extensions")
    return isinstance(extensions, Mapping) and EXTENSION in extensions


def words(task: TaskRecord, poll: int) -> dict[str, Any]:
    """The part of a task that every message has."""
    return {
        "taskId": task.task_id,
        "status": shape.status(task),
        **shape.stamps(task),
        "ttlMs": shape.ttl_ms(task),
        "pollIntervalMs": poll,
    }


def detailed(task: TaskRecord, poll: int, result: bytes | None) -> dict[str, Any]:
    """The whole task: with its result if it is completed, with its error if it failed."""
    own = words(task, poll)
    if result is not None:
        return {**own, "result": Raw(result)}
    return {**own, "error": follow.failure(task)} if own["status"] == "failed" else own


def missing_extension(why: str) -> MCPError:
    """−32021: the request must declare the extension."""
    required: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return MCPError(code=MISSING_REQUIRED_CLIENT_CAPABILITY, message=why, data=required)


async def call(wire: Wire, exchange: Exchange, params: Mapping[str, Any], capabilities: object) -> Mapping[str, Any]:
    """``tools/call``: a task for a client that knows tasks, unless the tool forbids it; else answered at the end."""
    request = asks.tool_call(params)
    support = wire.tasks.catalogue.tool(request.name).spec.task_support
    as_task = declared(capabilities) and support != "forbidden"
    if support == "required" and not as_task:
        raise missing_extension(f"Tool {request.name} runs only as a task: declare the extension {EXTENSION}")
    task = await follow.uncut(wire.tasks.create(exchange.caller, _new(request, plain=not as_task)))
    async with follow.cancelled_with_stream(exchange, wire.tasks, task):
        if as_task:
            return {"resultType": "task", **words(task, poll_ms(wire.tasks, task, wire.clock()))}
        task = await follow.ended(exchange, wire.tasks, task, None)
    return await follow.answer(exchange.caller, wire.tasks, task, {**COMPLETE, **wire.stamp})


def check_declared(capabilities: object, method: str) -> None:
    """Refuse a method of the extension to a client that did not declare it.

    Raises:
        MCPError: −32021.
    """
    if not declared(capabilities):
        raise missing_extension(f"{method} needs the extension {EXTENSION}: declare it in the request's capabilities")


async def get(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/get``: the whole task."""
    task = await wire.tasks.get(exchange.caller, _task_id(exchange, params))
    return {**COMPLETE, **await _whole(wire, exchange, task)}


async def cancel(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/cancel``: an acknowledgement, the same for a task that has ended."""
    task_id = _task_id(exchange, params)
    try:
        await follow.uncut(wire.tasks.cancel(exchange.caller, task_id))
    except TaskEnded:
        pass
    return COMPLETE


async def update(wire: Wire, exchange: Exchange, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tasks/update``: an acknowledgement; answers to what was not asked, or is answered, are ignored."""
    task_id = _task_id(exchange, params)
    if not isinstance(params.get("inputResponses"), Mapping):
        raise InvalidParams("Invalid inputResponses: they must be an object of answers by key")
    await wire.tasks.get(exchange.caller, task_id)
    return COMPLETE


async def listen(wire: Wire, exchange: Exchange, params: Mapping[str, Any], capabilities: object) -> Mapping[str, Any]:
    """``subscriptions/listen``: changes of the tool list, and of the named tasks that are the caller's."""
    asked = params.get("notifications")
    asked = asked if isinstance(asked, Mapping) else {}
    watched = (
        [await _seen(wire, exchange, task_id) for task_id in _watched_ids(asked)] if declared(capabilities) else []
    )
    tasks = [task for task in watched if task is not None]
    tools = asked.get("toolsListChanged") is True
    honoured = {
        **({"toolsListChanged": True} if tools else {}),
        **({"taskIds": [task.task_id for task in tasks]} if tasks else {}),
    }
    tag = {"_meta": {SUBSCRIPTION: exchange.request_id}}
    await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": honoured, **tag})

    async def tell_tools() -> None:
        async with aclosing(wire.tasks.catalogue.changes()) as changes:  # type: ignore[type-var]
            async for _ in changes:
                await exchange.notify("notifications/tools/list_changed", tag)

    async def tell_task(task: TaskRecord) -> None:
        try:
            async with aclosing(wire.tasks.changes(task)) as states:  # type: ignore[type-var]
                async for state in states:
                    await exchange.notify("notifications/tasks", {**await _whole(wire, exchange, state), **tag})
        except ServiceError:
            return  # deleted, or its result can't be read now: a poll says which

    async with anyio.create_task_group() as group:
        if tools:
            group.start_soon(tell_tools)
        for task in tasks:
            group.start_soon(tell_task, task)
        await wire.closing.wait()
        group.cancel_scope.cancel()
    return {**COMPLETE, **tag}


def _watched_ids(asked: Mapping[str, Any]) -> list[str]:
    ids = asked.get("taskIds")
    if ids is None:
        return []
    if not isinstance(ids, list) or len(ids) > WATCHED_LIMIT:
        raise InvalidParams(f"Invalid taskIds: they must be a list of at most {WATCHED_LIMIT} task ids")
    return list(dict.fromkeys(asks.task_id({"taskId": value}) for value in ids))


async def _seen(wire: Wire, exchange: Exchange, task_id: str) -> TaskRecord | None:
    try:
        return await wire.tasks.get(exchange.caller, task_id)
    except TaskNotFound:
        return None


async def _whole(wire: Wire, exchange: Exchange, task: TaskRecord) -> dict[str, Any]:
    result = await wire.tasks.result(exchange.caller, task) if task.result is not None else None
    return detailed(task, poll_ms(wire.tasks, task, wire.clock()), result)


def _new(request: ToolCall, *, plain: bool) -> NewTask:
    return NewTask(tool=request.name, arguments=request.arguments, origin=NAME, plain=plain)


def _task_id(exchange: Exchange, params: Mapping[str, Any]) -> str:
    """``taskId``, which the ``Mcp-Name`` header must repeat: gateways route by it, and the SDK does not look."""
    task_id = asks.task_id(params)
    if decode_header_value(exchange.headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(code=HEADER_MISMATCH, message=f"{MCP_NAME_HEADER} header does not match the params' taskId")
    return task_id
