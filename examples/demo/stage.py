"""What the demo stands on: a dev server as a user starts it, kubectl, and a voice."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


class StepFailed(Exception):
    """A step did not do what it says."""


def expect(condition: object, otherwise: str) -> None:
    """Fail the demo with ``otherwise`` unless ``condition`` holds."""
    if not condition:
        raise StepFailed(otherwise)


class Voice:
    """Tells what is being done and what came back."""

    def __init__(self) -> None:
        self._console = Console(soft_wrap=True, highlight=False)
        self._began = time.monotonic()
        self._steps = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def step(self, title: str) -> None:
        """Begin the next step."""
        self._steps += 1
        self._console.print(
            f"\n[bold cyan]{self._steps}[/] [bold]{escape(title)}[/]  [dim]{self.elapsed:.1f} s into the demo[/]"
        )

    def does(self, text: str) -> None:
        """What is being done."""
        self._console.print(f"  [dim]→[/] {escape(text)}")

    def came(self, text: str) -> None:
        """What came back, and is as it should be."""
        self._console.print(f"  [green]✓[/] {escape(text)}")

    def shows(self, command: str, output: str) -> None:
        """A command a person could type, and its output."""
        self._console.print(f"  [bold]$ {escape(command)}[/]")
        for line in output.rstrip().splitlines():
            self._console.print(f"    [dim]{escape(line)}[/]")

    def says(self, text: str) -> None:
        """Anything else."""
        self._console.print(text)

    def fails(self, text: str) -> None:
        """The end."""
        self._console.print(f"\n[bold red]✗ {escape(text)}[/]")


class DevServer:
    """``mcptasks dev`` in a folder of its own."""

    def __init__(self, process: asyncio.subprocess.Process, state: Path, url: str, lines: list[str]) -> None:
        self.process, self.state, self.url, self.lines = process, state, url, lines

    def pid(self, child: str) -> int:
        """The pid of ``service`` or ``operator``."""
        return int((self.state / f"{child}.pid").read_text())

    async def kill(self, child: str) -> int:
        """SIGKILL a child, and return its pid."""
        pid = self.pid(child)
        os.kill(pid, signal.SIGKILL)
        return pid

    async def said(self, words: str, seconds: float, *, after: int = 0) -> str:
        """Wait for a line of its output, from the line numbered ``after`` on."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (line := next((line for line in self.lines[after:] if words in line), None)) is not None:
                return line
            expect(self.process.returncode is None, f"mcptasks dev ended with {self.process.returncode}")
            await asyncio.sleep(0.02)
        raise StepFailed(f"mcptasks dev did not say {words!r} within {seconds:g} s")

    async def kubectl(self, *arguments: str, fine: bool = True) -> str:
        """The output of the real kubectl."""
        process = await asyncio.create_subprocess_exec(
            BIN / "kubectl",
            *arguments,
            env={**os.environ, "KUBECONFIG": str(self.state / "kubeconfig")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        expect(process.returncode == 0 or not fine, f"kubectl {' '.join(arguments)} failed: {output}")
        return output

    async def objects(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Objects of a kind, through kubectl."""
        text = await self.kubectl("get", kind, "-o", "json", *(("-l", selector) if selector else ()))
        items: list[dict[str, Any]] = json.loads(text)["items"]
        return items

    async def metrics(self) -> dict[str, float]:
        """The counters of service and operator, summed over labels."""
        totals: dict[str, float] = {}
        for child in ("service", "operator"):
            url = (self.state / f"{child}.metrics").read_text().strip()
            text = await asyncio.to_thread(_read, url)
            for name, value in re.findall(r"^(mcptasks_\w+_total)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
                totals[name] = totals.get(name, 0.0) + float(value)
        return totals

    async def end(self) -> float:
        """Ctrl-C; returns the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            code = await asyncio.wait_for(self.process.wait(), 10)
        except TimeoutError:
            raise StepFailed("mcptasks dev was still there 10 s after Ctrl-C") from None
        expect(code == 0, f"mcptasks dev exited with {code} after Ctrl-C")
        return time.monotonic() - began


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        text: str = answer.read().decode()
        return text


@asynccontextmanager
async def dev_server(*options: str) -> AsyncIterator[DevServer]:
    """Start one with a fresh state folder, and leave nothing behind."""
    state = Path(tempfile.mkdtemp(prefix="mcptasks-demo-"))
    process = await asyncio.create_subprocess_exec(
        BIN / "mcptasks",
        *("dev", "--state", str(state), "--port", "0", *options),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    lines: list[str] = []

    async def read() -> None:
        while process.stdout is not None and (line := await process.stdout.readline()):
            lines.append(line.decode().rstrip())

    reader = asyncio.create_task(read())
    server = DevServer(process, state, "", lines)
    try:
        address = re.search(r"http://\S+/mcp", await server.said("/mcp", 20))
        server.url = address[0] if address else ""
        yield server
    except BaseException:
        sys.stderr.write("\nThe last lines of mcptasks dev:\n" + "\n".join(lines[-25:]) + "\n")
        raise
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
        await reader
        shutil.rmtree(state, ignore_errors=True)
