"""The story: one tool in three dialects and as a plain call, two processes killed in the middle, nothing lost."""

import asyncio
import contextlib
import sys
import time
from typing import Any

from examples.demo.dialects import CoreTask, ExtensionTask, Sep1686Task, Tasks, session_of_2025
from examples.demo.stage import DevServer, StepFailed, Voice, dev_server, expect
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError

TOOL = "run-tests"
LONG_PATH = "tests/unit/service"
SHORT_PATH = "tests/unit/crds"
TOOLS = {"countdown", "disk-usage", "echo", "run-tests"}
PATIENCE = 120.0
"""Seconds that one task may take."""

Json = dict[str, Any]


async def main() -> int:
    """Tell the story; the exit code."""
    voice = Voice()
    voice.says("[bold]mcptasks[/]: every MCP task a Kubernetes object. This is the whole of it, on real input.")
    try:
        async with asyncio.timeout(5 * 60), dev_server("--tools", "examples/tools") as dev:
            await start(voice, dev)
            await sep_1686(voice, dev)
            before = await dev.metrics()
            await core_2025(voice, dev)
            await extension_2026(voice, dev)
            await plain_call(voice, dev)
            await expiry(voice, dev)
            await counters(voice, dev, before)
            await end(voice, dev)
    except (StepFailed, MCPError, TimeoutError, ExceptionGroup) as error:
        for fault in flat(error):
            voice.fails(str(fault) or type(fault).__name__)
        return 1
    farewell(voice)
    return 0


async def start(voice: Voice, dev: DevServer) -> None:
    voice.step("A control plane, the operator and the service, with one command")
    voice.does("mcptasks dev --tools examples/tools")
    ready = await dev.said("ready in", 30)
    voice.came(f"{ready.strip()}; MCP clients go to {dev.url}")
    voice.shows("kubectl get mcptools", await dev.kubectl("get", "mcptools"))
    names = {tool["metadata"]["name"] for tool in await dev.objects("mcptools") if is_ready(tool)}
    expect(names == TOOLS, f"these tools should be Ready: {sorted(TOOLS)}; these are: {sorted(names)}")


def is_ready(tool: Json) -> bool:
    conditions = tool.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def sep_1686(voice: Voice, dev: DevServer) -> None:
    voice.step("SEP-1686: this repository's unit tests as a task whose id the client chose")
    notified: asyncio.Queue[Json] = asyncio.Queue()

    async with session_of_2025(dev.url, notified.put) as session:
        task = Sep1686Task(session, TOOL, {"path": LONG_PATH}, keep_alive=600_000)
        voice.does(f"tools/call {TOOL} with _meta modelcontextprotocol.io/task, taskId {task.id}")
        call = asyncio.create_task(outcome(task))
        voice.came(f"notifications/tasks/created: {(await asyncio.wait_for(notified.get(), 10))['_meta']}")
        state = await until(task, lambda state: bool(state.get("statusMessage") or state["status"] == "working"))
        voice.came(f"tasks/get: {words(state)}")
        try:
            await task.result()
        except MCPError as error:
            voice.came(f"tasks/result is refused meanwhile: {error.error.code} {error.error.message}")
        else:
            raise StepFailed("tasks/result should be refused while the task runs")
        uid = await one_running(voice, dev, task.id)
        await kill_both(voice, dev)
        await finish_sep_1686(voice, dev, task, uid)
        with contextlib.suppress(asyncio.CancelledError):
            call.cancel()
            await call


async def outcome(task: Sep1686Task) -> None:
    """The original request. Its stream may go down with the service; that is what the task is for."""
    with contextlib.suppress(MCPError):
        await task.call()


async def one_running(voice: Voice, dev: DevServer, task_id: str) -> str:
    """Show the task as kubectl sees it; its uid."""
    await progressed(dev, task_id)
    voice.shows("kubectl get mcptasks", await dev.kubectl("get", "mcptasks"))
    found = [task for task in await dev.objects("mcptasks") if task["spec"]["taskId"] == task_id]
    expect(len(found) == 1, f"kubectl should know one task with the id {task_id}, not {len(found)}")
    expect(found[0]["status"]["state"] == "working", f"the task should be working: {found[0]['status']}")
    uid: str = found[0]["metadata"]["uid"]
    return uid


