"""What can be done with tasks, whatever the dialect. Knows no wire."""

import asyncio
import math
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from mcptasks_crds.arguments import encoded
from mcptasks_crds.ending import ended
from mcptasks_crds.errors import AlreadyExists, Conflict, InvalidValue, NotFound, Refused
from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import (
    LABEL_CALL,
    LABEL_OWNER,
    LABEL_TOOL,
    call_hash,
    owner_hash,
    owner_key,
    session_hash,
    task_name,
)
from mcptasks_crds.reasons import Reason
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.retention import default_retention, span
from mcptasks_crds.task import TASK_ID_LIMIT, Call, MCPTask, Owner, Retention, TaskSpec
from mcptasks_crds.times import render
from mcptasks_crds.tool import MCPTool
from mcptasks_service import audit
from mcptasks_service.callers import ANYONE, Caller, anonymous
from mcptasks_service.catalogue import Catalogue
from mcptasks_service.errors import (
    ArgumentsInvalid,
    InvalidParams,
    LimitExceeded,
    TaskEnded,
    TaskExists,
    TaskNotFound,
    ToolNotFound,
    Unavailable,
    shown,
)
from mcptasks_service.index import TaskIndex
from mcptasks_service.informer import Informer
from mcptasks_service.limits import Limits
from mcptasks_service.metrics import Metrics
from mcptasks_service.results import Results
from mcptasks_service.store import Store

WRITE_TRIES = 8
"""How often a status is decided again after somebody else wrote first."""


@dataclass(frozen=True, slots=True)
class NewTask:
    """What a client asks for."""

    tool: str
    arguments: dict[str, Any]
    origin: str
    """The dialect: sep-1686, 2025-11-25 or 2026-07-28."""
    task_id: str | None = None
    """The requestor's own id; None = 128 random bits are made."""
    retention: Retention | Literal["default", "unlimited"] = "default"
    """What the client asked for; the tool's maximum cuts it."""
    plain: bool = False
    """An ordinary call, which is not listed."""
    call: str | None = None
    """`names.call_hash` of session and request."""


