"""The tasks of a namespace by owner, session, request and openness, kept beside the informer.

An owner's list, its open count and a cancel's target are looked up, not searched for: with 100,000 retained tasks a
scan for each request would stop the loop.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from mcptasks_crds.record import TaskRecord

Key = tuple[str, str]
Place = tuple[float, str, str]
"""Where a task stands in its owner's list: created, name, namespace."""


class TaskIndex:
    """Listens to the informer; every set holds (namespace, name) keys, every list is sorted."""

    def __init__(self) -> None:
        self._records: dict[Key, TaskRecord] = {}
        self._listed: defaultdict[str, list[Place]] = defaultdict(list)
        self._open: defaultdict[str, set[Key]] = defaultdict(set)
        self._by_call: dict[str, Key] = {}
        self._by_hand: dict[str, Key] = {}

    def changed(self, key: Key, task: TaskRecord | None) -> None:
        """Take in one change of the informer."""
        old = self._records.pop(key, None)
        if old is None or task is None or _place(old) != _place(task):  # most changes move nothing
            self._unlist(old)
            self._list(task)
        if old is not None:
            _discard(self._open, old.owner_key, key)
            self._by_hand.pop(old.uid, None)
            if old.call is not None and self._by_call.get(old.call) == key:
                del self._by_call[old.call]
        if task is not None:
            self._records[key] = task
            if task.by_hand:
                self._by_hand[task.uid] = key
            elif not task.terminal:
                self._open[task.owner_key].add(key)
            if task.call is not None and not self._later(task.call, task):
                self._by_call[task.call] = key

    def listed(self, owner_key: str, after: tuple[float, str]) -> Iterator[TaskRecord]:
        """The tasks of an owner behind a place (created, name), oldest first; plain calls are not in it."""
        places = self._listed.get(owner_key, [])
        start = bisect_right(places, after, key=lambda place: place[:2])
        return (self._records[namespace, name] for _, name, namespace in islice(places, start, None))

    def open_count(self, owner_key: str) -> int:
        """How many tasks of an owner have not ended."""
        return len(self._open.get(owner_key, ()))

    def of_call(self, call: str) -> TaskRecord | None:
        """The task that one request of one session made."""
        key = self._by_call.get(call)
        return None if key is None else self._records[key]

    def by_hand(self, uid: str) -> TaskRecord | None:
        """A task that was made with kubectl or the like: its uid is the id by which clients may know it.

        It is in nobody's list, and counts against nobody's limit.
        """
        key = self._by_hand.get(uid)
        return None if key is None else self._records[key]

    def _list(self, task: TaskRecord | None) -> None:
        if task is not None and _listed(task):
            insort(self._listed[task.owner_key], _place(task)[1])

    def _unlist(self, task: TaskRecord | None) -> None:
        if task is None or not _listed(task):
            return
        places = self._listed[task.owner_key]
        del places[bisect_left(places, _place(task)[1])]
        if not places:
            del self._listed[task.owner_key]

    def _later(self, call: str, task: TaskRecord) -> bool:
        """Whether the request is known to have made a later task: a client that begins again counts from 0 again."""
        other = self.of_call(call)
        return other is not None and other.created > task.created


def _listed(task: TaskRecord) -> bool:
    return not task.plain and not task.by_hand


def _place(task: TaskRecord) -> tuple[str, Place, bool]:
    return task.owner_key, (task.created, task.name, task.namespace), _listed(task)


def _discard(index: defaultdict[str, set[Key]], name: str, key: Key) -> None:
    """Drop a key, and a set that it leaves empty: owners come and go for ever."""
    if (keys := index.get(name)) is not None:
        keys.discard(key)
        if not keys:
            del index[name]
