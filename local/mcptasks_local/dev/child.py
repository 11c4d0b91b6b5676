"""One child process that is started again when it dies."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, cast

STEADY = 10.0
"""Seconds after which a child counts as well, and its next death starts the delays anew."""
DELAYS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds to wait before each start after a death in a row; the last one stays."""
LINE_LIMIT = 1024 * 1024


class Child:
    """A Python module that runs as a child process, once ``go`` is set.

    Its output goes to the file ``log``, and line by line to ``on_line``.
    """

    def __init__(
        self,
        name: str,
        module: str,
        env: Mapping[str, str],
        log: Path,
        *,
        warm: str | None,
        go: asyncio.Event,
        on_line: Callable[[str, str], None],
        on_start: Callable[[str, int], None],
        on_death: Callable[[str, str, float], Awaitable[None]],
    ) -> None:
        self.name, self._env, self._log, self._go = name, env, log, go
        self._command = (sys.executable, "-m", "mcptasks_local.dev.lifeline", module, *((warm,) if warm else ()))
        self._on_line, self._on_start, self._on_death = on_line, on_start, on_death
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Keep it running until `stop`."""
        deaths = 0
        with self._log.open("ab", buffering=0) as log:
            while not self._stopping.is_set():
                began = time.monotonic()
                code = await self._once(log)
                if self._stopping.is_set():
                    return
                deaths = 1 if time.monotonic() - began > STEADY else deaths + 1
                delay = DELAYS[min(deaths, len(DELAYS)) - 1]
                await self._on_death(self.name, ending(code), delay)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), delay)

    async def _once(self, log: IO[bytes]) -> int:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self._env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # a terminal's Ctrl-C is for the dev server, which ends its children in order
            limit=LINE_LIMIT,
        )
        self._on_start(self.name, process.pid)
        if self._stopping.is_set():  # asked while it started
            process.terminate()
        output, word = cast(asyncio.StreamReader, process.stdout), cast(asyncio.StreamWriter, process.stdin)
        giving = asyncio.create_task(self._give(word))
        try:
            while line := await _line(output):
                log.write(line)
                self._on_line(self.name, line.decode(errors="replace").rstrip())
            return await process.wait()
        finally:
            giving.cancel()
            word.close()

    async def _give(self, word: asyncio.StreamWriter) -> None:
        await self._go.wait()
        with contextlib.suppress(OSError):  # it has died meanwhile
            word.write(b"\n")
            await word.drain()

    async def stop(self, grace: float) -> None:
        """End it: politely, and after ``grace`` seconds by force."""
        self._stopping.set()
        if (process := self._process) is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), grace)
            except TimeoutError:
                process.kill()
                await process.wait()

    def kill(self) -> None:
        """End it by force, at once."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.read(error.consumed)


def ending(code: int) -> str:
    """How a process ended, for people: ``exited with 3``, ``was killed by SIGKILL``."""
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