async def progressed(dev: DevServer, task_id: str) -> None:
    async with asyncio.timeout(20):
        while True:
            found = [task for task in await dev.objects("mcptasks") if task["spec"]["taskId"] == task_id]
            if found and found[0].get("status", {}).get("progress"):
                return
            await asyncio.sleep(0.1)


async def kill_both(voice: Voice, dev: DevServer) -> None:
    voice.step("Kill the service and the operator while it runs")
    seen, began = len(dev.lines), time.monotonic()
    for child in ("service", "operator"):
        voice.does(f"kill -9 {await dev.kill(child)}   # the {child}")
    for child in ("service", "operator"):
        await dev.said(f"{child} is back", 30, after=seen)
    voice.came(f"mcptasks dev started them again; both are back after {time.monotonic() - began:.1f} s")


async def finish_sep_1686(voice: Voice, dev: DevServer, task: Sep1686Task, uid: str) -> None:
    state = await until(task, lambda state: state["status"] not in ("submitted", "working"))
    expect(state["status"] == "completed", f"the task should be completed: {state}")
    voice.came(f"tasks/get, same session, same id: {words(state)}")
    result = await task.result()
    voice.came(f"tasks/result: {verdict(result)}")
    [stored] = [item for item in await dev.objects("mcptasks") if item["spec"]["taskId"] == task.id]
    attempt, jobs = stored["status"]["attempt"], await dev.objects("jobs", f"mcptasks.dev/task-uid={uid}")
    expect(stored["metadata"]["uid"] == uid, "the task should be the very same object")
    expect(attempt == 1 and len(jobs) <= 1, f"it should have run once: attempt {attempt}, {len(jobs)} Jobs")
    voice.came("it is the same object, attempt 1, with one Job: nothing ran twice, nothing was lost")


