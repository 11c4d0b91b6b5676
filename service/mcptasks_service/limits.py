"""How much one caller may ask for: rates with the `limits` library, and a bound on open tasks."""

import math
import time
from typing import Protocol

from limits import RateLimitItem, WindowStats, parse
from limits.aio import storage as shared_storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter as SharedLimiter
from limits.errors import ConfigurationError
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import SlidingWindowCounterRateLimiter as LocalLimiter

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.names import owner_hash
from mcptasks_crds.tool import MCPTool
from mcptasks_service.callers import Caller
from mcptasks_service.errors import LimitExceeded
from mcptasks_service.metrics import Metrics
from mcptasks_service.settings import Settings


class Limiter(Protocol):
    """One strategy of the library, whose methods wait."""

    async def hit(self, item: RateLimitItem, *identifiers: str) -> bool: ...
    async def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> WindowStats: ...


class _InMemory:
    """Counts in this process. The library's asynchronous memory storage walks over all counters at each hit (1.7 ms
    with 10,000 callers); the other one sweeps in a thread (12 µs whatever their number)."""

    def __init__(self) -> None:
        self._limiter = LocalLimiter(MemoryStorage())

    async def hit(self, item: RateLimitItem, *identifiers: str) -> bool:
        return self._limiter.hit(item, *identifiers)

    async def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> WindowStats:
        return self._limiter.get_window_stats(item, *identifiers)


def _limiter(uri: str) -> Limiter:
    if uri in ("memory://", "async+memory://"):
        return _InMemory()
    try:
        storage = storage_from_string(uri) if uri.startswith("async+") else None
    except ConfigurationError:
        storage = None
    if not isinstance(storage, shared_storage.Storage):
        raise InvalidValue(f"rate_storage {uri!r} is not one; write memory:// or async+redis://HOST:PORT")
    limiter: Limiter = SharedLimiter(storage)
    return limiter


class Limits:
    """The rates of a service. Counters live in ``settings.rate_storage``: per replica, or shared through Redis."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._limiter = _limiter(settings.rate_storage)
        self._rates = {
            "creations": parse(settings.creations),
            "polls": parse(settings.polls),
            "lookups": parse(settings.lookups),
        }
        self._open_tasks = settings.open_tasks
        self._metrics = metrics
        for name, rate in self._rates.items():
            metrics.limit.labels(limit=name, per="minute").set(rate.amount * 60 / rate.get_expiry())
        metrics.limit.labels(limit="open_tasks", per="owner").set(settings.open_tasks)

    async def creation(self, caller: Caller, tool: MCPTool, open_tasks: int) -> None:
        """Count one creation.

        Raises:
            LimitExceeded: creations, tool_rate or open_tasks.
        """
        if open_tasks >= self._open_tasks:
            self._refuse(
                "open_tasks",
                f"You have {open_tasks} unfinished tasks, and at most {self._open_tasks} are allowed; "
                "wait for one to end, or cancel one",
                str(self._open_tasks),
                retry_after=1.0,
            )
        await self._hit("creations", caller, "tasks are created")
        if (rate := tool.spec.rate_limit.per_owner) is not None:
            await self._hit(
                "tool_rate", caller, f"tool {tool.metadata.name} is called", parse(rate), tool.metadata.name
            )

    async def poll(self, caller: Caller) -> None:
        """Count one read of a task's state or result, or of a list.

        Raises:
            LimitExceeded: polls.
        """
        await self._hit("polls", caller, "tasks are read")

    async def lookup(self, caller: Caller) -> None:
        """Count one question for an id that this replica does not know.

        Raises:
            LimitExceeded: lookups.
        """
        await self._hit("lookups", caller, "unknown task ids are asked for")

    async def _hit(
        self, name: str, caller: Caller, what: str, rate: RateLimitItem | None = None, within: str = ""
    ) -> None:
        rate = rate or self._rates[name]
        who = owner_hash(caller.key)
        if await self._limiter.hit(rate, name, within, who):
            return
        window = await self._limiter.get_window_stats(rate, name, within, who)
        self._refuse(
            name,
            f"Too fast: {what} at most {_words(rate)} by one caller",
            _words(rate),
            retry_after=max(window.reset_time - time.time(), 0.1),
        )

    def _refuse(self, reason: str, message: str, limit: str, *, retry_after: float) -> None:
        self._metrics.refusals.labels(limit=reason).inc()
        raise LimitExceeded(message, reason, limit, math.ceil(retry_after * 1000))


def _words(rate: RateLimitItem) -> str:
    span = rate.get_expiry() // rate.multiples
    unit = {1: "second", 60: "minute", 3600: "hour", 86400: "day"}[span]
    return f"{rate.amount}/{unit}"
