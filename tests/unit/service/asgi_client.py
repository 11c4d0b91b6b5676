"""An HTTP client that drives an ASGI application directly: no sockets, and a response can be read while it grows."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

SECONDS = 5.0
"""How long anything may take before a test fails."""

A_TASK, A_RELATED = "modelcontextprotocol.io/task", "modelcontextprotocol.io/related-task"
EXTENSION = "io.modelcontextprotocol/tasks"
_IDS = itertools.count(1)


@dataclass
class Event:
    """One server-sent event."""

    id: str | None = None
    data: str = ""

    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class Reply:
    """A response, perhaps still growing."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    chunks: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Task[None] | None = None

    async def body(self) -> bytes:
        """All of it, once it is whole."""
        parts = []
        async with asyncio.timeout(SECONDS):
            while (part := await self.chunks.get()) is not None:
                parts.append(part)
        return b"".join(parts)

    async def json(self) -> Any:
        return json.loads(await self.body())

    async def comments_and_events(self) -> AsyncIterator[Event | str]:
        buffer = b""
        async with asyncio.timeout(SECONDS):
            while (part := await self.chunks.get()) is not None:
                buffer += part
                while b"\r\n\r\n" in buffer:
                    block, buffer = buffer.split(b"\r\n\r\n", 1)
                    yield _event(block.decode())

    async def events(self) -> AsyncIterator[Event]:
        """Its events, as they come."""
        async for item in self.comments_and_events():
            if isinstance(item, Event):
                yield item

    async def message(self) -> Any:
        """The next JSON-RPC message of a stream."""
        async for event in self.events():
            if event.data:
                return event.json()
        raise AssertionError("the stream has ended")

    async def answer(self) -> Any:
        """The JSON-RPC answer, whether it comes as JSON or at the end of a stream."""
        if self.headers["content-type"] == "application/json":
            return await self.json()
        messages = [event.json() async for event in self.events() if event.data]
        return messages[-1]

    async def close(self) -> None:
        """The client goes away."""
        self.gone.set()
        assert self.running is not None
        async with asyncio.timeout(SECONDS):
            await self.running


def _event(block: str) -> Event | str:
    event = Event()
    data: list[str] = []
    for line in block.split("\r\n"):
        name, _, value = line.partition(": ")
        if not name and not event.id:
            return value or line
        if name == "data":
            data.append(value)
        elif name == "id":
            event.id = value
    event.data = "\n".join(data)
    return event if data else block


async def request(
    app: ASGIApp,
    method: str,
    path: str = "/mcp",
    body: bytes = b"",
    headers: Mapping[str, str] | list[tuple[str, str]] = (),  # type: ignore[assignment]
    *,
    wait: bool = True,
) -> Reply:
    """Send a request, and wait for the response to begin unless that is not to be expected."""
    lines = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    reply, began = Reply(), asyncio.Event()
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await reply.gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {k.decode().lower(): v.decode() for k, v in message["headers"]}
            began.set()
        else:
            reply.chunks.put_nowait(message.get("body", b""))
            if not message.get("more_body", False):
                reply.chunks.put_nowait(None)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in lines],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }
    reply.running = asyncio.ensure_future(app(scope, receive, send))
    if not wait:
        return reply
    waiting = asyncio.ensure_future(began.wait())
    async with asyncio.timeout(SECONDS):
        await asyncio.wait({waiting, reply.running}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not began.is_set():
        reply.running.result()
    return reply


BOTH = "application/json, text/event-stream"


@dataclass
class Legacy:
    """A client of the handshake era; ``apps`` are replicas, used in turn."""

    apps: list[ASGIApp]
    version: str = "2025-11-25"
    session: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    wait: bool = True
    """Whether a request waits for its response to begin."""

    def __post_init__(self) -> None:
        self._turn = itertools.cycle(self.apps)

    def headers(self, **more: str) -> dict[str, str]:
        session = {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version} if self.session else {}
        return {"Accept": BOTH, "Content-Type": "application/json", "Host": "localhost:80", **session, **more}

    async def start(self) -> dict[str, Any]:
        """Initialize; the answer's result."""
        params = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        reply = await self.send("initialize", params)
        assert reply.status == 200, await reply.body()
        self.session = reply.headers["mcp-session-id"]
        result: dict[str, Any] = (await reply.json())["result"]
        self.version = result["protocolVersion"]
        return result

    async def post(self, message: Any, **headers: str) -> Reply:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await request(next(self._turn), "POST", body=body, headers=self.headers(**headers), wait=self.wait)

    async def send(self, method: str, params: Any = None, request_id: str | int | None = None, **headers: str) -> Reply:
        """A request, and the beginning of its response."""
        message = {"jsonrpc": "2.0", "id": request_id or next(_IDS), "method": method, "params": params or {}}
        return await self.post(message, **headers)

    async def call(self, method: str, params: Any = None, **headers: str) -> Any:
        """A request, and its whole answer."""
        return await (await self.send(method, params, **headers)).answer()

    async def result(self, method: str, params: Any = None) -> Any:
        answer = await self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None) -> Any:
        answer = await self.call(method, params)
        assert "error" in answer, answer
        return answer["error"]

    async def notify(self, method: str, params: Any) -> Reply:
        return await self.post({"jsonrpc": "2.0", "method": method, "params": params})

    async def listen(self, **headers: str) -> Reply:
        """The GET stream."""
        return await request(next(self._turn), "GET", headers=self.headers(**headers))


@dataclass
class Modern(Legacy):
    """A client of 2026-07-28."""

    version: str = "2026-07-28"
    extension: bool = True

    def headers(self, **more: str) -> dict[str, str]:
        own = {"Accept": BOTH, "Content-Type": "application/json", "MCP-Protocol-Version": self.version}
        return {**own, "Host": "localhost:80", **{k.replace("_", "-"): v for k, v in more.items()}}

    async def send(self, method: str, params: Any = None, request_id: str | int | None = None, **headers: str) -> Reply:
        params = dict(params or {})
        extensions: dict[str, Any] = {"extensions": {EXTENSION: {}}} if self.extension else {}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": self.version,
            "io.modelcontextprotocol/clientCapabilities": {**self.capabilities, **extensions},
            **params.get("_meta", {}),
        }
        name = params.get("name", params.get("taskId"))
        routing = {"Mcp_Method": method, **({"Mcp_Name": name} if isinstance(name, str) else {})}
        message = {"jsonrpc": "2.0", "id": request_id or next(_IDS), "method": method, "params": params}
        return await self.post(message, **{**routing, **headers})
