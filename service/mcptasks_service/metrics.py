"""Every metric of the service, in one table. No label ever holds a task, an owner or a session (their number is
unbounded, and one scrape would be lost over it)."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest


class Metrics:
    """The registry of one service process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.created = Counter(
            "mcptasks_service_tasks_created", "Tasks created.", ["tool", "origin"], registry=registry
        )
        self.cancelled = Counter(
            "mcptasks_service_tasks_cancelled", "Tasks cancelled by their requestor.", ["tool"], registry=registry
        )
        self.deleted = Counter(
            "mcptasks_service_tasks_deleted", "Tasks deleted by their requestor.", ["tool"], registry=registry
        )
        self.results_reported = Counter(
            "mcptasks_service_results_reported", "Results taken from workers.", ["tool", "outcome"], registry=registry
        )
        self.progress_reported = Counter(
            "mcptasks_service_progress_reported", "Progress reports taken from workers.", ["tool"], registry=registry
        )
        self.requests = Counter(
            "mcptasks_service_requests",
            "MCP requests answered; code is 0 or the JSON-RPC error code.",
            ["method", "era", "code"],
            registry=registry,
        )
        self.seconds = Histogram(
            "mcptasks_service_request_seconds",
            "Seconds to answer an MCP request that does not wait for a task.",
            ["method"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
            registry=registry,
        )
        self.streams = Gauge("mcptasks_service_open_streams", "Responses and streams that wait.", registry=registry)
        self.lookups = Counter(
            "mcptasks_service_lookups",
            "Look-ups of a task id: hit (in memory), fetched (from the API server), unknown.",
            ["outcome"],
            registry=registry,
        )
        self.refusals = Counter(
            "mcptasks_service_refusals", "Requests refused by a limit.", ["limit"], registry=registry
        )
        self.limit = Gauge("mcptasks_service_limit", "The limits in force.", ["limit", "per"], registry=registry)
        self.worker_refusals = Counter(
            "mcptasks_service_worker_refusals", "Worker requests refused.", ["reason"], registry=registry
        )
        self.objects = Gauge("mcptasks_service_informer_objects", "Objects known.", ["kind"], registry=registry)
        self.watch_age = Gauge(
            "mcptasks_service_watch_age_seconds",
            "Seconds since the watch last brought anything, bookmarks included.",
            ["kind"],
            registry=registry,
        )

        self.connected = Gauge(
            "mcptasks_service_watch_connected",
            "1 while a watch is open and has brought something, 0 while the API server is away.",
            ["kind"],
            registry=registry,
        )
        self.ready = Gauge(
            "mcptasks_service_ready", "1 once this replica can answer, which it then goes on to do.", registry=registry
        )

    def informer(
        self, kind: str, size: Callable[[], float], age: Callable[[], float], connected: Callable[[], bool]
    ) -> None:
        """Show how many objects of ``kind`` are known, how many seconds ago the API server last said anything, and
        whether the watch is open."""
        self.objects.labels(kind=kind).set_function(size)
        self.watch_age.labels(kind=kind).set_function(age)
        self.connected.labels(kind=kind).set_function(connected)

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)
