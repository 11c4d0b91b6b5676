"""The operator's edges over a fake API."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from mcptasks_operator.audit import Audit
from mcptasks_operator.feed import Feed
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store

from .cluster import FakeApi


async def until(seen: Callable[[], object]) -> None:
    """Let the others run until ``seen()``, within bounds: what is looked for here tells nobody of itself."""
    async with asyncio.timeout(10):
        while not seen():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


class Clock:
    """Seconds that move only when told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Edges:
    """What watches and lists fill."""

    api: FakeApi = field(default_factory=FakeApi)
    clock: Clock = field(default_factory=Clock)
    metrics: Metrics = field(default_factory=Metrics)
    tasks: list[Key] = field(default_factory=list)
    tools: list[Key] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.tasks.append, self.tools.append)
        self.feed = Feed(self.store, self.metrics, self.clock)
        self.audit = Audit(self.api, self.store, self.feed, self.metrics, ["team-a"], self.clock)  # type: ignore[arg-type]
