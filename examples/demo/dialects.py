"""MCP tasks from the client's side, in the three dialects, with the official SDK (`mcp` 2.3).

The SDK has no task calls of its own: what a host needs for each dialect is below, in a few lines each.
"""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import mcp_types as types
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, ConfigDict

SEP_1686 = "modelcontextprotocol.io/task"
SEP_1686_RELATED = "modelcontextprotocol.io/related-task"
EXTENSION = "io.modelcontextprotocol/tasks"

Json = dict[str, Any]


class Answer(types.Result):
    """Any result, as it came."""

    model_config = ConfigDict(extra="allow")


class TaskRequest(types.Request[Json, str]):
    """A request about a task; on the stateless wire its id goes into a header too."""

    name_param = "taskId"


async def ask(session: ClientSession, method: str, params: Json) -> Json:
    """Send a request that the SDK has no method for.

    Raises:
        MCPError: the server's refusal.
    """
    known_task = "taskId" in params
    request = (TaskRequest if known_task else types.Request[Json, str])(method=method, params=params)
    return (await session.send_request(request, Answer)).model_dump(by_alias=True, mode="json", exclude_none=True)


class Notified(BaseModel):
    """The parameters of any notification."""

    model_config = ConfigDict(extra="allow")


@asynccontextmanager
async def session_of_2025(
    url: str, on_created: Callable[[Json], Awaitable[None]] | None = None
) -> AsyncIterator[ClientSession]:
    """A session with a server, begun by ``initialize``; ``on_created`` gets each ``notifications/tasks/created``."""

    async def created(params: Notified) -> None:
        if on_created is not None:
            await on_created(params.model_dump())

    binding = NotificationBinding(method="notifications/tasks/created", params_type=Notified, handler=created)
    async with (
        streamable_http_client(url) as (reads, writes),
        ClientSession(reads, writes, notification_bindings=[binding]) as session,
    ):
        await session.initialize()
        yield session


class Sep1686Task:
    """SEP-1686: the requestor names the task; the original request stays open and gets the result in the end."""

    def __init__(self, session: ClientSession, tool: str, arguments: Json, keep_alive: int) -> None:
        self.id = str(uuid.uuid4())
        self._session, self._tool, self._arguments, self._keep_alive = session, tool, arguments, keep_alive

    async def call(self) -> types.CallToolResult:
        """The original request, which makes the task. Keep it running beside the polls."""
        meta: Any = {SEP_1686: {"taskId": self.id, "keepAlive": self._keep_alive}}
        return await self._session.call_tool(self._tool, self._arguments, meta=meta)

    async def get(self) -> Json:
        """The task's state, as often as one likes."""
        return await self._ask("tasks/get")

    async def result(self) -> Json:
        """The result; refused while there is none."""
        return await self._ask("tasks/result")

    async def delete(self) -> Json:
        """Let go of task and result before the keepAlive is over."""
        return await self._ask("tasks/delete")

    async def _ask(self, method: str) -> Json:
        return await ask(self._session, method, {"taskId": self.id, "_meta": {SEP_1686_RELATED: {"taskId": self.id}}})


class CoreTask:
    """The core spec of 2025-11-25: the receiver names the task; ``tasks/result`` waits for its end."""

    def __init__(self, session: ClientSession, created: Json) -> None:
        self._session, self.created = session, created
        self.id: str = created["taskId"]

    @classmethod
    async def start(cls, session: ClientSession, tool: str, arguments: Json, ttl: int) -> "CoreTask":
        """Call a tool as a task that is kept for ``ttl`` milliseconds from now."""
        params = {"name": tool, "arguments": arguments, "task": {"ttl": ttl}}
        return cls(session, (await ask(session, "tools/call", params))["task"])

    async def get(self) -> Json:
        """The task's state."""
        return await ask(self._session, "tasks/get", {"taskId": self.id})

    async def result(self) -> Json:
        """The result; waits for it."""
        return await ask(self._session, "tasks/result", {"taskId": self.id})


class Handle(types.Result):
    """What a server of 2026-07-28 answers instead of a result when it makes a task of a call."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    result_type: Literal["task"]
    task_id: str
    status: str


class Tasks(ClientExtension):
    """The extension io.modelcontextprotocol/tasks (SEP-2663): declares it, and takes handles."""

    identifier = EXTENSION

    def claims(self) -> list[ResultClaim[Any]]:
        """Answers of the type ``task`` are ours."""
        return [ResultClaim(result_type="task", model=Handle, resolve=self._unresolved)]

    async def _unresolved(self, handle: Handle, context: ClaimContext) -> types.CallToolResult:
        raise RuntimeError("the demo polls itself: call with allow_claimed=True")


class ExtensionTask:
    """The extension on 2026-07-28: the server decides; ``tasks/get`` carries the result when there is one."""

    def __init__(self, session: ClientSession, handle: Handle) -> None:
        self._session, self.handle = session, handle
        self.id = handle.task_id

    @classmethod
    async def start(cls, client: Client, tool: str, arguments: Json) -> "ExtensionTask":
        """Call a tool of a server that makes a task of it."""
        handle = await client.session.call_tool(tool, arguments, allow_claimed=True)
        if not isinstance(handle, Handle):
            raise TypeError(f"the server answered at once, without a task: {handle}")
        return cls(client.session, handle)

    async def get(self) -> Json:
        """The task's state, with its result once it has one."""
        return await ask(self._session, "tasks/get", {"taskId": self.id})
