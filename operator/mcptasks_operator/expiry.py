"""Deletes tasks when their time is over: one heap, one loop.

The heap holds the past as well: an entry counts only if the store still knows that life of the task with that time.
What a crash costs: nothing, the next list fills the heap again, with all that ran out meanwhile at its top.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, Conflict, NotFound
from mcptasks_crds.kinds import TASK
from mcptasks_crds.record import TaskRecord, record
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store

logger = logging.getLogger(__name__)

PARALLEL = 16
"""Deletions in flight at most."""
SPARE = 1024
"""Entries of the past that a follower's heap may hold beside as many as there are tasks."""
PAUSE = 2.0
"""Seconds before a deletion that failed is tried again."""


class Expiry:
    """``rate`` is deletions a second at most; ``clock`` is epoch seconds."""

    def __init__(self, api: Api, store: Store, metrics: Metrics, clock: Callable[[], float], rate: float) -> None:
        self._api, self._store, self._metrics, self._clock = api, store, metrics, clock
        self._gap = 1 / rate
        self._heap: list[tuple[float, Key, str]] = []
        self._wake = asyncio.Event()
        self._room = asyncio.Semaphore(PARALLEL)
        self._taken: dict[str, float] = {}
        self._leads = False
        metrics.expiry_late.set_function(lambda: self.late)

    @property
    def late(self) -> float:
        """Seconds for which the longest expired task waits for its deletion; 0 where nothing is deleted."""
        if not self._leads:
            return 0.0
        waits = list(self._taken.values())
        if self._heap:
            at, key, uid = self._heap[0]
            task = self._store.task(key)
            if task is not None and task.uid == uid and (due := _due_at(task)) is not None:
                waits.append(max(at, due))
        return max(self._clock() - min(waits), 0.0) if waits else 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, task: TaskRecord) -> None:
        """Take note of when a task that has ended expires."""
        if (at := _due_at(task)) is not None:
            self._push(at, task)

    async def run(self) -> None:
        """Delete what is due, until cancelled."""
        self._leads = True
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    if (task := self._due()) is None:
                        await self._sleep()
                        continue
                    self._taken.setdefault(task.uid, task.expires or 0.0)
                    await self._room.acquire()
                    group.create_task(self._expire(task))
                    await asyncio.sleep(self._gap)
        finally:
            self._leads = False

    def _push(self, at: float, task: TaskRecord) -> None:
        if not self._leads and len(self._heap) >= 2 * len(self._store) + SPARE:
            # A follower takes nothing off: what is past would pile up for as long as it follows.
            self._heap = [(due, t.key, t.uid) for t in self._store.tasks() if (due := _due_at(t)) is not None]
            heapq.heapify(self._heap)
        entry = (at, task.key, task.uid)
        first = not self._heap or entry < self._heap[0]
        heapq.heappush(self._heap, entry)
        if first:
            self._wake.set()

    def _due(self) -> TaskRecord | None:
        """Take the next task whose time is over off the heap."""
        while self._heap and self._heap[0][0] <= self._clock():
            _, key, uid = heapq.heappop(self._heap)
            task = self._store.task(key)
            # Renewed meanwhile: its later time has an entry of its own.
            if task is not None and task.uid == uid and (at := _due_at(task)) is not None and at <= self._clock():
                return task
            self._taken.pop(uid, None)
        return None

    async def _sleep(self) -> None:
        self._wake.clear()
        delay = max(self._heap[0][0] - self._clock(), 0.001) if self._heap else None
        try:
            # Not longer than a minute: the clock may be set.
            await asyncio.wait_for(self._wake.wait(), None if delay is None else min(delay, 60.0))
        except TimeoutError:
            pass

    async def _expire(self, task: TaskRecord) -> None:
        try:
            settled = await self._delete(task)
        finally:
            self._room.release()
        if settled:
            self._taken.pop(task.uid, None)
        else:
            self._push(self._clock() + PAUSE, task)

    async def _delete(self, task: TaskRecord) -> bool:
        """Delete it; False = to be tried again."""
        try:
            # With both guards a retention that was renewed a moment ago answers 409, not a lost result.
            await self._api.delete(
                TASK, task.namespace, task.name, uid=task.uid, resource_version=task.resource_version
            )
        except NotFound:
            self._store.drop_task(task.key, task.uid)
        except Conflict:
            return await self._changed(task)
        except ApiFailure as error:
            logger.warning("task %s has expired, but can't be deleted yet: %s", task.name, error)
            return False
        else:
            now = self._clock()
            self._metrics.expired.inc()
            self._metrics.expiry_lag.observe(max(now - (task.expires or now), 0))
            self._store.drop_task(task.key, task.uid)
            logger.info("%s %s expired", task.tool, task.name[:10])
        return True

    async def _changed(self, task: TaskRecord) -> bool:
        """Take in what it is now; False = that can't be told."""
        try:
            fresh = record(await self._api.get(TASK, task.namespace, task.name))
        except NotFound:
            self._store.drop_task(task.key, task.uid)
        except ApiFailure as error:
            logger.warning("task %s has changed and can't be read: %s", task.name, error)
            return False
        else:
            self._store.put_task(fresh)
            # Also if the store knew it: its entry is off the heap.
            self.schedule(fresh)
        return True


def _due_at(task: TaskRecord) -> float | None:
    """When it is to be deleted, in epoch seconds; None = not by expiry."""
    return task.expires if task.terminal and not task.deleting else None
