"""Lists that check the watches: what they lost is mended, and whether they still move is told.

kopf does not notice a deletion that happens while a watch is between two resourceVersions (410): the new list has no
event for what is gone. The full audit finds that. The pulse lists only what is unfinished, which is little, often, and
asks of each change whether the watch has brought it: a watch that is open and silent is found so, where nothing else
would.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, Gone
from mcptasks_crds.kinds import JOB, POD, TASK, TOOL, Kind
from mcptasks_crds.lifecycle import State
from mcptasks_operator.feed import LABELS, Feed, Known, read
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.observe import later
from mcptasks_operator.store import Store

logger = logging.getLogger(__name__)

PAUSE = 2.0
"""Seconds before a list that failed is tried again."""

_OPEN = ",".join(f"status.state!={state}" for state in State if state.terminal)


class Audit:
    """``namespaces`` empty = all. ``clock`` is monotonic seconds."""

    def __init__(
        self,
        api: Api,
        store: Store,
        feed: Feed,
        metrics: Metrics,
        namespaces: Iterable[str],
        clock: Callable[[], float],
    ) -> None:
        self._api, self._store, self._feed, self._metrics, self._clock = api, store, feed, metrics, clock
        self._namespaces: list[str | None] = list(namespaces) or [None]
        self._unseen: dict[str, tuple[str, float]] = {}
        self._answered = clock()
        metrics.watch_lag.set_function(lambda: self.lag)
        metrics.audit_age.set_function(lambda: clock() - self._answered)

    @property
    def lag(self) -> float:
        """Seconds for which the oldest change has not been brought by its watch; 0 = all have."""
        return max((self._clock() - since for _, since in self._unseen.values()), default=0.0)

    async def first(self) -> None:
        """The first full list, tried until it works: the API server may be away, or not have loaded its roles (403)."""
        told = ""
        while True:
            try:
                await self.full()
                return
            except ApiFailure as error:
                if str(error) != told:
                    told = str(error)
                    logger.warning("%s; trying again", told)
                await asyncio.sleep(PAUSE)

    async def run(self, full_every: float, pulse_every: float) -> None:
        """Full lists and pulses, by these many seconds, until cancelled."""
        due = self._clock() + full_every
        while True:
            await asyncio.sleep(min(pulse_every, full_every))
            try:
                if self._clock() >= due:
                    await self.full()
                    due = self._clock() + full_every
                else:
                    await self.pulse()
            except ApiFailure as error:
                # Without an API server there is no news, and so none that a watch could miss.
                self._unseen.clear()
                logger.warning("audit put off: %s", error)

    async def full(self) -> None:
        """List everything: take in what is new, forget what is gone.

        Raises:
            ApiFailure
        """
        # Tools first, so that their limits are known when tasks begin to queue; tasks last, when their Jobs are known.
        for kind in (TOOL, JOB, POD, TASK):
            # What comes after the list has begun is not in it.
            before = self._known(kind)
            news = 0
            async for item in self._items(kind):
                before.pop(item["metadata"]["uid"], None)
                if (seen := read(kind, item)) is not None:
                    news += self._feed.put(seen)
            for known in before.values():
                self._feed.forget(kind, known)
            if before:
                logger.info("audit: %d %s were gone unnoticed", len(before), kind.plural)
            self._metrics.repairs.labels(kind=kind.name).inc(len(before))
            logger.debug("audit: %d %s were news", news, kind.plural)
        self._answered = self._clock()

    async def pulse(self) -> None:
        """See whether the watches have brought what the unfinished tasks, their Jobs and pods, and the tools are.

        Raises:
            ApiFailure
        """
        now = self._clock()
        unseen: dict[str, tuple[str, float]] = {}
        for kind in LABELS:
            known = self._versions(kind)
            async for item in self._items(kind, _OPEN if kind is TASK else ""):
                uid, version = item["metadata"]["uid"], item["metadata"]["resourceVersion"]
                mine = known.get(uid)
                if mine is None or later(version, mine):
                    # An object may change on and on: it is its first unseen change that counts.
                    first = self._unseen.get(uid, (version, now))
                    unseen[uid] = first if mine is None or later(first[0], mine) else (version, now)
        self._unseen = unseen
        self._answered = now

    def _known(self, kind: Kind) -> dict[str, Known]:
        """What the store holds, by uid."""
        store = self._store
        match kind:
            case _ if kind is TASK:
                return {task.uid: Known(*task.key, task.uid) for task in store.tasks()}
            case _ if kind is TOOL:
                return {tool.uid: Known(*tool.key, tool.uid) for tool in store.tools()}
            case _:
                children = store.jobs() if kind is JOB else store.pods()
                return {c.uid: Known(c.namespace, c.name, c.uid, c.task_uid) for c in children}

    def _versions(self, kind: Kind) -> dict[str, str]:
        """The resourceVersion of each, by uid."""
        store = self._store
        match kind:
            case _ if kind is TASK:
                return {task.uid: task.resource_version for task in store.tasks()}
            case _ if kind is TOOL:
                return {tool.uid: tool.version for tool in store.tools()}
            case _:
                return {child.uid: child.version for child in (store.jobs() if kind is JOB else store.pods())}

    async def _items(self, kind: Kind, fields: str = "") -> AsyncIterator[Mapping[str, Any]]:
        for namespace in self._namespaces:
            after = ""
            while True:
                try:
                    page = await self._api.list(kind, namespace, labels=LABELS[kind], fields=fields, after=after)
                except Gone as error:
                    raise ApiFailure(410, "Expired", "a list took too long; it begins again") from error
                for item in page["items"]:
                    yield item
                after = (page.get("metadata") or {}).get("continue") or ""
                if not after:
                    break
