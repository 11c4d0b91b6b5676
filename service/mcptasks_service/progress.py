"""Progress of workers: at most one write per task and interval; the last word always lands."""

import asyncio
import logging
from collections.abc import Callable

from mcptasks_crds.errors import Conflict, NotFound, Refused
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.task import Progress
from mcptasks_crds.times import render
from mcptasks_service.errors import ServiceError
from mcptasks_service.store import Store

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Pause at the least before a report that the API server did not take is written again."""
CLOSE_SECONDS = 5.0
"""How long the last writes may take at the end of the process."""


class ProgressWriter:
    """Coalesces reports. What a crash costs: the reports of the last interval, which the next ones replace."""

    def __init__(self, store: Store, interval: float, clock: Callable[[], float]) -> None:
        self._store, self._interval, self._clock = store, interval, clock
        self._pending: dict[str, tuple[TaskRecord, Progress]] = {}
        self._writers: dict[str, asyncio.Task[None]] = {}

    def report(self, task: TaskRecord, progress: Progress) -> None:
        """Take a report; it is written at once, or when the interval since the last write is over."""
        self._pending[task.uid] = (task, progress)
        if task.uid not in self._writers:
            self._writers[task.uid] = asyncio.create_task(self._drain(task.uid))

    def forget(self, task: TaskRecord) -> None:
        """The task has ended: what is still to be written no longer matters."""
        self._pending.pop(task.uid, None)

    async def close(self) -> None:
        """Write what is pending, and stop."""
        writers = list(self._writers.values())
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        last, self._pending = list(self._pending.values()), {}
        writes = asyncio.gather(*(self._write(*report) for report in last))
        try:
            await asyncio.wait_for(writes, CLOSE_SECONDS)
        except TimeoutError:
            logger.warning("the last progress of %d tasks is not written: the API server does not answer", len(last))

    async def _drain(self, uid: str) -> None:
        try:
            while (report := self._pending.get(uid)) is not None:
                written = await self._write(*report)
                if written and self._pending.get(uid) is report:  # else another came meanwhile, or the task ended
                    del self._pending[uid]
                await asyncio.sleep(self._interval if written else max(self._interval, RETRY_SECONDS))
        finally:
            del self._writers[uid]

    async def _write(self, task: TaskRecord, progress: Progress) -> bool:
        """Write one report, or see that it no longer matters; False = the API server can't be asked now."""
        latest = self._store.latest(task)
        try:
            for _ in range(3):
                if latest is None or latest.terminal:
                    break
                status = {"progress": progress.wire(), "lastUpdatedAt": render(self._clock())}
                try:
                    await self._store.patch_status(latest, status)
                except (Conflict, Refused):
                    latest = await self._store.refresh(latest)
                else:
                    break
            else:
                return False
        except NotFound:
            pass
        except ServiceError as error:
            logger.info("progress of %s is not written yet: %s", task.name, error)
            return False
        return True


def in_words(progress: float, total: float | None, message: str | None) -> Progress:
    """A report with the line that ``kubectl get`` shows: ``3/10 compiling``, ``42%``."""
    done = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return Progress(
        progress=progress, total=total, message=message, text=f"{done} {message}"[:120] if message else done
    )
