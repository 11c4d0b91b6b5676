"""Every metric of the operator, in one table. No label ever holds a task or an owner: their number is unbounded, and
one scrape would be lost over it."""

import time
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mcptasks_operator.ages import oldest, overdue
from mcptasks_operator.store import Store

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_RUN_SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400)


class Metrics:
    """The registry of one operator process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.events = Counter("mcptasks_operator_events", "Watch events taken in.", ["kind"], registry=registry)
        self.queue_seconds = Histogram(
            "mcptasks_operator_queue_seconds",
            "Seconds that a task waited for a worker.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.actions = Counter("mcptasks_operator_actions", "Steps taken.", ["action"], registry=registry)
        self.retries = Counter(
            "mcptasks_operator_retries",
            "Steps that failed and are tried again; code is the HTTP status, 0 without an answer.",
            ["code"],
            registry=registry,
        )
        self.conflicts = Counter(
            "mcptasks_operator_conflicts", "Steps decided again because the object had changed.", registry=registry
        )
        self.started = Counter("mcptasks_operator_jobs_created", "Jobs made.", ["tool"], registry=registry)
        self.start_seconds = Histogram(
            "mcptasks_operator_start_seconds",
            "Seconds from a task's creation until its program ran.",
            ["tool"],
            buckets=_RUN_SECONDS,
            registry=registry,
        )
        self.ended = Counter(
            "mcptasks_operator_tasks_ended",
            "Tasks that this operator ended.",
            ["tool", "state", "reason"],
            registry=registry,
        )
        self.expired = Counter("mcptasks_operator_tasks_expired", "Tasks deleted at expiry.", registry=registry)
        self.expiry_lag = Histogram(
            "mcptasks_operator_expiry_lag_seconds",
            "Seconds between a task's expiresAt and its deletion.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.expiry_late = Gauge(
            "mcptasks_operator_expiry_late_seconds",
            "Seconds for which the longest expired task waits for its deletion; 0 on a replica that follows.",
            registry=registry,
        )
        self.repairs = Counter(
            "mcptasks_operator_audit_repairs", "What an audit had to mend in memory.", ["kind"], registry=registry
        )
        self.watch_lag = Gauge(
            "mcptasks_operator_watch_lag_seconds",
            "Seconds for which the oldest change that a list has shown has not been brought by its watch; as much as a "
            "pulse is ordinary.",
            registry=registry,
        )
        self.audit_age = Gauge(
            "mcptasks_operator_audit_age_seconds",
            "Seconds since the API server last answered a list or a pulse of the audit.",
            registry=registry,
        )
        self.leading = Gauge("mcptasks_operator_leading", "1 while this replica holds the Lease.", registry=registry)

    def watch(self, kind: str, age: Callable[[], float]) -> None:
        """Show how many seconds ago the watch of ``kind`` last brought an event."""
        if not hasattr(self, "_age"):
            self._age = Gauge(
                "mcptasks_operator_watch_age_seconds",
                "Seconds since a watch last brought an event; where nothing happens it grows.",
                ["kind"],
                registry=self.registry,
            )
        self._age.labels(kind=kind).set_function(age)

    def store(self, store: Store, depth: Callable[[], float], clock: Callable[[], float] = time.time) -> None:
        """Show what ``store`` holds, and how many tasks wait for a worker. ``clock`` is epoch seconds."""
        self.registry.register(_Stored(store, depth, clock))

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)


_PLACE = ("tool_namespace", "tool")
"""Not ``namespace``: that label of a scraped series is the operator's own."""


class _Stored(Collector):
    """Read at each scrape, so that a tool that is gone leaves no series behind."""

    def __init__(self, store: Store, depth: Callable[[], float], clock: Callable[[], float]) -> None:
        self._store, self._depth, self._clock = store, depth, clock

    def collect(self) -> Iterable[Metric]:
        tasks = GaugeMetricFamily("mcptasks_operator_tasks", "Tasks that exist.", labels=["tool", "state"])
        for (tool, state), count in self._store.states.items():
            if count:
                tasks.add_metric([tool, state], count)
        yield tasks
        yield from self._ages()
        ready = GaugeMetricFamily(
            "mcptasks_operator_tool_ready", "1 if a tool is Ready, 0 if it is not.", labels=_PLACE
        )
        for one in self._store.tools():
            if one.ready is not None:
                ready.add_metric(one.key, one.ready["status"] == "True")
        yield ready
        used = GaugeMetricFamily(
            "mcptasks_operator_concurrency_used", "Tasks of a tool that have a Job.", labels=_PLACE
        )
        waiting = GaugeMetricFamily(
            "mcptasks_operator_concurrency_waiting", "Tasks of a tool that wait for their turn.", labels=_PLACE
        )
        allowed = GaugeMetricFamily(
            "mcptasks_operator_concurrency_allowed",
            "Tasks of a tool that may have a Job at once; none is shown for a tool without a limit.",
            labels=_PLACE,
        )
        for tool_key, held, line, total in self._store.slots.usage():
            used.add_metric(tool_key, held)
            waiting.add_metric(tool_key, line)
            if total is not None:
                allowed.add_metric(tool_key, total)
        yield from (used, waiting, allowed)
        yield GaugeMetricFamily("mcptasks_operator_queue_depth", "Tasks that wait for a worker.", value=self._depth())

    def _ages(self) -> Iterable[Metric]:
        now = self._clock()
        ages = GaugeMetricFamily(
            "mcptasks_operator_oldest_task_seconds",
            "Seconds for which the oldest unfinished task of a tool has been in its state.",
            labels=[*_PLACE, "state"],
        )
        for (namespace, tool, state), age in oldest(self._store, now).items():
            ages.add_metric([namespace, tool, state], age)
        yield ages
        late = GaugeMetricFamily(
            "mcptasks_operator_overdue_seconds",
            "Seconds by which the oldest attempt of a tool has outlived the tool's start and run time-outs together; "
            "none is shown where none has.",
            labels=_PLACE,
        )
        for key, by in overdue(self._store, now).items():
            late.add_metric(key, by)
        yield late
