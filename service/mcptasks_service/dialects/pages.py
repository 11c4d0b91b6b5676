"""A page of ``tasks/list``: the same in both dialects that have it, but for the words of a task."""

from collections.abc import Callable, Mapping
from typing import Any

from mcptasks_crds.record import TaskRecord
from mcptasks_service.dialects.pace import poll_ms
from mcptasks_service.exchange import Exchange
from mcptasks_service.wire import PAGE, Wire


async def page(
    wire: Wire, exchange: Exchange, params: Mapping[str, Any], words: Callable[[TaskRecord, int], dict[str, Any]]
) -> Mapping[str, Any]:
    """The caller's own tasks from ``params.cursor`` on, each as ``words(task, poll interval in ms)`` has it (R-2.3)."""
    found, after = await wire.tasks.list(exchange.caller, wire.cursors.unwrap(params.get("cursor")), PAGE)
    now = wire.clock()
    tasks = [words(task, poll_ms(wire.tasks, task, now)) for task in found]
    return {"tasks": tasks, **({"nextCursor": wire.cursors.wrap(after)} if after else {})}
