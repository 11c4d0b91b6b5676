"""kopf's edge: watch events go into the store, and nothing else happens here.

``on.event`` alone is used. It costs the API server nothing, puts no finalizer and no annotation on anybody's object,
and an error in it could not be retried: all that can fail is done by the queue.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import kopf
from kubernetes.aio.client import Configuration

from mcptasks_crds.api import load_configuration
from mcptasks_crds.errors import McpTasksError
from mcptasks_crds.kinds import JOB, POD, TASK, TOOL, Kind
from mcptasks_crds.names import LABEL_MANAGED_BY, LABEL_TASK_UID, MANAGED_BY
from mcptasks_crds.record import TaskRecord, record
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.observe import JobState, PodState, ToolState, read_job, read_pod, read_tool
from mcptasks_operator.settings import Settings
from mcptasks_operator.store import Store

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 0.1
"""Seconds that its connections have to close."""

STOP_SECONDS = 5.0
"""Seconds that the watches have to end."""

SELECTOR = f"{LABEL_MANAGED_BY}={MANAGED_BY}"
"""Jobs and pods that are not ours never reach this process."""
LABELS = {TASK: "", TOOL: "", JOB: SELECTOR, POD: SELECTOR}
"""What is watched, with the label selector of each."""


class WatchEnded(Exception):
    """kopf stopped watching by itself; only a new process lists again."""


class Known(NamedTuple):
    """What it takes to forget an object: Jobs and pods are kept by their task's uid."""

    namespace: str
    name: str
    uid: str
    task_uid: str | None = None


Item = TaskRecord | ToolState | JobState | PodState
_READ: dict[Kind, Callable[[Mapping[str, Any]], Item]] = {TASK: record, TOOL: read_tool, JOB: read_job, POD: read_pod}
Take = Callable[[Kind, Item | None, Known | None], None]


class Feed:
    """Takes objects in. ``clock`` is monotonic seconds."""

    def __init__(self, store: Store, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._store, self._metrics, self._clock = store, metrics, clock
        self._last = dict.fromkeys(LABELS, clock())

    def age(self, kind: Kind) -> float:
        """Seconds since the watch of ``kind`` last brought an event; kopf keeps bookmarks to itself."""
        return self._clock() - self._last[kind]

    def event(self, kind: Kind, item: Item | None, gone: Known | None) -> None:
        """Take in one watch event: "this is how it is now", whatever its type, but for a deletion."""
        self._last[kind] = self._clock()
        self._metrics.events.labels(kind=kind.name).inc()
        # The last state of a pod that is gone tells how it ended, and may be the first that we see of that.
        if item is not None and (gone is None or kind is POD):
            self.put(item)
        if gone is not None:
            self.forget(kind, gone)

    def put(self, item: Item) -> bool:
        """Take in an object; False if it is no news."""
        match item:
            case TaskRecord():
                return self._store.put_task(item)
            case ToolState():
                return self._store.put_tool(item)
            case JobState():
                return self._store.put_job(item)
            case PodState():
                return self._store.put_pod(item)

    def forget(self, kind: Kind, known: Known) -> None:
        """An object is no more."""
        match kind:
            case _ if kind is TASK:
                self._store.drop_task((known.namespace, known.name), known.uid)
            case _ if kind is TOOL:
                self._store.drop_tool((known.namespace, known.name), known.uid)
            case _ if kind is JOB:
                self._store.drop_job(known.task_uid or "", known.name, known.uid)
            case _:
                self._store.drop_pod(known.task_uid or "", known.name, known.uid)


def read(kind: Kind, item: Mapping[str, Any]) -> Item | None:
    """What is kept of an object; None if it can't be read: one bad object must not stop the others."""
    try:
        return _READ[kind](item)
    except (KeyError, ValueError, TypeError, McpTasksError) as error:
        name = (item.get("metadata") or {}).get("name")
        logger.warning("%s %s can't be read: %r; left out", kind.name, name, error)
        return None


def known(item: Mapping[str, Any]) -> Known:
    """What names an object that is gone."""
    meta = item["metadata"]
    return Known(meta["namespace"], meta["name"], meta["uid"], (meta.get("labels") or {}).get(LABEL_TASK_UID))


def registry(take: Take, kubeconfig: str | None) -> kopf.OperatorRegistry:
    """kopf's handlers, in a registry of their own, so that several operators may live in one process."""
    handlers = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        # Asked again at each 401, so that a token that has been renewed on disk is read again.
        return connection(await load_configuration(kubeconfig))

    kopf.on.login(registry=handlers)(login)
    for kind in LABELS:

        async def handle(event: Any, kind: Kind = kind, **_: Any) -> None:
            item = event["object"]
            take(kind, read(kind, item), known(item) if event.get("type") == "DELETED" else None)

        kopf.on.event(kind.group, kind.version, kind.plural, registry=handlers, id=f"take-{kind.plural}")(handle)
    return handlers


def connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """The same connection for kopf as for our own client."""
    scheme, _, token = (configuration.api_key.get("BearerToken") or "").rpartition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert or None,
        ca_data=configuration.ca_cert_data or None,
        insecure=not configuration.verify_ssl,
        certificate_path=configuration.cert_file or None,
        private_key_path=configuration.key_file or None,
        username=configuration.username or None,
        password=configuration.password or None,
        scheme=scheme.capitalize() or None,
        token=token or None,
        proxy_url=configuration.proxy or None,
    )


