"""Who may have a Job now: a tool's concurrency, in all and for each owner, first come first served.

A task that waits for its owner's share does not hold up those of other owners.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcptasks_crds.record import TaskRecord
from mcptasks_crds.tool import Concurrency
from mcptasks_operator.decide import Turn

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class _Line:
    """One tool's: who has a slot, and each owner's queue, a heap of (created, name)."""

    limits: Concurrency = field(default_factory=Concurrency)
    held: dict[Key, str] = field(default_factory=dict)
    of_owner: Counter[str] = field(default_factory=Counter)
    queues: dict[str, list[tuple[float, Key]]] = field(default_factory=dict)
    waiting: dict[Key, str] = field(default_factory=dict)

    def hold(self, key: Key, owner: str) -> None:
        self.waiting.pop(key, None)
        if key not in self.held:
            self.held[key] = owner
            self.of_owner[owner] += 1

    def release(self, key: Key) -> bool:
        self.waiting.pop(key, None)
        owner = self.held.pop(key, None)
        if owner is None:
            return False
        self.of_owner[owner] -= 1
        if not self.of_owner[owner]:
            del self.of_owner[owner]
        return True

    def wait(self, key: Key, owner: str, created: float) -> None:
        if key not in self.held and key not in self.waiting:
            self.waiting[key] = owner
            heapq.heappush(self.queues.setdefault(owner, []), (created, key))

    def admit(self) -> Iterator[Key]:
        """Give the free slots away, in order."""
        while self.waiting and (self.limits.total is None or len(self.held) < self.limits.total):
            heads = [(queue[0], owner) for owner in list(self.queues) if (queue := self._open(owner))]
            if not heads:
                return
            (_, key), owner = min(heads)
            heapq.heappop(self.queues[owner])
            self.hold(key, owner)
            yield key

    def _open(self, owner: str) -> list[tuple[float, Key]] | None:
        """The queue of an owner who may have another slot, without those at its head who wait no longer."""
        queue = self.queues[owner]
        while queue and queue[0][1] not in self.waiting:
            heapq.heappop(queue)
        if not queue:
            del self.queues[owner]
            return None
        most = self.limits.per_owner
        return queue if most is None or self.of_owner[owner] < most else None


class Slots:
    """The slots of all tools. Nothing is given away before `open`: the order is known once all tasks are."""

    def __init__(self) -> None:
        self._lines: dict[Key, _Line] = {}
        self._open = False

    def open(self) -> list[Key]:
        """Begin to give slots away; the tasks that have one now."""
        self._open = True
        return [key for line in self._lines.values() for key in line.admit()]

    def limit(self, tool: Key, limits: Concurrency) -> list[Key]:
        """Set a tool's limits; the tasks that have a slot by that."""
        line = self._lines.setdefault(tool, _Line())
        line.limits = limits
        return self._admitted(line)

    def place(self, task: TaskRecord, *, running: bool) -> list[Key]:
        """Take note of a task: it has ended, it runs, or it waits. The tasks that have a slot by that."""
        line = self._lines.setdefault((task.namespace, task.tool), _Line())
        if task.terminal or task.deleting:
            line.release(task.key)
        elif running:
            line.hold(task.key, task.owner_key)
        else:
            line.wait(task.key, task.owner_key, task.created)
        return self._admitted(line)

    def remove(self, task: TaskRecord) -> list[Key]:
        """Forget a task; the tasks that have a slot by that."""
        line = self._lines.get((task.namespace, task.tool))
        if line is None:
            return []
        line.release(task.key)
        admitted = self._admitted(line)
        if not line.held and not line.waiting and line.limits == Concurrency():
            del self._lines[task.namespace, task.tool]  # also of tools that never were
        return admitted

    def turn(self, task: TaskRecord) -> Turn:
        """Whether it is this task's turn."""
        line = self._lines.get((task.namespace, task.tool), _Line())
        if task.key in line.held:
            return Turn()
        total, most = line.limits.total, line.limits.per_owner
        if total is not None and len(line.held) >= total:
            return Turn(False, f"the tool runs {len(line.held)} of at most {total} tasks")
        if most is not None and line.of_owner[task.owner_key] >= most:
            return Turn(False, f"the owner runs {line.of_owner[task.owner_key]} of at most {most} tasks of the tool")
        return Turn(False, "earlier tasks go first")

    def usage(self) -> Iterator[tuple[Key, int, int, int | None]]:
        """Of each tool: slots in use, tasks that wait, slots in all (None = unlimited)."""
        for tool, line in self._lines.items():
            yield tool, len(line.held), len(line.waiting), line.limits.total

    def counts(self, tool: Key) -> tuple[int, int]:
        """Of one tool: slots in use, tasks that wait."""
        line = self._lines.get(tool)
        return (len(line.held), len(line.waiting)) if line else (0, 0)

    def _admitted(self, line: _Line) -> list[Key]:
        return list(line.admit()) if self._open else []
