"""A live copy of one kind: list, watch, and tell who listens.

Written here because no maintained Python informer fits: the official client's fails on custom objects, asks for no
bookmarks and does not page. What the API server does to a watch is ordinary and costs no list: a stream that ends
without an error (it ends watches when short of CPU) goes on from the last resourceVersion. 410 lists again, and what
is then absent is dropped, with its listeners told.
"""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

from mcptasks_crds.api import Api, Object
from mcptasks_crds.errors import ApiFailure, Gone, McpTasksError
from mcptasks_crds.kinds import Kind
from mcptasks_crds.record import later_version

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 15.0
"""Seconds between attempts when the API server is away, with jitter so that replicas don't return in step."""

DELETED_KEPT = 4096
"""How many uids of deleted objects are remembered, so that an answer on its way then does not bring one back."""


class Versioned(Protocol):
    """What the informer keeps: it must know its key and which of two states is the later."""

    @property
    def key(self) -> tuple[str, str]: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    def newer_than(self, other: Self, /) -> bool: ...


T = TypeVar("T", bound=Versioned)
Listener = Callable[[tuple[str, str], Any], None]


class Informer(Generic[T]):
    """The objects of one kind by (namespace, name). ``read`` turns an API object into what is kept."""

    def __init__(
        self,
        api: Api,
        kind: Kind,
        namespace: str | None,
        read: Callable[[Mapping[str, Any]], T],
        clock: Callable[[], float],
    ) -> None:
        self._api, self._kind, self._namespace, self._read, self._clock = api, kind, namespace, read, clock
        self._known: dict[tuple[str, str], T] = {}
        self._listeners: dict[tuple[str, str] | None, set[Listener]] = {}
        self._deleted: OrderedDict[str, None] = OrderedDict()
        self._version = ""
        self.synced = asyncio.Event()
        """Set once the first list is in."""
        self.connected = False
        """Whether a watch is open now."""
        self.last_event: float = clock()
        """When the API server last said anything, by the clock."""

    def get(self, namespace: str, name: str) -> T | None:
        """The object as last seen."""
        return self._known.get((namespace, name))

    def __iter__(self) -> Iterator[T]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def put(self, item: T) -> None:
        """Take in a state that this process has read or written itself, unless a later one is known."""
        known = self._known.get(item.key)
        if item.uid in self._deleted or (known is not None and not item.newer_than(known)):
            return
        self._known[item.key] = item
        self._tell(item.key, item)

    def drop(self, key: tuple[str, str], uid: str | None = None) -> None:
        """Forget an object that is gone; with ``uid`` only that life of it, and for good."""
        if uid is not None:
            self._deleted[uid] = None
            if len(self._deleted) > DELETED_KEPT:
                self._deleted.popitem(last=False)
        known = self._known.get(key)
        if known is not None and (uid is None or known.uid == uid):
            del self._known[key]
            self._tell(key, None)

    @contextmanager
    def listen(self, key: tuple[str, str] | None, listener: Listener) -> Iterator[None]:
        """Call ``listener(key, object or None)`` at each change of one object, or with None of all."""
        listeners = self._listeners.setdefault(key, set())
        listeners.add(listener)
        try:
            yield
        finally:
            listeners.discard(listener)
            if not listeners and self._listeners.get(key) is listeners:
                del self._listeners[key]

    async def changes(self, key: tuple[str, str]) -> AsyncGenerator[T | None]:
        """The present state, then each later one; states that come faster than they are read are skipped.

        None = it does not exist (any more).
        """
        wake = asyncio.Event()
        with self.listen(key, lambda _key, _item: wake.set()):
            while True:
                wake.clear()
                yield self._known.get(key)
                await wake.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        pause = 0.0
        while True:
            try:
                if not self._version:
                    await self._list()
                    self.synced.set()
                async for event in self._api.watch(self._kind, self._namespace, self._version):
                    self.connected, pause = True, 0.0
                    self._take(event)
                # A clean end is ordinary: go on from where we are.
            except Gone:
                logger.info("%s: the watch or list is too old, listing again", self._kind.plural)
                self._version = ""
            except Exception as error:
                # Unreachable or overloaded; also 403: an API server that has just started has not loaded its roles.
                # What nobody foresaw must not end the watch either: it is logged whole, and the list begun again.
                level = logging.WARNING if self.connected or not pause else logging.DEBUG
                foreseen = isinstance(error, ApiFailure)
                logger.log(level, "%s: %s; trying again", self._kind.plural, error, exc_info=not foreseen)
                if not foreseen:
                    self._version = ""
                self.connected, pause = False, max(pause, FIRST_PAUSE)
            # At once after a stream that brought something; what ends again and again with nothing must not spin.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)

    async def _list(self) -> None:
        seen: set[tuple[str, str]] = set()
        after = ""
        while True:
            page = await self._api.list(self._kind, self._namespace, after=after)
            self.last_event = self._clock()
            for item in page["items"]:
                seen.add((item["metadata"].get("namespace") or "", item["metadata"]["name"]))
                if (read := self._readable(item)) is not None:
                    self.put(read)
            after = page["metadata"].get("continue") or ""
            if not after:
                break
        version = page["metadata"]["resourceVersion"]
        for key, known in [(key, known) for key, known in self._known.items() if key not in seen]:
            # All pages show one moment; what this process wrote after it is in none of them, and not gone.
            if not later_version(known.resource_version, version):
                self.drop(key, known.uid)
        self._version = version

    def _take(self, event: Object) -> None:
        self.last_event = self._clock()
        item = event["object"]
        if event["type"] != "BOOKMARK" and (read := self._readable(item)) is not None:
            if event["type"] == "DELETED":
                self.drop(read.key, read.uid)
            else:
                self.put(read)
        self._version = item["metadata"]["resourceVersion"]

    def _readable(self, item: Mapping[str, Any]) -> T | None:
        """One object that can't be read must not stop the others."""
        try:
            return self._read(item)
        except (KeyError, ValueError, McpTasksError) as error:
            meta = item.get("metadata", {})
            logger.warning("%s %s can't be read: %r; left out", self._kind.name, meta.get("name"), error)
            return None

    def _tell(self, key: tuple[str, str], item: T | None) -> None:
        for listener in (*self._listeners.get(key, ()), *self._listeners.get(None, ())):
            listener(key, item)