class Tasks:
    """The use cases."""

    def __init__(
        self,
        *,
        store: Store,
        informer: Informer[TaskRecord],
        index: TaskIndex,
        catalogue: Catalogue,
        results: Results,
        limits: Limits,
        metrics: Metrics,
        clock: Callable[[], float],
        argument_limit: int,
    ) -> None:
        self.catalogue = catalogue
        self._store, self._informer, self._index = store, informer, index
        self._results, self._limits, self._metrics = results, limits, metrics
        self._clock, self._argument_limit = clock, argument_limit
        self._creating: Counter[str] = Counter()
        self._hits = metrics.lookups.labels(outcome="hit")

    async def create(self, caller: Caller, new: NewTask) -> TaskRecord:
        """Make a task; when this returns, any replica can read it.

        Raises:
            ToolNotFound, InvalidParams, ArgumentsInvalid, LimitExceeded, TaskExists, Unavailable
        """
        owner = caller.owner if new.task_id is not None or caller.identified else ANYONE
        key = owner_key(owner)
        with self._counted(key) as open_tasks:
            try:
                offered = self.catalogue.offered(new.tool)
                await self._limits.creation(caller, offered.tool, open_tasks)
                arguments = self._arguments(new)
                offered.check(new.arguments)
                task_id = secrets.token_urlsafe(16) if new.task_id is None else _fit(new.task_id)
            except (ToolNotFound, InvalidParams, LimitExceeded) as error:
                audit.refusal(getattr(error, "reason", type(error).__name__), caller, new.tool)
                raise
            return await self._create(caller, new, owner, task_id, arguments, offered.tool)

    @contextmanager
    def _counted(self, key: str) -> Iterator[int]:
        """How many tasks of an owner are open or on their way: without the latter a burst passes the limit unseen."""
        self._creating[key] += 1
        try:
            yield self._index.open_count(key) + self._creating[key] - 1
        finally:
            self._creating[key] -= 1
            if not self._creating[key]:
                del self._creating[key]

    async def _create(
        self, caller: Caller, new: NewTask, owner: Owner, task_id: str, arguments: str, tool: MCPTool
    ) -> TaskRecord:
        key = owner_key(owner)
        task = MCPTask(
            spec=TaskSpec(
                task_id=task_id,
                owner=owner,
                request=Call(name=new.tool, arguments=arguments),
                origin=new.origin,
                plain=new.plain or None,
                retention=granted(new.retention, tool),
                call=new.call,
                created_at=render(self._clock()),
            )
        )
        body = {
            "metadata": {
                "name": task_name(key, task_id),
                "labels": {
                    LABEL_TOOL: new.tool,
                    LABEL_OWNER: owner_hash(key),
                    **({LABEL_CALL: new.call} if new.call else {}),
                },
            },
            "spec": task.spec.wire(),
        }
        try:
            created = await self._store.create(body)
        except AlreadyExists:
            audit.refusal("task_exists", caller, body["metadata"]["name"])
            raise TaskExists(task_id) from None
        except Refused as error:
            raise InvalidParams(f"The task was refused: {error}") from error
        self._metrics.created.labels(tool=new.tool, origin=new.origin).inc()
        audit.task_event("created", caller, created)
        return created

    async def get(self, caller: Caller, task_id: str) -> TaskRecord:
        """One task as it is now.

        Raises:
            TaskNotFound: unknown, expired, or not this caller's.
            LimitExceeded, Unavailable
        """
        await self._limits.poll(caller)
        return await self._find(caller, task_id)

    async def result(self, caller: Caller, task: TaskRecord) -> bytes:
        """The exact JSON text of a task's result, for a caller who has found the task.

        Raises:
            ResultNotReady, TaskNotFound, Unavailable
        """
        text = await self._results.read(task)
        audit.task_event("result_read", caller, task)
        return text

    async def changes(self, task: TaskRecord) -> AsyncIterator[TaskRecord]:
        """The present state of a task, then each later one, up to and with its end.

        Raises:
            TaskNotFound: it was deleted.
        """
        async with aclosing(self._informer.changes(task.key)) as states:
            async for state in states:
                if state is None or state.uid != task.uid:
                    raise TaskNotFound(task.task_id)
                yield state
                if state.terminal:
                    return

    def has_listed(self, caller: Caller) -> bool:
        """Whether a list of the caller's own tasks would hold any."""
        return any(not self._store.gone(task) for task in self._index.listed(caller.key, _position(None)))

    async def list(self, caller: Caller, after: str | None, limit: int) -> tuple[list[TaskRecord], str | None]:
        """One page of the caller's own tasks, oldest first, and where the next begins.

        Raises:
            InvalidParams: ``after`` is not what an earlier page gave.
            LimitExceeded
        """
        await self._limits.poll(caller)
        rest = self._index.listed(caller.key, _position(after))
        found = [*islice((task for task in rest if not self._store.gone(task)), limit + 1)]
        page = found[:limit]
        return page, f"{page[-1].created!r} {page[-1].name}" if len(found) > limit else None

    async def cancel(self, caller: Caller, task_id: str, reason: str | None = None) -> TaskRecord:
        """Cancel a task at once; the operator stops its work.

        Raises:
            TaskNotFound, TaskEnded, Unavailable
        """
        task = await self._cancel(await self._find(caller, task_id), reason)
        audit.task_event("cancelled", caller, task)
        return task

    async def cancel_call(self, session: str, request_id: str | int) -> None:
        """Cancel the task of one request of a session (R-7.1); without one, or after its end, nothing (R-7.2).

        Most requests that are cancelled never made a task: asking the API server for it counts as a look-up.

        Raises:
            Unavailable
        """
        if not session:  # request ids mean nothing outside a session
            return
        call = call_hash(session, request_id)
        try:
            if (task := self._index.of_call(call)) is None:
                await self._limits.lookup(anonymous(session))
                task = await self._store.fetch_call(call)
            if task is not None:
                await self._cancel(task, None)
        except (LimitExceeded, TaskEnded, TaskNotFound):
            pass

    async def delete(self, caller: Caller, task_id: str) -> None:
        """Remove a task, its result, and its work if it still runs (R-2.5).

        Raises:
            TaskNotFound, Unavailable
        """
        task = await self._find(caller, task_id)
        await self._store.delete(task)
        self._metrics.deleted.labels(tool=task.tool).inc()
        audit.task_event("deleted", caller, task)

    async def watch(self, caller: Caller) -> AsyncIterator[TaskRecord]:
        """Every change of a task that the caller, or an unidentified caller's session, has made.

        States that come faster than they are read are skipped, never the last.
        """
        session = session_hash(caller.session) if caller.session else None
        waiting: dict[tuple[str, str], TaskRecord] = {}
        wake = asyncio.Event()

        def changed(key: tuple[str, str], task: TaskRecord | None) -> None:
            if task is not None and not task.plain and self._concerns(task, caller, session):
                waiting[key] = task
                wake.set()

        with self._informer.listen(None, changed):
            while True:
                await wake.wait()
                wake.clear()
                while waiting:
                    yield waiting.pop(next(iter(waiting)))

    @staticmethod
    def _concerns(task: TaskRecord, caller: Caller, session: str | None) -> bool:
        if caller.identified or session is None:
            return caller.identified and task.owner_key == caller.key
        return task.owner_key == caller.key or (task.call or "").startswith(f"{session}.")

    async def _find(self, caller: Caller, task_id: str) -> TaskRecord:
        for key in caller.keys:
            if (task := self._store.known(key, task_id)) is not None:
                self._hits.inc()
                return task
        task = self._index.by_hand(task_id)
        if task is not None and task.owner_key in caller.keys and not self._store.gone(task):
            self._hits.inc()
            return task
        await self._limits.lookup(caller)
        for key in caller.keys:
            if (task := await self._store.fetch(key, task_id)) is not None:
                self._metrics.lookups.labels(outcome="fetched").inc()
                return task
        self._metrics.lookups.labels(outcome="unknown").inc()
        audit.refusal("task_not_found", caller, task_id)
        raise TaskNotFound(task_id)

    async def _cancel(self, task: TaskRecord, reason: str | None) -> TaskRecord:
        message = f"cancelled by the requestor: {reason}" if reason else "cancelled by the requestor"
        for _ in range(WRITE_TRIES):
            if task.terminal:
                raise TaskEnded(task.task_id, task.state)
            status = ended(task, State.CANCELLED, now=self._clock(), reason=Reason.CANCELLED, message=message)
            try:
                done = await self._store.patch_status(task, status)
            except NotFound:
                raise TaskNotFound(task.task_id) from None
            except (Conflict, Refused):
                fresh = await self._store.refresh(task)
                if fresh is None:
                    raise TaskNotFound(task.task_id) from None
                task = fresh
            else:
                self._metrics.cancelled.labels(tool=task.tool).inc()
                return done
        raise Unavailable(f"Task {task.task_id!r} changes faster than it can be cancelled; try again")

    def _arguments(self, new: NewTask) -> str:
        try:
            return encoded(new.tool, new.arguments, self._argument_limit)
        except InvalidValue as error:
            raise ArgumentsInvalid(str(error)) from error


