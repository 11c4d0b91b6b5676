"""What one task costs on the embedded control plane: ``python -m tests.bench.spine``.

Starts ``mcptasks dev`` as a user would, with a tool that does nothing, and prints times as ratios to a bare request to
the API server in the same run, and the API requests that tasks and polls cost, counted at the control plane.
"""

import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from mcptasks_crds.api import Api
from mcptasks_crds.kinds import JOB, TASK
from mcptasks_crds.names import task_name

TASKS, POLLS = 30, 500
TOOL = {
    "apiVersion": "mcptasks.dev/v1alpha1",
    "kind": "MCPTool",
    "metadata": {"name": "no-op"},
    "spec": {
        "job": {"template": {"spec": {"containers": [{"name": "tool", "image": "busybox", "command": ["true"]}]}}}
    },
}
EXTENSION: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Client:
    """The newest dialect needs no more than a POST."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url

    async def ask(self, method: str, name: str, params: dict[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
        version = "2026-07-28"
        meta = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": version,
            "Mcp-Method": method,
            "Mcp-Name": name,
        }
        async with self._http.post(self._url, json=body, headers=headers) as response:
            answer: dict[str, Any] = await response.json()
        if "result" not in answer:
            sys.exit(f"{method} was refused: {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    async def create(self) -> str:
        """Make a task; the answer comes when it is durable."""
        params = {"name": "no-op", "arguments": {}}
        return str((await self.ask("tools/call", "no-op", params, EXTENSION))["taskId"])

    async def call(self) -> None:
        """A plain call: from the request to the result."""
        await self.ask("tools/call", "no-op", {"name": "no-op", "arguments": {}}, {})

    async def poll(self, task_id: str) -> None:
        """Ask for the state."""
        await self.ask("tasks/get", task_id, {"taskId": task_id}, EXTENSION)


async def median(times: int, step: Callable[[], Awaitable[Any]], quiet: Callable[[], Awaitable[None]]) -> float:
    """The median of the seconds that a step takes; ``quiet`` waits before each until nothing else is under way."""
    took = []
    for _ in range(times):
        await quiet()
        began = time.perf_counter()
        await step()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def requests(kubeconfig: Path) -> Counter[str]:
    """API requests so far, by user agent, verb and resource."""
    kubectl = Path(sys.executable).parent / "kubectl"
    text = subprocess.run(
        [kubectl, "--kubeconfig", kubeconfig, "get", "--raw", "/metrics"], check=True, capture_output=True, text=True
    ).stdout
    out: Counter[str] = Counter()
    for labels, value in re.findall(r"^mcptasks_api_requests_total\{(.*)\} (\d+)", text, re.MULTILINE):
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        what = "/".join(part for part in (named["resource"], named["subresource"]) if part)
        out[f"{named['user_agent']} {named['verb']} {what}"] += int(value)
    return out


async def settled(api: Api) -> None:
    """Wait until every task has ended and no Job is left: then all that tasks cost has been paid."""
    while True:
        tasks = (await api.list(TASK, "default"))["items"]
        jobs = (await api.list(JOB, "default"))["items"]
        if not jobs and all(task.get("status", {}).get("finishedAt") for task in tasks):
            return
        await asyncio.sleep(0.1)


async def measure(url: str, kubeconfig: Path) -> None:
    """Run it all and print it."""
    async with aiohttp.ClientSession() as http, await Api.connect(str(kubeconfig), user_agent="bench") as api:
        client = Client(http, url)
        await client.call()

        numbers = iter(range(10_000))

        async def bare() -> None:
            task_id = f"bare-{next(numbers)}"
            spec = {"taskId": task_id, "request": {"name": "absent"}, "cancel": {}}
            await api.create(TASK, "default", {"metadata": {"name": task_name("", task_id)}, "spec": spec})

        async def quiet() -> None:
            await settled(api)

        async def at_once() -> None:
            """Polls leave nothing under way."""

        post = await median(TASKS, bare, quiet)
        await settled(api)
        before = requests(kubeconfig)
        create = await median(TASKS, client.create, quiet)
        await settled(api)
        after = requests(kubeconfig)
        print(f"bare POST to the API server      {post * 1000:7.1f} ms  (the baseline)")
        print(f"create, until the answer         {create * 1000:7.1f} ms  = {create / post:.1f} × the baseline")
        called = await median(TASKS, client.call, quiet)
        print(f"create → result of a no-op       {called * 1000:7.1f} ms  = {called / post:.1f} × the baseline")
        print(f"API requests for {TASKS} tasks, each:")
        for name, count in sorted((after - before).items()):
            if name.startswith("mcptasks-"):
                print(f"  {count / TASKS:5.2f}  {name}")
        await settled(api)
        task_id = await client.create()
        await settled(api)
        await client.poll(task_id)
        before = requests(kubeconfig)
        polled = await median(POLLS, lambda: client.poll(task_id), at_once)
        cost = sum(n for name, n in (requests(kubeconfig) - before).items() if name.startswith("mcptasks-service"))
        print(f"tasks/get                        {polled * 1000:7.1f} ms; {cost} API requests for {POLLS} polls")


def main() -> int:
    """Start everything, measure, end everything."""
    with tempfile.TemporaryDirectory() as folder:
        tool = Path(folder) / "no-op.yaml"
        tool.write_text(yaml.safe_dump(TOOL))
        state = Path(folder) / "state"
        program = str(Path(sys.executable).parent / "mcptasks")
        command = [program, "dev", "--port", "0", "--tools", str(tool), "--state", str(state)]
        dev = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
        try:
            said = ""
            for line in dev.stdout or ():
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+/mcp", line):
                    break
            else:
                sys.stderr.write(said)
                return 1
            asyncio.run(measure(found[0], state / "kubeconfig"))
        finally:
            dev.send_signal(signal.SIGINT)
            dev.communicate(timeout=20)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
