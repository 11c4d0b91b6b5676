"""Where objects live: one SQLite file, one revision counter, everything in memory for reading.

A write is acknowledged after its transaction is in the write-ahead log, so killing the process loses nothing. (A power
cut may lose the last writes: ``synchronous=NORMAL``; this is a development tool.) The log of changes is kept in memory
alone: after a restart an older watch is told 410 and lists again, as every client must be ready to.
"""

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcptasks_crds.errors import McpTasksError
from mcptasks_local.errors import Object, expired

KEPT_EVENTS = 20_000
"""Events kept for watches that begin in the past, and that one watch may lag behind before it is ended."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (resource TEXT, namespace TEXT, name TEXT, body TEXT NOT NULL,
  PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (only_row INTEGER PRIMARY KEY CHECK (only_row = 0), value INTEGER NOT NULL);
INSERT OR IGNORE INTO revision VALUES (0, 1);
"""

Key = tuple[str, str]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class StorageInUse(McpTasksError):
    """Another process serves from this file."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change; ``old`` is the object before it, so that a selector can tell what newly matches."""

    type: EventType
    resource: str
    object: Object
    revision: int
    old: Object | None = None


class Storage:
    """Objects by resource (``jobs.batch``), namespace (empty for cluster-wide kinds) and name.

    What comes out is shared: never change it, copy it.

    Args:
        path: the file; None keeps nothing.

    Raises:
        StorageInUse: another process has the file open.
    """

    def __init__(self, path: Path | None, *, kept_events: int = KEPT_EVENTS) -> None:
        # The lock is held until close, so that two servers never serve diverging revisions from one file.
        self._db = sqlite3.connect(path or ":memory:", timeout=0.5, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._db.close()
            raise StorageInUse(f"{path} is in use by another control plane; stop it, or take another folder") from error
        self._objects: dict[str, dict[Key, Object]] = {}
        for resource, namespace, name, body in self._db.execute("SELECT * FROM objects"):
            self._objects.setdefault(resource, {})[namespace, name] = json.loads(body)
        self.revision: int = self._db.execute("SELECT value FROM revision").fetchone()[0]
        self._oldest = self.revision
        self._kept = kept_events
        self._log: deque[Event] = deque()
        self._watchers: set[_Watcher] = set()

    def close(self) -> None:
        """Release the file; watches end."""
        for watcher in list(self._watchers):
            watcher.end()
        self._db.close()

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """One object."""
        return self._objects.get(resource, {}).get((namespace, name))

    def of(self, resource: str, namespace: str | None = None) -> list[Object]:
        """All objects of a resource, by namespace and name."""
        items = self._objects.get(resource, {})
        return [items[key] for key in sorted(items) if namespace is None or key[0] == namespace]

    def resources(self) -> list[str]:
        """The resources that have objects."""
        return [resource for resource, items in self._objects.items() if items]

    def put(self, resource: str, namespace: str, name: str, body: Object) -> Object:
        """Create or replace; ``metadata.resourceVersion`` of ``body`` is set here. Returns what is stored."""
        items = self._objects.setdefault(resource, {})
        old = items.get((namespace, name))
        revision = self.revision + 1
        body["metadata"]["resourceVersion"] = str(revision)
        values = (resource, namespace, name, json.dumps(body))
        self._commit(revision, "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", values)
        items[namespace, name] = body
        self._emit(Event("MODIFIED" if old else "ADDED", resource, body, revision, old))
        return body

    def remove(self, resource: str, namespace: str, name: str) -> Object | None:
        """Delete. The last state, at the deletion's own revision, goes to the watchers and comes back."""
        if (old := self.get(resource, namespace, name)) is None:
            return None
        revision = self.revision + 1
        statement = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
        self._commit(revision, statement, (resource, namespace, name))
        del self._objects[resource][namespace, name]
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(revision)}}
        self._emit(Event("DELETED", resource, last, revision, old))
        return last

    def as_of(self, resource: str, revision: int) -> dict[Key, Object]:
        """All objects of a resource as they were at a revision.

        Raises:
            ApiError: 410, the revision is older than the log, or of another history.
        """
        if not self._oldest <= revision <= self.revision:
            raise expired(revision, self._oldest)
        items = dict(self._objects.get(resource, {}))
        for event in reversed(self._log):
            if event.revision <= revision:
                break
            if event.resource == resource:
                meta = event.object["metadata"]
                key = meta.get("namespace", ""), meta["name"]
                items.pop(key, None)
                if event.old is not None:
                    items[key] = event.old
        return items

    def watch(self, resource: str | None, since: int | None = None) -> AsyncIterator[Event]:
        """Every event of one resource (None = all) after ``since`` (None = from now on, counted from this call).

        Raises:
            ApiError: 410, ``since`` is older than the log, or of another history.
        """
        backlog: list[Event] = []
        if since is not None and since != self.revision:
            if not self._oldest <= since < self.revision:
                raise expired(since, self._oldest)
            backlog = [event for event in self._log if event.revision > since and resource in (None, event.resource)]
        watcher = _Watcher(resource, backlog, self._kept)
        self._watchers.add(watcher)
        return self._follow(watcher)

    async def _follow(self, watcher: "_Watcher") -> AsyncIterator[Event]:
        try:
            while (event := await watcher.next()) is not None:
                yield event
        finally:
            self._watchers.discard(watcher)

    def _commit(self, revision: int, statement: str, values: tuple[str, ...]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute(statement, values)
            self._db.execute("UPDATE revision SET value = ?", (revision,))
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        self.revision = revision

    def _emit(self, event: Event) -> None:
        self._log.append(event)
        if len(self._log) > self._kept:
            self._oldest = self._log.popleft().revision
        for watcher in self._watchers:
            watcher.push(event)


class _Watcher:
    """The queue of one watch; None in it is its end."""

    def __init__(self, resource: str | None, backlog: list[Event], most: int) -> None:
        self._resource, self._most = resource, most
        self._queue: deque[Event | None] = deque(backlog)
        self._wake = asyncio.Event()

    def push(self, event: Event) -> None:
        if self._resource not in (None, event.resource):
            return
        self._queue.append(event)
        if len(self._queue) > self._most:  # it reads too slowly: it is to list again
            self._queue.clear()
            self._queue.append(None)
        self._wake.set()

    def end(self) -> None:
        self._queue.append(None)
        self._wake.set()

    async def next(self) -> Event | None:
        while not self._queue:
            self._wake.clear()
            await self._wake.wait()
        return self._queue.popleft()
