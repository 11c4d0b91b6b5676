"""Tasks as objects: read from the informer, written to the API server, each answer put into the informer at once."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mcptasks_crds.api import Api, Object
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, McpTasksError, NotFound, Refused
from mcptasks_crds.kinds import TASK
from mcptasks_crds.names import LABEL_CALL, task_name
from mcptasks_crds.record import TaskRecord, record
from mcptasks_service.errors import Unavailable
from mcptasks_service.informer import Informer

logger = logging.getLogger(__name__)

RETRY_PAUSES = (0.1, 0.4, 1.0)
"""Seconds before each further try of a create whose answer did not come: it may have landed, and its name is fixed."""


class Store:
    """The MCPTasks of one namespace."""

    def __init__(self, api: Api, informer: Informer[TaskRecord], namespace: str, clock: Callable[[], float]) -> None:
        self._api, self._informer, self._namespace, self._clock = api, informer, namespace, clock

    def known(self, owner_key: str, task_id: str) -> TaskRecord | None:
        """The task as this replica knows it, unless it has run out."""
        task = self._informer.get(self._namespace, task_name(owner_key, task_id))
        return task if task is not None and _is(task, owner_key, task_id) and not self.gone(task) else None

    def latest(self, task: TaskRecord) -> TaskRecord | None:
        """The newest state of ``task`` that this replica knows; None if it is gone."""
        known = self._informer.get(*task.key)
        return known if known is not None and known.uid == task.uid else None

    def gone(self, task: TaskRecord) -> bool:
        """Whether the task counts as removed: its time is over, though the operator has yet to delete it."""
        return task.deleting or (task.terminal and task.expires is not None and task.expires <= self._clock())

    async def fetch(self, owner_key: str, task_id: str) -> TaskRecord | None:
        """The task as the API server has it: another replica may have made it a moment ago.

        Raises:
            Unavailable: the API server can't say.
        """
        try:
            task = self._took(await self._api.get(TASK, self._namespace, task_name(owner_key, task_id)))
        except NotFound:
            return None
        except ApiFailure as error:
            raise unavailable(error) from error
        return task if task is not None and _is(task, owner_key, task_id) else None

    async def refresh(self, task: TaskRecord) -> TaskRecord | None:
        """The same task as the API server has it; None if it is gone, or another life of its name.

        Raises:
            Unavailable
        """
        try:
            fresh = self._took(await self._api.get(TASK, task.namespace, task.name))
        except NotFound:
            self._informer.drop(task.key, task.uid)
            return None
        except ApiFailure as error:
            raise unavailable(error) from error
        return fresh if fresh is not None and fresh.uid == task.uid else None

    async def fetch_call(self, call: str) -> TaskRecord | None:
        """The task of one request, from the API server: its creation may not have reached this replica's watch.

        Raises:
            Unavailable
        """
        try:
            page = await self._api.list(TASK, self._namespace, labels=f"{LABEL_CALL}={call}")
        except ApiFailure as error:
            raise unavailable(error) from error
        tasks = [task for item in page["items"] if (task := self._took(item)) is not None]
        return max(tasks, key=lambda task: task.created, default=None)

    async def create(self, body: Object) -> TaskRecord:
        """POST an MCPTask; a try whose answer got lost is repeated and recognised.

        Raises:
            AlreadyExists: the name is taken by a task that this call did not make.
            Refused: the API server finds the object invalid.
            Unavailable
        """
        tried = 0
        while True:
            try:
                return self._put(await self._api.create(TASK, self._namespace, body))
            except AlreadyExists:
                if tried and (mine := await self._mine(body)) is not None:
                    return mine
                raise
            except Refused:
                raise
            except ApiFailure as error:
                if tried == len(RETRY_PAUSES) or not error.retryable:
                    raise unavailable(error) from error
                await asyncio.sleep(RETRY_PAUSES[tried])
                tried += 1

    async def patch_status(self, task: TaskRecord, status: dict[str, Any]) -> TaskRecord:
        """Patch the status of exactly the state that ``task`` is.

        Raises:
            Conflict: it has changed since; decide again.
            NotFound: it is gone.
            Refused: the lifecycle rules refuse the move.
            Unavailable
        """
        try:
            answer = await self._api.patch(
                TASK,
                task.namespace,
                task.name,
                {"status": status},
                subresource="status",
                resource_version=task.resource_version,
            )
        except (Conflict, NotFound, Refused):
            raise
        except ApiFailure as error:
            raise unavailable(error) from error
        return self._put(answer)

    async def delete(self, task: TaskRecord) -> None:
        """Delete exactly this life of the task, and with it its Job and its result; gone already is fine.

        Raises:
            Unavailable
        """
        try:
            await self._api.delete(TASK, task.namespace, task.name, uid=task.uid)
        except NotFound:
            pass
        except Conflict:  # the name has a new life, which is none of ours
            return
        except ApiFailure as error:
            raise unavailable(error) from error
        self._informer.drop(task.key, task.uid)

    async def _mine(self, body: Object) -> TaskRecord | None:
        """What holds the name, if it is what an earlier try of the same create made."""
        try:
            there = await self._api.get(TASK, self._namespace, body["metadata"]["name"])
        except NotFound:
            return None
        except ApiFailure as error:
            raise unavailable(error) from error
        same = all(there["spec"].get(field) == value for field, value in body["spec"].items())
        return self._took(there) if same else None

    def _put(self, item: Object) -> TaskRecord:
        task = record(item)
        self._informer.put(task)
        return task

    def _took(self, item: Object) -> TaskRecord | None:
        try:
            task = self._put(item)
        except (KeyError, ValueError, McpTasksError) as error:  # as the informer does: left out
            logger.warning("MCPTask %s can't be read: %r", item["metadata"]["name"], error)
            return None
        return None if self.gone(task) else task


def _is(task: TaskRecord, owner_key: str, task_id: str) -> bool:
    """Whether what has the derived name is the task that was meant: an id with a NUL in it can lead to another's."""
    return task.owner_key == owner_key and task.task_id == task_id


def unavailable(error: ApiFailure) -> Unavailable:
    """What a client is told when the API server fails us; the details are for the log."""
    logger.warning("the Kubernetes API failed: %s (HTTP %s %s)", error, error.code, error.reason)
    return Unavailable("The task store can't be reached at the moment; nothing is lost, try again in a few seconds")
