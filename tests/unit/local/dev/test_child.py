import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcptasks_local.dev import child as child_module
from mcptasks_local.dev.child import Child, ending


class Watcher:
    """A child and what became of it."""

    def __init__(self, tmp_path: Path, source: str) -> None:
        (tmp_path / "subject.py").write_text(source)
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.pids: list[int] = []
        self.began = asyncio.Event()
        self.deaths: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self.log = tmp_path / "subject.log"
        self.go = asyncio.Event()
        self.go.set()
        self.child = Child(
            "subject",
            "subject",
            {"PYTHONPATH": str(tmp_path)},
            self.log,
            warm=None,
            go=self.go,
            on_line=lambda _, line: self.lines.put_nowait(line),
            on_start=self._began,
            on_death=self._died,
        )

    def _began(self, name: str, pid: int) -> None:
        self.pids.append(pid)
        self.began.set()

    async def _died(self, name: str, how: str, delay: float) -> None:
        await self.deaths.put((how, delay))


WAITS = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nprint('up')\nsignal.pause()\n"


async def test_a_child_that_dies_is_started_again_after_growing_delays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "DELAYS", (0.0, 0.01, 0.02))
    watcher = Watcher(tmp_path, "import sys\nprint('hello')\nsys.exit(3)")
    run = asyncio.create_task(watcher.child.run())
    deaths = [await asyncio.wait_for(watcher.deaths.get(), 20) for _ in range(4)]
    assert deaths == [("exited with 3", 0.0), ("exited with 3", 0.01), ("exited with 3", 0.02), ("exited with 3", 0.02)]
    await watcher.child.stop(5)
    await asyncio.wait_for(run, 10)
    assert len(set(watcher.pids)) == len(watcher.pids) >= 4
    assert watcher.log.read_text().startswith("hello\nhello\n")


async def test_a_child_that_ran_well_for_a_while_starts_the_delays_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "STEADY", 0.0)
    monkeypatch.setattr(child_module, "DELAYS", (0.0, 60.0))
    watcher = Watcher(tmp_path, "")
    run = asyncio.create_task(watcher.child.run())
    for _ in range(3):
        assert await asyncio.wait_for(watcher.deaths.get(), 20) == ("exited with 0", 0.0)
    await watcher.child.stop(5)
    await asyncio.wait_for(run, 10)


async def test_stop_is_polite_and_final(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, WAITS)
    run = asyncio.create_task(watcher.child.run())
    assert await asyncio.wait_for(watcher.lines.get(), 20) == "up"
    await watcher.child.stop(10)
    await asyncio.wait_for(run, 10)
    assert watcher.deaths.empty()
    assert len(watcher.pids) == 1


async def test_what_does_not_stop_is_killed(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up')\n"
                                "while True: signal.pause()")  # fmt: skip
    run = asyncio.create_task(watcher.child.run())
    assert await asyncio.wait_for(watcher.lines.get(), 20) == "up"
    await watcher.child.stop(0.05)
    await asyncio.wait_for(run, 10)


async def test_kill_is_noticed_as_a_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "DELAYS", (60.0,))
    watcher = Watcher(tmp_path, WAITS)
    watcher.child.kill()  # not started yet: nothing to do
    run = asyncio.create_task(watcher.child.run())
    await asyncio.wait_for(watcher.lines.get(), 20)
    watcher.child.kill()
    assert await asyncio.wait_for(watcher.deaths.get(), 20) == ("was killed by SIGKILL", 60.0)
    await watcher.child.stop(1)
    await asyncio.wait_for(run, 10)


async def test_a_line_without_end_is_cut_and_not_fatal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "LINE_LIMIT", 1000)
    monkeypatch.setattr(child_module, "DELAYS", (60.0,))
    watcher = Watcher(tmp_path, "print('x' * 10_000)\nprint('after', end='')")
    run = asyncio.create_task(watcher.child.run())
    await asyncio.wait_for(watcher.deaths.get(), 20)
    lines = [watcher.lines.get_nowait() for _ in range(watcher.lines.qsize())]
    assert "".join(lines) == "x" * 10_000 + "after"
    assert len(lines) > 2
    await watcher.child.stop(1)
    await run


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "subject.py").write_text("import os, signal\nprint(os.getpid(), flush=True)\nsignal.pause()")
    program = (
        "import subprocess, sys, signal\n"
        "p = subprocess.Popen([sys.executable, '-m', 'mcptasks_local.dev.lifeline', 'subject', 'json'],"
        " stdin=subprocess.PIPE, stdout=1)\n"
        "p.stdin.write(b'x')\np.stdin.flush()\nsignal.pause()"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=env) as parent:
        try:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            os.kill(child, 0)
        finally:
            parent.kill()
        assert parent.stdout.read() == b""  # the child held the other end, and has let go of it


async def test_a_child_without_the_word_does_nothing_and_ends_with_its_parent(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, "print('up')")
    watcher.go.clear()
    run = asyncio.create_task(watcher.child.run())
    await asyncio.wait_for(watcher.began.wait(), 10)
    assert watcher.lines.empty()
    await watcher.child.stop(10)
    await asyncio.wait_for(run, 10)
    assert watcher.lines.empty()


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exited with 0"), (-9, "was killed by SIGKILL"), (-999, "was killed by signal 999")]
)
def test_endings(code: int, text: str) -> None:
    assert ending(code) == text
