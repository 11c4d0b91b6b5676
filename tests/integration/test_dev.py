"""``mcptasks dev`` as a user has it: a process, its output, its exit code."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BIN = Path(sys.executable).parent
PATIENCE = 40.0

SLEEPER = """\
apiVersion: mcptasks.dev/v1alpha1
kind: MCPTool
metadata: {name: sleeper}
spec:
  inputSchema: {type: object}
  job:
    template:
      spec:
        containers:
        - {name: tool, image: busybox, command: [sh, -c, 'echo $$$$ > pid; sleep "$ARG_seconds"; echo slept']}
"""


class Dev:
    """One ``mcptasks dev``."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.state = folder, folder / "state"
        self.process = subprocess.Popen(
            [BIN / "mcptasks", "dev", "--state", self.state, *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            with self._news:
                self.lines.append(line.rstrip())
                self._news.notify_all()

    def says(self, words: str) -> str:
        """Wait for a line with these words."""

        def said() -> str | None:
            return next((line for line in self.lines if re.search(words, line)), None)

        with self._news:
            self._news.wait_for(lambda: said() is not None, PATIENCE)
            line = said()
        assert line is not None, f"{words!r} was not said:\n" + "\n".join(self.lines)
        return line

    def pid(self, child: str) -> int:
        return int((self.state / f"{child}.pid").read_text())

    def kubectl(self, *arguments: str) -> bytes:
        command = [str(BIN / "kubectl"), "--kubeconfig", str(self.state / "kubeconfig"), *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

    def get(self, what: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", what, "-o", "json"))["items"]
        return items

    def call(self, seconds: str) -> None:
        """Make a task, as a client that does not wait for it."""
        address = re.search(r"http://\S+/mcp", self.says("MCP endpoint"))
        assert address is not None
        extension: dict[str, Any] = {
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        }
        params = {
            "name": "sleeper",
            "arguments": {"seconds": seconds},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", **extension},
        }
        request = urllib.request.Request(
            address[0],
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode(),
            {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "sleeper",
            },
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert b'"resultType":"task"' in answer.read().replace(b" ", b"")

    def close(self) -> None:
        if self.process.poll() is None:
            self.end()
        self._reader.join(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


Start = Callable[..., Dev]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts dev servers in one folder and leaves none behind."""
    (tmp_path / "sleeper.yaml").write_text(SLEEPER)
    started: list[Dev] = []

    def one(*options: str) -> Dev:
        started.append(Dev(tmp_path, "--port", "0", *options))
        return started[-1]

    yield one
    for dev in started:
        dev.close()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # A zombie still has its pid; only its parent can let go of it.
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        threading.Event().wait(0.02)
    return False


def test_it_is_ready_within_seconds_and_ends_at_once_on_ctrl_c(start: Start) -> None:
    dev = start("--tools", "sleeper.yaml")
    dev.says(r"mcptasks dev is ready in \d+\.\d s")
    dev.says("tool +sleeper, ready")
    assert dev.says("export KUBECONFIG=").endswith(str(dev.state / "kubeconfig"))
    children = [dev.pid("service"), dev.pid("operator")]
    dev.call("60")
    dev.says("sleeper +t-[0-9a-f]{8} +working")
    job = int(wait_for(dev.folder / "pid"))
    began = time.monotonic()
    assert dev.end() == 0
    assert time.monotonic() - began < 8
    assert all(gone(pid) for pid in [*children, job])


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return text
        threading.Event().wait(0.02)
    raise AssertionError(f"{path.name} did not come")


def test_it_survives_a_kill_and_goes_on_with_its_tasks(start: Start) -> None:
    first = start("--tools", "sleeper.yaml")
    first.says("is ready")
    first.call("4")
    first.says("sleeper +t-[0-9a-f]{8} +working")
    [task] = first.get("mcptasks")
    children = [first.pid("service"), first.pid("operator")]
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    assert all(gone(pid) for pid in children)
    second = start()
    second.says("is ready")
    second.kubectl("wait", f"mcptask/{task['metadata']['name']}", "--for=jsonpath={.status.state}=completed")
    [after] = second.get("mcptasks")
    assert after["metadata"]["uid"] == task["metadata"]["uid"]
    assert (after["status"]["state"], after["status"]["attempt"]) == ("completed", 1)
    assert (first.state / "kubeconfig").read_text() == (second.state / "kubeconfig").read_text()


def test_a_child_that_dies_is_back_soon(start: Start) -> None:
    dev = start()
    dev.says("is ready")
    before = dev.pid("service")
    os.kill(before, signal.SIGKILL)
    dev.says("the service was killed by SIGKILL; starting it again")
    dev.says("the service is back after")
    assert dev.pid("service") != before
    assert dev.end(signal.SIGTERM) == 0


def test_a_second_one_on_the_same_state_is_refused(start: Start) -> None:
    first = start()
    first.says("is ready")
    second = start()
    assert second.process.wait(PATIENCE) == 1
    second.says(rf"in use by another mcptasks dev \(pid {first.process.pid}\)")


def test_a_port_in_use_is_named(start: Start) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        dev = start("--port", port)
        assert dev.process.wait(PATIENCE) == 1
        dev.says(f"port {port} is in use by another program; name another with --port")


def test_a_tool_that_the_api_refuses_stops_the_start_with_its_place(start: Start, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(SLEEPER.replace("  inputSchema", "  inputSchemas"))
    dev = start("--tools", "bad.yaml")
    assert dev.process.wait(PATIENCE) == 1
    dev.says(r"bad.yaml: .*inputSchemas")


def test_reset_forgets_tasks_and_ends_what_a_killed_one_left_running(start: Start) -> None:
    first = start("--tools", "sleeper.yaml")
    first.says("is ready")
    first.call("300")
    job = int(wait_for(first.folder / "pid"))
    first.end(signal.SIGKILL)
    os.kill(job, 0)
    second = start("--reset")
    second.says("is ready")
    assert second.get("mcptasks") == second.get("mcptools") == []
    assert gone(job)
