"""Streams that a client of the handshake era opens with GET: news, and what a broken stream still owes."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import anyio

from mcptasks_service import follow, frames
from mcptasks_service.dialects import core, sep1686
from mcptasks_service.dialects.pace import poll_ms
from mcptasks_service.exchange import Exchange, Outcome
from mcptasks_service.sessions import Resumption
from mcptasks_service.wire import Wire
from mcptasks_service.wire_errors import error_data


async def news(wire: Wire, exchange: Exchange, version: str) -> None:
    """Changes of the tool list, and for 2025-11-25 the session's tasks, until the server closes."""

    async def tell_tools() -> None:
        async with aclosing(wire.tasks.catalogue.changes()) as changes:  # type: ignore[type-var]
            async for _ in changes:
                await exchange.notify("notifications/tools/list_changed", None)

    async def tell_tasks() -> None:
        async with aclosing(wire.tasks.watch(exchange.caller)) as states:  # type: ignore[type-var]
            async for task in states:
                words = core.words(task, poll_ms(wire.tasks, task, wire.clock()))
                await exchange.notify("notifications/tasks/status", words)

    async with anyio.create_task_group() as group:
        group.start_soon(tell_tools)
        if version == core.VERSION:
            group.start_soon(tell_tasks)
        await wire.closing.wait()
        group.cancel_scope.cancel()


async def resumed(wire: Wire, exchange: Exchange, resumption: Resumption) -> Outcome:
    """Go on with a request whose stream broke off, on whatever replica: the same wait, the same answer."""
    try:
        task = await wire.tasks.get(exchange.caller, resumption.task_id)
        await exchange.prime(task.task_id, resumption.kind)
        members = _members(resumption)
        task = await follow.ended(exchange, wire.tasks, task, members.get("_meta"))
        answer = await follow.answer(exchange.caller, wire.tasks, task, members)
        return Outcome(frames.response(resumption.request_id, answer))
    except Exception as error:
        data = error_data(error)
        return Outcome(frames.failure(resumption.request_id, data), data)


def _members(resumption: Resumption) -> Mapping[str, Any]:
    """What the dialect of the request adds to its answer."""
    related = {sep1686.NAME: sep1686.related, core.NAME: core.related}.get(resumption.kind)
    return {} if related is None else related(resumption.task_id)