async def until(task: Sep1686Task | CoreTask | ExtensionTask, reached: Any) -> Json:
    """Poll as a client does, also over the moments in which the service is away."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            state = await task.get()
        except MCPError as error:
            if "not found" in error.error.message.lower():
                raise
        else:
            if reached(state):
                return state
        await asyncio.sleep(0.25)
    raise StepFailed(f"task {task.id} did not get there within {PATIENCE:g} s")


async def core_2025(voice: Voice, dev: DevServer) -> None:
    voice.step("2025-11-25: the same tool as a task of the core specification")
    async with session_of_2025(dev.url) as session:
        voice.does(f"tools/call {TOOL} with task {{ttl: 600000}}")
        task = await CoreTask.start(session, TOOL, {"path": SHORT_PATH}, ttl=600_000)
        voice.came(f"at once: {words(task.created)}, taskId {task.id}, ttl {task.created['ttl']}")
        await show_polls(voice, task)
        voice.came(f"tasks/result: {verdict(await task.result())}")


async def extension_2026(voice: Voice, dev: DevServer) -> None:
    voice.step("2026-07-28: the same tool, stateless, with the extension io.modelcontextprotocol/tasks")
    async with Client(dev.url, mode="2026-07-28", extensions=[Tasks()]) as client:
        voice.does(f"tools/call {TOOL}")
        task = await ExtensionTask.start(client, TOOL, {"path": SHORT_PATH})
        expect(task.handle.status == "working", f"the handle should say working: {task.handle}")
        voice.came(f"resultType task, taskId {task.id}")
        state = await show_polls(voice, task)
        expect("result" in state, f"tasks/get should carry the result of a completed task: {state}")
        voice.came(f"the result came with the last tasks/get: {verdict(state['result'])}")


async def show_polls(voice: Voice, task: CoreTask | ExtensionTask) -> Json:
    """Poll to the end, and tell what is new."""
    last = ""

    def news(state: Json) -> bool:
        nonlocal last
        if (now := words(state)) != last:
            voice.came(f"tasks/get: {now}")
            last = now
        return bool(state["status"] != "working")

    state = await until(task, news)
    expect(state["status"] == "completed", f"the task should be completed: {state}")
    return state


async def plain_call(voice: Voice, dev: DevServer) -> None:
    voice.step("A plain call: for a client that knows nothing of tasks")
    steps: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        voice.came(f"progress: {progress:g}{f' of {total:g}' if total else ''} {message or ''}")

    async with session_of_2025(dev.url) as session:
        voice.does(f"tools/call {TOOL}, and wait")
        result = await session.call_tool(TOOL, {"path": SHORT_PATH}, progress_callback=on_progress)
        expect(steps, "progress should have come while the call ran")
        voice.came(f"the result: {verdict(result.model_dump(by_alias=True, mode='json', exclude_none=True))}")


async def expiry(voice: Voice, dev: DevServer) -> None:
    voice.step("Expiry: a task that asked to be kept for one second after its end")
    async with session_of_2025(dev.url) as session:
        task = Sep1686Task(session, "echo", {"text": "gone in a second"}, keep_alive=1000)
        voice.does("tools/call echo with keepAlive 1000")
        result = await task.call()
        voice.came(f"the result: {verdict(result.model_dump(by_alias=True, mode='json', exclude_none=True))}")
        [stored] = [item for item in await dev.objects("mcptasks") if item["spec"]["taskId"] == task.id]
        name, uid = stored["metadata"]["name"], stored["metadata"]["uid"]
        await dev.kubectl("wait", "--for=delete", f"mcptask/{name}", "--timeout=20s")
        voice.shows(f"kubectl get mcptask {name}", await dev.kubectl("get", "mcptask", name, fine=False))
        await nothing_left(dev, name, uid)
        voice.came("the task is gone, and so are its result and its Job")
        await unknown(session, task)


async def nothing_left(dev: DevServer, name: str, uid: str) -> None:
    """What a task owns is collected soon after it."""
    left: list[str] = []
    for _ in range(50):
        owned = [(kind, item) for kind in ("mcptaskresults", "jobs") for item in await dev.objects(kind)]
        left = [
            f"{kind}/{item['metadata']['name']}"
            for kind, item in owned
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences", []))
        ]
        if not left:
            return
        await asyncio.sleep(0.1)
    raise StepFailed(f"task {name} has gone, but this is left of it: {', '.join(left)}")


async def unknown(session: ClientSession, task: Sep1686Task) -> None:
    try:
        state = await task.get()
    except MCPError:
        return
    raise StepFailed(f"tasks/get should not find an expired task, and says {state}")


async def counters(voice: Voice, dev: DevServer, before: dict[str, float]) -> None:
    voice.step("The metrics that moved since the restart")
    after = await dev.metrics()
    moved = {name: after[name] - before.get(name, 0.0) for name in sorted(after) if after[name] != before.get(name, 0)}
    for name, change in moved.items():
        voice.came(f"{name} +{change:g}")
    for part in ("mcptasks_service_", "mcptasks_operator_"):
        expect(any(name.startswith(part) for name in moved), f"no counter {part}… has moved")
    created = moved.get("mcptasks_service_tasks_created_total", 0)
    expect(created == 4, f"four tasks were created since the restart, and the counter says {created:g}")


async def end(voice: Voice, dev: DevServer) -> None:
    voice.step("Ctrl-C")
    voice.came(f"mcptasks dev, its children and their Jobs ended after {await dev.end():.1f} s, exit code 0")


def flat(error: Exception) -> list[Exception]:
    """What went wrong, without the groups that the SDK's tasks wrap it in."""
    return [leaf for part in error.exceptions for leaf in flat(part)] if isinstance(error, ExceptionGroup) else [error]


def words(state: Json) -> str:
    return f"{state['status']} {state.get('statusMessage') or ''}".strip()


def verdict(result: Json) -> str:
    """The result in one line; fails the demo if it is an error."""
    text = " ".join(block.get("text", "") for block in result["content"]).strip()
    expect(not result.get("isError"), f"the tool failed: {text}")
    return text


def farewell(voice: Voice) -> None:
    voice.says(f"""
[bold green]Done in {voice.elapsed:.0f} s: every step did what it says.[/]

Now you:
  .venv/bin/mcptasks dev --tools examples/tools    [dim]# and keep it running; it prints how to go on[/]
  examples/tools/*.yaml                            [dim]# tools to copy[/]
  examples/demo/dialects.py                        [dim]# the client's side, in all three dialects[/]""")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
