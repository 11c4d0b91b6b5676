"""The operator, put together: watch → store → queue → decide → execute, one expiry heap, one leader."""

import asyncio
import logging
import time
from collections.abc import Callable

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure
from mcptasks_operator import feed, health
from mcptasks_operator.audit import Audit
from mcptasks_operator.decide import decide
from mcptasks_operator.execute import Executor
from mcptasks_operator.expiry import Expiry
from mcptasks_operator.feed import LABELS, Feed
from mcptasks_operator.lease import Lease
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.pace import Pace
from mcptasks_operator.queue import WorkQueue
from mcptasks_operator.ready import Ready
from mcptasks_operator.settings import Settings
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store

logger = logging.getLogger(__name__)


class Operator:
    """One replica. It can run inside another process's loop: nothing here is global.

    ``clock`` is epoch seconds: it is compared with times that stand in objects.
    """

    def __init__(self, api: Api, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._api, self._settings, self._clock = api, settings, clock
        self.metrics = Metrics()
        self.queue: WorkQueue[Key] = WorkQueue(latency=self.metrics.queue_seconds.observe)
        self.store = Store(task_changed=self._task_changed, tool_changed=self._tool_changed)
        self.feed = Feed(self.store, self.metrics, time.monotonic)
        self.expiry = Expiry(api, self.store, self.metrics, clock, settings.deletes_per_second)
        self.audit = Audit(api, self.store, self.feed, self.metrics, settings.namespaces, time.monotonic)
        self._ready = Ready(api, self.store, clock, settings.surroundings)
        self._executor = Executor(
            api,
            self.store,
            self.metrics,
            Pace(settings.starts_per_second, settings.start_burst, time.monotonic),
            clock,
            settings.surroundings,
        )
        self._lease = self._new_lease()
        self.synced = asyncio.Event()
        """Set once everything is known."""
        self.leading = asyncio.Event()
        """Set once this replica acts."""
        self.port: int | None = None
        """Where /healthz, /readyz and /metrics are, once they are."""
        self.metrics.store(self.store, lambda: len(self.queue))
        for kind in LABELS:
            self.metrics.watch(kind.name, lambda kind=kind: self.feed.age(kind))  # type: ignore[misc]

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set.

        Raises:
            LeaseLost, WatchEnded: the process must end, and a new one begin.
        """
        watch = asyncio.create_task(feed.watch(self.feed, self._settings), name="watch")
        work = asyncio.create_task(self._work(), name="work")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            done, _ = await asyncio.wait({watch, work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (stopped, watch, work):
                task.cancel()
            await asyncio.gather(stopped, watch, work, return_exceptions=True)
            self.queue.close()
            if self._lease is not None:
                await self._lease.release()

    async def _work(self) -> None:
        settings = self._settings
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    health.serve(
                        settings.host,
                        settings.port,
                        alive=self._ill,
                        ready=self._unready,
                        metrics=self.metrics.render,
                        bound=self._bound,
                    )
                )
                await self.audit.first()
                self.synced.set()
                logger.info("%d tasks and %d tools known", len(self.store), sum(1 for _ in self.store.tools()))
                group.create_task(self.audit.run(settings.audit_seconds, settings.pulse_seconds))
                if self._lease is not None:
                    await self._lease.acquire()
                    group.create_task(self._lease.hold())
                logger.info("leading as %s", settings.replica)
                self.metrics.leading.set(1)
                self.leading.set()
                # Slots and turns go by who came first; what has ended can wait.
                for task in sorted(self.store.tasks(), key=lambda task: (task.terminal, task.created, task.name)):
                    self.queue.add(task.key)
                self.store.open_slots()
                group.create_task(self.expiry.run())
                group.create_task(self._ready.run())
                for _ in range(settings.workers):
                    group.create_task(self._worker())
        except* Exception as faults:
            # One is enough to end the process, and a caller can tell its kind.
            raise _first(faults) from None
        finally:
            self.metrics.leading.set(0)
            self.leading.clear()

    async def _worker(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._step(key)
            finally:
                self.queue.done(key)

    async def _step(self, key: Key) -> None:
        """Look at one task and do one thing for it."""
        if (seen := self.store.situation(key)) is None:
            self.queue.forget(key)
            return
        tool, name, what = seen.task.tool, key[1][:10], "decide"
        try:
            action = decide(seen, self._clock())
            what = type(action).__name__
            delay = await self._executor.execute(seen.task, action, self.queue.failures(key))
        except ApiFailure as error:
            pause = self.queue.retry(key)
            self.metrics.retries.labels(code=error.code).inc()
            logger.warning("%s %s %s: %s; again in %.1f s", tool, name, what, error, pause)
        except Exception:
            # One task that we don't understand must not stop the others.
            pause = self.queue.retry(key)
            self.metrics.retries.labels(code="bug").inc()
            logger.exception("%s %s %s; again in %.1f s", tool, name, what, pause)
        else:
            self.queue.forget(key)
            if delay is not None:
                self.queue.add_after(key, delay)

    def _task_changed(self, key: Key) -> None:
        # A follower would only collect them; who comes to lead looks at all.
        if self.leading.is_set():
            self.queue.add(key)
        if (task := self.store.task(key)) is not None:
            self.expiry.schedule(task)
            self._ready.touch((task.namespace, task.tool))

    def _tool_changed(self, key: Key) -> None:
        self._ready.touch(key)

    def _ill(self) -> str | None:
        lag = self.audit.lag
        if lag > self._settings.watch_lag_seconds:
            return f"a change {lag:.0f} s ago has not been brought by its watch"
        return None

    def _unready(self) -> str | None:
        # A follower is ready: it is warm, and a rolling update must not wait for it to lead.
        return None if self.synced.is_set() else "the first list is not through"

    def _bound(self, port: int) -> None:
        self.port = port
        logger.info("serving /healthz, /readyz and /metrics on port %d", port)

    def _new_lease(self) -> Lease | None:
        settings = self._settings
        if settings.lease_name is None:
            return None
        return Lease(
            self._api,
            settings.lease_namespace,
            settings.lease_name,
            settings.replica,
            seconds=settings.lease_seconds,
            renew=settings.renew_seconds,
        )


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Run one replica until ``stop`` is set.

    Raises:
        LeaseLost, WatchEnded: end the process; a new one takes over from the objects.
    """
    async with await Api.connect(settings.kubeconfig, user_agent="mcptasks-operator") as api:
        await Operator(api, settings).run(stop)


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    fault: BaseException = group
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    assert isinstance(fault, Exception)  # noqa: S101
    return fault