class _NoDiffs(kopf.DiffBaseStorage):
    """No handler compares: otherwise every event is reduced to its essence first, a quarter of the work."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> Any:
        return {}

    def fetch(self, *, body: kopf.Body) -> None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: Any) -> None:
        return None


def watch_settings() -> kopf.OperatorSettings:
    """How kopf watches."""
    settings = kopf.OperatorSettings()
    # Otherwise every log line about an object becomes an Event in the cluster.
    settings.posting.enabled = False
    # Otherwise it watches CRDs and namespaces, which needs a ClusterRole.
    settings.scanning.disabled = True
    # A task per object lingers for 5 s by default: 10,000 of them after a restart.
    settings.queueing.worker_limit = 200
    settings.queueing.idle_timeout = 0.05
    # Lists come in pages, so that 100,000 tasks do not come as one body.
    settings.watching.chunk_size = 500
    # The last value is the lag of a recovery.
    settings.networking.error_backoffs = [0.5, 1, 2, 5]
    settings.persistence.diffbase_storage = _NoDiffs()
    for kind, labels in LABELS.items():
        if labels:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = labels
    # "Handler … succeeded", once an event; "no signals in a thread", once a start.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    return settings


async def watch(feed: Feed, settings: Settings) -> None:
    """Watch until cancelled, or until kopf gives up.

    It has a thread and a loop of its own: at its end it cancels every younger task of its loop, whosever they are, and
    in a main thread it takes SIGTERM and SIGINT for itself.

    Raises:
        WatchEnded: kopf ended; a new process lists again.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()
    stop = threading.Event()

    def take(kind: Kind, item: Item | None, gone: Known | None) -> None:
        loop.call_soon_threadsafe(feed.event, kind, item, gone)

    async def operate() -> None:
        try:
            await kopf.operator(
                registry=registry(take, settings.kubeconfig),
                settings=watch_settings(),
                namespaces=settings.namespaces,
                clusterwide=not settings.namespaces,
                standalone=True,
                stop_flag=stop,
            )
        finally:
            # A thread of this loop waits for it, and the loop for that thread.
            stop.set()
            # Closed TLS connections take some turns of the loop to go (aiohttp#1925).
            await asyncio.sleep(CLOSE_SECONDS)

    def in_thread() -> None:
        try:
            asyncio.run(operate())
            why = "the watches have ended"
        except BaseException as error:
            why = f"the watches have ended: {error!r}"
        with contextlib.suppress(RuntimeError):  # our loop may be closed by now
            loop.call_soon_threadsafe(ended.set_result, why)

    thread = threading.Thread(target=in_thread, name="watch", daemon=True)
    thread.start()
    try:
        raise WatchEnded(await asyncio.shield(ended))
    finally:
        stop.set()
        await asyncio.wait({ended}, timeout=STOP_SECONDS)
