"""The MCP server: the official SDK's, with our methods in its middleware.

Answers leave from the middleware because the SDK cuts what a handler of a specification method returns to the
version's schema: a task in place of a tool's result, and unknown fields of a result, would not get through.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, SERVER_INFO_META_KEY, CancelledNotificationParams
from mcp_types import methods as schema

from mcptasks_service.dialects import core, extension, sep1686
from mcptasks_service.dialects.pages import page
from mcptasks_service.dialects.tools import listed
from mcptasks_service.errors import InvalidParams, ToolNotFound, shown
from mcptasks_service.exchange import Exchange, SDKServer
from mcptasks_service.follow import uncut
from mcptasks_service.stored import WHOLE
from mcptasks_service.wire import Wire

NAME = "mcptasks"

Context = ServerRequestContext[dict[str, Any], Any]
Answer = Mapping[str, Any]


def new_sdk_server() -> SDKServer:
    """The SDK's server, which as yet answers ``ping``, ``initialize`` and ``server/discover``."""
    return Server(NAME, version=version("mcptasks"), title="mcptasks: durable tasks on Kubernetes")


class Methods:
    """Answers every method; the era and the request's own marks choose the dialect."""

    def __init__(self, server: SDKServer, wire: Wire) -> None:
        self._wire = wire
        server.middleware.append(self._middleware)
        server.add_notification_handler("notifications/cancelled", CancelledNotificationParams, self._cancelled)

    async def _middleware(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        exchange = ctx.request
        if ctx.request_id is None or not isinstance(exchange, Exchange):
            return await call_next(ctx)
        answer = self._modern if exchange.modern else self._legacy
        found = await answer(ctx, exchange, ctx.params or {})
        return await self._from_sdk(ctx, exchange, call_next) if found is None else dict(found)

    async def _legacy(self, ctx: Context, exchange: Exchange, params: Mapping[str, Any]) -> Answer | None:
        wire = self._wire
        match ctx.method:
            case "tools/call" if ctx.protocol_version == core.VERSION and core.asks_for_task(params):
                return await core.call(wire, exchange, params)
            case "tools/call" if sep1686.asks_for_task(params) and self._augments(params):
                return await sep1686.call(wire, exchange, params)
            case "tools/call":
                return await core.plain_call(wire, exchange, params, ctx.protocol_version)
            case "tools/list":
                _check_no_cursor(params)
                support = ctx.protocol_version == core.VERSION
                return {"tools": listed(wire.tasks.catalogue.tools(), task_support=support)}
            case "tasks/get":
                get = sep1686.get if sep1686.marked(params) else core.get
                return await get(wire, exchange, params)
            case "tasks/result":
                result = sep1686.result if sep1686.marked(params) else core.result
                return await result(wire, exchange, params)
            case "tasks/list":
                return await self._list(ctx, exchange, params)
            case "tasks/cancel":
                return await core.cancel(wire, exchange, params)
            case "tasks/delete":
                return await sep1686.delete(wire, exchange, params)
        return None

    async def _modern(self, ctx: Context, exchange: Exchange, params: Mapping[str, Any]) -> Answer | None:
        wire = self._wire
        capabilities = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        if ctx.method in ("tools/call", "tools/list", "subscriptions/listen"):
            schema.validate_client_request(ctx.method, ctx.protocol_version, params)
        if ctx.method in extension.METHODS:
            extension.check_declared(capabilities, ctx.method)
        match ctx.method:
            case "tools/call":
                return self._stamped(await extension.call(wire, exchange, params, capabilities))
            case "tools/list":
                _check_no_cursor(params)
                tools = listed(wire.tasks.catalogue.tools(), task_support=False)
                return self._stamped({**extension.COMPLETE, "tools": tools, "ttlMs": 0, "cacheScope": "private"})
            case "tasks/get":
                return self._stamped(await extension.get(wire, exchange, params))
            case "tasks/cancel":
                return self._stamped(await extension.cancel(wire, exchange, params))
            case "tasks/update":
                return self._stamped(await extension.update(wire, exchange, params))
            case "subscriptions/listen":
                return await extension.listen(wire, exchange, params, capabilities)
        return None

    async def _from_sdk(self, ctx: Context, exchange: Exchange, call_next: CallNext) -> HandlerResult:
        """What the SDK answers itself; it refuses methods that its version does not have."""
        answer = await call_next(ctx)
        if isinstance(answer, dict) and ctx.method == "initialize":
            answer["capabilities"] = {"tools": {"listChanged": True}}
            if answer["protocolVersion"] == core.VERSION:
                answer["capabilities"]["tasks"] = core.capability(listable=exchange.caller.identified)
        if isinstance(answer, dict) and ctx.method == "server/discover":
            # Exactly {}: a widely used client library reads a key inside as "no tasks".
            answer["capabilities"] = {"tools": {"listChanged": True}, "extensions": {extension.EXTENSION: {}}}
        return answer

    async def _list(self, ctx: Context, exchange: Exchange, params: Mapping[str, Any]) -> Answer:
        """A list request has no mark of its own in SEP-1686, and its own words would break a client of 2025-11-25."""
        if sep1686.marked(params) or ctx.protocol_version != core.VERSION:
            return await page(self._wire, exchange, params, sep1686.words)
        if exchange.caller.identified:
            return await page(self._wire, exchange, params, core.words)
        # Nobody is identified: only tasks whose ids the session's client chose itself are the session's.
        if not self._wire.tasks.has_listed(exchange.caller):
            raise MCPError(
                code=METHOD_NOT_FOUND,
                message="tasks/list needs callers that can be told apart, and this server identifies nobody",
            )
        return await page(self._wire, exchange, params, sep1686.words)

    async def _cancelled(self, ctx: Context, params: CancelledNotificationParams) -> None:
        exchange = ctx.request
        if not isinstance(exchange, Exchange) or params.request_id is None:
            return
        await uncut(self._wire.tasks.cancel_call(exchange.caller.session, params.request_id))

    def _augments(self, params: Mapping[str, Any]) -> bool:
        """Whether the tool may run as a task; one that may not ignores the request to (R-1.2, R-1.4)."""
        try:
            tool = self._wire.tasks.catalogue.tool(str(params.get("name")))
        except ToolNotFound:
            return True
        return tool.spec.task_support != "forbidden"

    def _stamped(self, answer: Answer) -> Answer:
        """An answer with the server's name in its ``_meta``; stored text has been stamped where it was made."""
        return answer if WHOLE in answer else {**answer, **self._wire.stamp}


def stamp(server: SDKServer) -> dict[str, Any]:
    """The ``_meta`` member that names this server."""
    return {"_meta": {SERVER_INFO_META_KEY: server.server_info_stamp}}


def _check_no_cursor(params: Mapping[str, Any]) -> None:
    if (cursor := params.get("cursor")) is not None:
        raise InvalidParams(f"Invalid cursor: {shown(str(cursor))}; tools/list has one page")
