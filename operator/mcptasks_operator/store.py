"""Everything the operator knows, slim, and told to whoever asks for changes.

Each ``put`` takes a state as "this is how it is now", never as an edge: after a new list, events for what exists come
again, and a stale one must not replace a later state.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import TaskRecord
from mcptasks_operator.decide import Situation
from mcptasks_operator.observe import JobState, PodState, ToolState, later
from mcptasks_operator.slim import slim
from mcptasks_operator.slots import Key, Slots

TOMBSTONES = 20_000
"""Uids of deleted objects that are remembered, so that a late answer to a write of ours does not raise the dead."""


class _Child(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def task_uid(self) -> str: ...


C = TypeVar("C", bound=_Child)
Listener = Callable[[Key], None]


class Store:
    """Tasks and tools by namespace and name; Jobs and pods by their task's uid."""

    def __init__(self, task_changed: Listener, tool_changed: Listener) -> None:
        self._task_changed, self._tool_changed = task_changed, tool_changed
        self.slots = Slots()
        self.states: Counter[tuple[str, State]] = Counter()
        """Tasks by tool and state."""
        self._tasks: dict[Key, TaskRecord] = {}
        self._unfinished: dict[Key, TaskRecord] = {}
        self._keys: dict[str, Key] = {}
        self._tools: dict[Key, ToolState] = {}
        self._jobs: dict[str, dict[str, JobState]] = {}
        self._pods: dict[str, dict[str, PodState]] = {}
        self._gone_jobs: dict[str, set[str]] = {}
        self._dead: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tasks)

    def tasks(self) -> Iterator[TaskRecord]:
        """All tasks."""
        return iter(self._tasks.values())

    def unfinished(self) -> Iterator[TaskRecord]:
        """The tasks that have not ended: few, where 100,000 that have are kept."""
        return iter(self._unfinished.values())

    def tools(self) -> Iterator[ToolState]:
        """All tools."""
        return iter(self._tools.values())

    def jobs(self) -> Iterator[JobState]:
        """All Jobs."""
        return (job for jobs in self._jobs.values() for job in jobs.values())

    def pods(self) -> Iterator[PodState]:
        """All pods."""
        return (pod for pods in self._pods.values() for pod in pods.values())

    def task(self, key: Key) -> TaskRecord | None:
        """One task."""
        return self._tasks.get(key)

    def tool(self, key: Key) -> ToolState | None:
        """One tool."""
        return self._tools.get(key)

    def job(self, task_uid: str, name: str) -> JobState | None:
        """One Job."""
        return self._jobs.get(task_uid, {}).get(name)

    def situation(self, key: Key) -> Situation | None:
        """All that bears on one task."""
        if (task := self._tasks.get(key)) is None:
            return None
        tool = self._tools.get((task.namespace, task.tool))
        return Situation(
            task=task,
            jobs=self._jobs.get(task.uid, {}),
            pods=tuple(self._pods.get(task.uid, {}).values()),
            tool=tool.spec if tool else None,
            turn=self.slots.turn(task),
            gone=frozenset(self._gone_jobs.get(task.uid, ())),
        )

    def put_task(self, task: TaskRecord) -> bool:
        """Take in a task; False if it is no news."""
        old = self._tasks.get(task.key)
        if task.uid in self._dead or (old is not None and not task.newer_than(old)):
            return False
        task = slim(task)
        if old is not None:
            self._count(old, -1)
            if old.uid != task.uid:
                self._forget(old)
        self._tasks[task.key] = task
        if task.terminal:
            self._unfinished.pop(task.key, None)
        else:
            self._unfinished[task.key] = task
        self._keys[task.uid] = task.key
        self._count(task, 1)
        self._place(task)
        self._task_changed(task.key)
        return True

    def drop_task(self, key: Key, uid: str) -> TaskRecord | None:
        """Forget one life of a task."""
        self._bury(uid)
        old = self._tasks.get(key)
        if old is None or old.uid != uid:
            return None
        del self._tasks[key]
        self._unfinished.pop(key, None)
        self._count(old, -1)
        self._forget(old)
        return old

    def put_tool(self, tool: ToolState) -> bool:
        """Take in a tool; False if it is no news."""
        old = self._tools.get(tool.key)
        if tool.uid in self._dead or (old is not None and not later(tool.version, old.version)):
            return False
        self._tools[tool.key] = tool
        self._wake(self.slots.limit(tool.key, tool.spec.concurrency))
        self._tool_changed(tool.key)
        return True

    def drop_tool(self, key: Key, uid: str) -> None:
        """Forget one life of a tool."""
        self._bury(uid)
        if (old := self._tools.get(key)) is not None and old.uid == uid:
            del self._tools[key]

    def put_job(self, job: JobState) -> bool:
        """Take in a Job; False if it is no news."""
        old = self._jobs.get(job.task_uid, {}).get(job.name)
        if not self._put(self._jobs, job.with_findings_of(old)):
            return False
        if old is None and (key := self._keys.get(job.task_uid)) is not None:
            self._place(self._tasks[key])
        self._touch(job.task_uid)
        return True

    def found(self, job: JobState) -> None:
        """Keep what was found out about a Job, which no watch event tells."""
        jobs = self._jobs.get(job.task_uid, {})
        if (now := jobs.get(job.name)) is not None:
            jobs[job.name] = now.with_findings_of(job)
            self._touch(job.task_uid)

    def deleting(self, job: JobState) -> None:
        """We have deleted it; the watch will tell so too."""
        jobs = self._jobs.get(job.task_uid, {})
        if (now := jobs.get(job.name)) is not None and now.uid == job.uid:
            jobs[job.name] = replace(now, deleting=True)
            self._touch(job.task_uid)

    def drop_job(self, task_uid: str, name: str, uid: str) -> None:
        """Forget a Job, but not that it was: its attempt must not be made again."""
        if self._drop(self._jobs, task_uid, name, uid) and task_uid in self._keys:
            self._gone_jobs.setdefault(task_uid, set()).add(name)
            self._touch(task_uid)

    def put_pod(self, pod: PodState) -> bool:
        """Take in a pod; False if it is no news."""
        old = self._pods.get(pod.task_uid, {}).get(pod.name)
        if not self._put(self._pods, pod.after(old)):
            return False
        self._touch(pod.task_uid)
        return True

    def drop_pod(self, task_uid: str, name: str, uid: str) -> None:
        """Forget a pod."""
        if self._drop(self._pods, task_uid, name, uid):
            self._touch(task_uid)

    def open_slots(self) -> None:
        """Begin to give concurrency slots away; all tasks are known."""
        self._wake(self.slots.open())

    def _put(self, children: dict[str, dict[str, C]], child: C) -> bool:
        of_task = children.setdefault(child.task_uid, {})
        old = of_task.get(child.name)
        if child.uid in self._dead or (
            old is not None and old.uid == child.uid and not later(child.version, old.version)
        ):
            if not of_task:
                del children[child.task_uid]
            return False
        of_task[child.name] = child
        return True

    def _drop(self, children: dict[str, dict[str, C]], task_uid: str, name: str, uid: str) -> bool:
        self._bury(uid)
        of_task = children.get(task_uid, {})
        if (old := of_task.get(name)) is None or old.uid != uid:
            return False
        del of_task[name]
        if not of_task:
            del children[task_uid]
        return True

    def _place(self, task: TaskRecord) -> None:
        # A task that goes into a second attempt keeps its slot while it has no Job.
        running = task.uid in self._jobs or task.job_uid is not None or task.state is not State.SUBMITTED
        self._wake(self.slots.place(task, running=running or task.attempt > 1))

    def _forget(self, task: TaskRecord) -> None:
        self._keys.pop(task.uid, None)
        self._gone_jobs.pop(task.uid, None)
        self._wake(self.slots.remove(task))

    def _count(self, task: TaskRecord, by: int) -> None:
        key = task.tool, task.state
        self.states[key] += by
        if not self.states[key]:
            del self.states[key]

    def _touch(self, task_uid: str) -> None:
        if (key := self._keys.get(task_uid)) is not None:
            self._task_changed(key)

    def _wake(self, keys: list[Key]) -> None:
        for key in keys:
            self._task_changed(key)

    def _bury(self, uid: str) -> None:
        self._dead[uid] = None
        while len(self._dead) > TOMBSTONES:
            self._dead.popitem(last=False)
