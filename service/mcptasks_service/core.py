"""The parts of one replica, put together and run."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcptasks_crds.api import Api
from mcptasks_crds.kinds import TASK, TOOL
from mcptasks_crds.record import TaskRecord, record
from mcptasks_service.catalogue import Catalogue, OfferedTool, read_tool
from mcptasks_service.index import TaskIndex
from mcptasks_service.informer import Informer
from mcptasks_service.limits import Limits
from mcptasks_service.metrics import Metrics
from mcptasks_service.progress import ProgressWriter
from mcptasks_service.reports import Reports
from mcptasks_service.results import Results
from mcptasks_service.settings import Settings
from mcptasks_service.store import Store
from mcptasks_service.tasks import Tasks
from mcptasks_service.worker_identity import WorkerIdentity

SILENCE_LIMIT = 180.0
"""Seconds of silence on an open watch after which the replica is no longer alive: two missed bookmarks and a spare."""


@dataclass(frozen=True)
class Core:
    """One replica without its wire."""

    api: Api
    tasks: Tasks
    metrics: Metrics
    workers: WorkerIdentity
    reports: Reports
    informers: tuple[Informer[TaskRecord], Informer[OfferedTool]]
    clock: Callable[[], float]

    def ready(self) -> tuple[bool, str]:
        """Whether requests can be answered: once synced a replica stays ready, also while the API server is away,
        since it answers polls from memory."""
        waiting = [name for name, informer in self._named() if not informer.synced.is_set()]
        return (not waiting, f"waiting for the first list of {', '.join(waiting)}" if waiting else "ready")

    def alive(self) -> tuple[bool, str]:
        """False only if a watch that is open has said nothing for far longer than its bookmarks leave."""
        for name, informer in self._named():
            age = self.clock() - informer.last_event
            if informer.connected and age > SILENCE_LIMIT:
                return False, f"the watch of {name} has been silent for {age:.0f} s"
        return True, "alive"

    def _named(self) -> tuple[tuple[str, Informer[TaskRecord]], tuple[str, Informer[OfferedTool]]]:
        tasks, tools = self.informers
        return ("tasks", tasks), ("tools", tools)


@asynccontextmanager
async def running(settings: Settings, clock: Callable[[], float] = time.time) -> AsyncIterator[Core]:
    """Connect, start the watches, and stop them at the end. Does not wait for the first lists: `Core.ready` tells."""
    async with await Api.connect(settings.kubeconfig, user_agent="mcptasks-service") as api:
        metrics = Metrics()
        tasks = Informer(api, TASK, settings.namespace, record, clock)
        tools = Informer(api, TOOL, settings.namespace, read_tool, clock)
        index = TaskIndex()
        store = Store(api, tasks, settings.namespace, clock)
        results = Results(api, settings.result_cache)
        progress = ProgressWriter(store, settings.progress_seconds, clock)
        for name, informer in (("tasks", tasks), ("tools", tools)):
            metrics.informer(
                name,
                informer.__len__,
                age=lambda i=informer: clock() - i.last_event,  # type: ignore[misc]
                connected=lambda i=informer: i.connected,  # type: ignore[misc]
            )
        core = Core(
            api=api,
            tasks=Tasks(
                store=store,
                informer=tasks,
                index=index,
                catalogue=Catalogue(tools, settings.namespace),
                results=results,
                limits=Limits(settings, metrics),
                metrics=metrics,
                clock=clock,
                argument_limit=settings.argument_limit,
            ),
            metrics=metrics,
            workers=WorkerIdentity(api, tasks, settings.namespace, clock),
            reports=Reports(api, store, results, progress, metrics, clock),
            informers=(tasks, tools),
            clock=clock,
        )
        metrics.ready.set_function(lambda: core.ready()[0])
        with tasks.listen(None, index.changed):
            watches = [asyncio.create_task(tasks.run()), asyncio.create_task(tools.run())]
            try:
                yield core
            finally:
                await progress.close()
                for watch in watches:
                    watch.cancel()
                await asyncio.gather(*watches, return_exceptions=True)
