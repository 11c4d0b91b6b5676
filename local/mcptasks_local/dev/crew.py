"""Operator and service, as children of a dev server."""

import asyncio
import time
from collections.abc import Iterable

from mcptasks_local.dev.child import Child
from mcptasks_local.dev.feed import duration
from mcptasks_local.dev.folder import StateFolder
from mcptasks_local.dev.probe import until_ready
from mcptasks_local.dev.programs import Program
from mcptasks_local.dev.screen import Screen

PATIENCE = 30.0
"""Seconds after which it is said that a child is not ready yet."""
GRACE = 4.0
"""Seconds that they get to end."""


class Crew:
    """Starts them, says when one has died and when it is back, and ends them."""

    def __init__(self, programs: Iterable[Program], folder: StateFolder, screen: Screen) -> None:
        self._folder, self._screen = folder, screen
        self._programs = {program.name: program for program in programs}
        self._go = asyncio.Event()
        self._spawned = asyncio.Event()
        self._pids: dict[str, int] = {}
        self._children = [
            Child(
                program.name,
                program.module,
                program.env,
                folder.log(program.name),
                warm=program.warm,
                go=self._go,
                on_line=screen.child,
                on_start=self._started,
                on_death=self._died,
            )
            for program in self._programs.values()
        ]
        self._returns: set[asyncio.Task[None]] = set()
        self.work: list[asyncio.Task[None]] = []
        """What keeps them running; one that ends before `stop` is a fault."""

    async def start(self) -> None:
        """Start the processes, which warm up and wait for `go`."""
        for program in self._programs.values():
            self._folder.note(f"{program.name}.metrics", program.metrics_url)
        self.work = [asyncio.create_task(child.run()) for child in self._children]
        await self._spawned.wait()

    def go(self) -> None:
        """Let them work: the control plane is there."""
        self._go.set()

    async def until_ready(self) -> None:
        """Wait for all of them; one that takes long is told of."""
        for program in self._programs.values():
            ready = asyncio.create_task(until_ready(program.port))
            try:
                if not (await asyncio.wait({ready}, timeout=PATIENCE))[0]:
                    log = self._folder.log(program.name)
                    self._screen.event(f"the {program.name} is not ready after {PATIENCE:g} s; its log: {log}", "red")
                await ready
            finally:
                ready.cancel()

    async def stop(self) -> None:
        """End them in good order."""
        for task in self._returns:
            task.cancel()
        await asyncio.gather(*(child.stop(GRACE) for child in self._children))

    def kill(self) -> None:
        """End them at once."""
        for child in self._children:
            child.kill()

    def _started(self, name: str, pid: int) -> None:
        self._folder.note(f"{name}.pid", str(pid))
        self._pids[name] = pid
        if len(self._pids) == len(self._programs):
            self._spawned.set()

    async def _died(self, name: str, how: str, delay: float) -> None:
        again = f"starting it again in {delay:g} s" if delay else "starting it again"
        self._screen.event(f"the {name} {how}; {again} (its log: {self._folder.log(name)})")
        if self._go.is_set():
            task = asyncio.create_task(self._back(name))
            self._returns.add(task)
            task.add_done_callback(self._returns.discard)

    async def _back(self, name: str) -> None:
        began = time.monotonic()
        await until_ready(self._programs[name].port)
        self._screen.event(f"the {name} is back after {duration(time.monotonic() - began)}", "green")
