"""The work queue: each key once, one worker a key, and patience that grows with each failure of it."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Generic, TypeVar

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 60.0
"""Seconds before a key that failed is tried again: doubled each time, with jitter."""

K = TypeVar("K")


class WorkQueue(Generic[K]):
    """Keys to look at. What is added twice is looked at once; what is added while a worker has it, again after."""

    def __init__(self, latency: Callable[[float], None] = lambda _seconds: None) -> None:
        self._latency = latency
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._since: dict[K, float] = {}
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._since)

    def add(self, key: K) -> None:
        """Look at ``key`` as soon as a worker is free."""
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        if key in self._busy:
            self._again.add(key)
        elif key not in self._since:
            self._since[key] = time.monotonic()
            self._ready.put_nowait(key)

    def add_after(self, key: K, delay: float) -> None:
        """Look at ``key`` in ``delay`` seconds, or earlier if it is added meanwhile; replaces an earlier such call."""
        if delay <= 0:
            self.add(key)
            return
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        if key not in self._since and key not in self._again:
            self._timers[key] = asyncio.get_running_loop().call_later(delay, self._due, key)

    def retry(self, key: K) -> float:
        """Look at ``key`` again after a pause that grows with its failures; the pause in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        longest = min(FIRST_PAUSE * 2.0 ** min(failures, 16), LONGEST_PAUSE)
        pause = longest * random.uniform(0.75, 1.0)  # noqa: S311 (jitter)
        self.add_after(key, pause)
        return pause

    def failures(self, key: K) -> int:
        """How often ``key`` has failed in a row."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """``key`` was worked on without fault."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; `done` must follow."""
        key = await self._ready.get()
        self._latency(time.monotonic() - self._since.pop(key))
        self._busy.add(key)
        return key

    def done(self, key: K) -> None:
        """The worker is through with ``key``."""
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Drop what is yet to come."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
