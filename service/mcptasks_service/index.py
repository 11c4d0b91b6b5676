"""The tasks of a namespace by owner, session, request and openness, kept beside the informer.

An owner's list, its open count and a cancel's target are looked up, not searched for: with 100,000 retained tasks a
scan for each request would stop the loop.
"""

from collections import defaultdict
from collections.abc import Iterator

from mcptasks_crds.record import TaskRecord

Key = tuple[str, str]


class TaskIndex:
    """Listens to the informer; every set holds (namespace, name) keys."""

    def __init__(self) -> None:
        self._records: dict[Key, TaskRecord] = {}
        self._by_owner: defaultdict[str, set[Key]] = defaultdict(set)
        self._open: defaultdict[str, set[Key]] = defaultdict(set)
        self._by_call: dict[str, Key] = {}

    def changed(self, key: Key, task: TaskRecord | None) -> None:
        """Take in one change of the informer."""
        if (old := self._records.pop(key, None)) is not None:
            _discard(self._by_owner, old.owner_key, key)
            _discard(self._open, old.owner_key, key)
            if old.call is not None and self._by_call.get(old.call) == key:
                del self._by_call[old.call]
        if task is not None:
            self._records[key] = task
            self._by_owner[task.owner_key].add(key)
            if not task.terminal:
                self._open[task.owner_key].add(key)
            if task.call is not None and not self._later(task.call, task):
                self._by_call[task.call] = key

    def of_owner(self, owner_key: str) -> Iterator[TaskRecord]:
        """Every task of an owner, in no order."""
        return (self._records[key] for key in self._by_owner.get(owner_key, ()))

    def open_count(self, owner_key: str) -> int:
        """How many tasks of an owner have not ended."""
        return len(self._open.get(owner_key, ()))

    def of_call(self, call: str) -> TaskRecord | None:
        """The task that one request of one session made."""
        key = self._by_call.get(call)
        return None if key is None else self._records[key]

    def _later(self, call: str, task: TaskRecord) -> bool:
        """Whether the request is known to have made a later task: a client that begins again counts from 0 again."""
        other = self.of_call(call)
        return other is not None and other.created > task.created


def _discard(index: defaultdict[str, set[Key]], name: str, key: Key) -> None:
    """Drop a key, and a set that it leaves empty: owners come and go for ever."""
    if (keys := index.get(name)) is not None:
        keys.discard(key)
        if not keys:
            del index[name]
