"""Every metric of the operator, in one table. No label ever holds a task or an owner: their number is unbounded, and
one scrape would be lost over it."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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
        self.repairs = Counter(
            "mcptasks_operator_audit_repairs", "What an audit had to mend in memory.", ["kind"], registry=registry
        )
        self.leading = Gauge("mcptasks_operator_leading", "1 while this replica holds the Lease.", registry=registry)

    def watch(self, kind: str, age: Callable[[], float]) -> None:
        """Show how many seconds ago the watch of ``kind`` last brought an event."""
        if not hasattr(self, "_age"):
            self._age = Gauge(
                "mcptasks_operator_watch_age_seconds",
                "Seconds since a watch last brought an event.",
                ["kind"],
                registry=self.registry,
            )
        self._age.labels(kind=kind).set_function(age)

    def store(self, store: Store, depth: Callable[[], float]) -> None:
        """Show what ``store`` holds, and how many tasks wait for a worker."""
        self.registry.register(_Stored(store, depth))

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _Stored(Collector):
    """Read at each scrape, so that a tool that is gone leaves no series behind."""

    def __init__(self, store: Store, depth: Callable[[], float]) -> None:
        self._store, self._depth = store, depth

    def collect(self) -> Iterable[Metric]:
        tasks = GaugeMetricFamily("mcptasks_operator_tasks", "Tasks that exist.", labels=["tool", "state"])
        for (tool, state), count in self._store.states.items():
            if count:
                tasks.add_metric([tool, state], count)
        yield tasks
        used = GaugeMetricFamily(
            "mcptasks_operator_concurrency_used", "Tasks of a tool that have a Job.", labels=["namespace", "tool"]
        )
        waiting = GaugeMetricFamily(
            "mcptasks_operator_concurrency_waiting",
            "Tasks of a tool that wait for their turn.",
            labels=["namespace", "tool"],
        )
        allowed = GaugeMetricFamily(
            "mcptasks_operator_concurrency_allowed",
            "Tasks of a tool that may have a Job at once; none is shown for a tool without a limit.",
            labels=["namespace", "tool"],
        )
        for tool_key, held, line, total in self._store.slots.usage():
            used.add_metric(tool_key, held)
            waiting.add_metric(tool_key, line)
            if total is not None:
                allowed.add_metric(tool_key, total)
        yield from (used, waiting, allowed)
        yield GaugeMetricFamily("mcptasks_operator_queue_depth", "Tasks that wait for a worker.", value=self._depth())