def granted(asked: Retention | Literal["default", "unlimited"], tool: MCPTool) -> Retention | None:
    """The retention that a task gets (R-5.1): what was asked or the tool's default, cut to the tool's maximum.

    None = unlimited.
    """
    limits = tool.spec.retention
    if asked == "default":
        return default_retention(limits)
    most = span(limits.max)
    if asked == "unlimited":
        return None if most is None else Retention(after="Finish", milliseconds=most)
    if most is not None and asked.milliseconds > most:
        return Retention(after=asked.after, milliseconds=most)
    return asked


def _fit(task_id: str) -> str:
    """A requestor's own id, if an MCPTask can carry it.

    Raises:
        InvalidParams
    """
    if not 1 <= len(task_id) <= TASK_ID_LIMIT:
        raise InvalidParams(f"Invalid taskId: it has {len(task_id)} characters; it must have 1 to {TASK_ID_LIMIT}")
    try:
        task_id.encode()
    except UnicodeEncodeError:
        raise InvalidParams(f"Invalid taskId: {shown(task_id)} holds half a surrogate pair, which is no text") from None
    return task_id


def _position(after: str | None) -> tuple[float, str]:
    if after is None:
        return (-math.inf, "")
    created, _, name = after.partition(" ")
    try:
        if name and math.isfinite(position := float(created)):
            return position, name
    except ValueError:
        pass
    raise InvalidParams(f"Invalid cursor: {shown(after)}; use a nextCursor as it came, or none")
