"""The dev server's own part: the control plane, the tools, the welcome and the log."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mcptasks_crds.kinds import TASK, TOOL
from mcptasks_crds.lifecycle import State
from mcptasks_local.dev.crew import Crew
from mcptasks_local.dev.feed import Feed, readiness
from mcptasks_local.dev.folder import DevError, StateFolder
from mcptasks_local.dev.options import Options
from mcptasks_local.dev.screen import Screen
from mcptasks_local.dev.tools import ToolDocument
from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import Objects
from mcptasks_local.plane import Plane, plane

TOOL_PATIENCE = 5.0
"""Seconds that the operator gets to look at the tools before the welcome is printed without its word."""
TASKS, TOOLS = f"{TASK.plural}.{TASK.group}", f"{TOOL.plural}.{TOOL.group}"


@dataclass(frozen=True)
class DevServer:
    """One run. ``began`` is when its start began, on the monotonic clock."""

    options: Options
    folder: StateFolder
    screen: Screen
    crew: Crew
    port: int
    api_port: int
    began: float

    async def serve(self, documents: Iterable[ToolDocument], stop: asyncio.Event) -> None:
        """Run until ``stop``.

        Raises:
            DevError: a tool is refused.
        """
        options = self.options
        async with plane(
            self.folder.path,
            port=self.api_port,
            namespace=options.namespace,
            max_pods=options.max_pods,
            end_pods=True,
        ) as control:
            apply(control.objects, documents)
            self.crew.go()
            stopped, telling = asyncio.create_task(stop.wait()), asyncio.create_task(self._tell(control))
            try:
                # A fault of ours ends the dev server: it must not go on half blind.
                needed = {stopped, telling, *self.crew.work}
                for task in (await asyncio.wait(needed, return_when=asyncio.FIRST_COMPLETED))[0]:
                    task.result()
                self.screen.event("ending; Ctrl-C again ends it at once", "dim")
            finally:
                stopped.cancel()
                telling.cancel()
                await self.crew.stop()

    async def _tell(self, control: Plane) -> None:
        """The welcome, then the log."""
        await self.crew.until_ready()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(looked_at(control.objects, self.options.namespace), TOOL_PATIENCE)
        events = control.objects.watch()
        feed = Feed()
        tasks, tools = (control.objects.list(control.objects.resource(name))[0] for name in (TASKS, TOOLS))
        for item in (*tasks, *tools):
            feed.seen(item)
        self._welcome(control.kubeconfig, tools, sum(not _ended(task) for task in tasks))
        while True:
            async for event in events:
                if event.resource in (TASKS, TOOLS) and (line := feed.told(event.type, event.object, time.time())):
                    self.screen.line(line)
            events = control.objects.watch()  # it lagged too far behind and was ended

    def _welcome(self, kubeconfig: Path, tools: list[Object], unfinished: int) -> None:
        say = self.screen.say
        say(f"\n[bold green]mcptasks dev[/] is ready in {time.monotonic() - self.began:.1f} s\n")
        say(f"  MCP endpoint    [bold]http://127.0.0.1:{self.port}/mcp[/]   (Streamable HTTP)")
        say(f"  state and logs  {self.folder.path}")
        if unfinished:
            say(f"  going on with   {unfinished} unfinished task{'s' if unfinished > 1 else ''}")
        for tool in tools:
            say(f"  tool            {tool['metadata']['name']}, {_word(tool)}")
        say("\nIn another terminal:\n")
        say(f"  [bold]export KUBECONFIG={kubeconfig}[/]")
        if not _on_path("kubectl"):
            say(f"  [bold]export PATH={Path(sys.executable).parent}:$PATH[/]   # kubectl lies there")
        say("  [bold]kubectl get mcptools,mcptasks[/]")
        if not tools:
            say("  [bold]kubectl apply -f my-tool.yaml[/]   # or: mcptasks dev --tools my-tool.yaml")
        say(f"\nCtrl-C ends it; {self.options.state} keeps its tasks, --reset forgets them. What happens to tasks:\n")


def apply(objects: Objects, documents: Iterable[ToolDocument]) -> None:
    """Create or update tools, as strictly as kubectl: a field that no MCPTool has is a fault.

    Raises:
        DevError: what the API server refused, with file and document.
    """
    faults: list[str] = []
    resource = objects.resource(TOOLS)
    there = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in objects.list(resource)[0]}
    for document in documents:
        meta = document.body["metadata"]
        try:
            if (old := there.get((meta["namespace"], document.name))) is None:
                objects.create(resource, meta["namespace"], document.body, strict=True)
            else:
                body = {**document.body, "metadata": {**meta, "resourceVersion": old["metadata"]["resourceVersion"]}}
                objects.replace(resource, meta["namespace"], document.name, body, strict=True)
        except ApiError as error:
            faults.append(f"{document.source}: {error.message}")
    if faults:
        raise DevError("\n".join(faults))


async def looked_at(objects: Objects, namespace: str) -> None:
    """Wait until the operator has given its word on every tool."""
    resource = objects.resource(TOOLS)
    events = objects.watch(resource, namespace)
    while any(readiness(tool) is None for tool in objects.list(resource, namespace)[0]):
        await anext(events)


def _ended(task: Object) -> bool:
    return State((task.get("status") or {}).get("state", State.SUBMITTED)).terminal


def _word(tool: Object) -> str:
    if (ready := readiness(tool)) is None:
        return "[yellow]not looked at yet[/]"
    ok, reason, message = ready
    return "[green]ready[/]" if ok else f"[red]not ready: {reason}: {message}[/]"


def _on_path(program: str) -> bool:
    return any(os.access(Path(folder) / program, os.X_OK) for folder in os.get_exec_path())
