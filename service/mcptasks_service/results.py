"""The stored results: exact JSON text, checked, and kept for a while because clients read them more than once."""

import hashlib
from collections import OrderedDict

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, NotFound
from mcptasks_crds.kinds import RESULT
from mcptasks_crds.record import TaskRecord
from mcptasks_service.errors import ResultNotReady, TaskNotFound, Unavailable
from mcptasks_service.store import unavailable


class Results:
    """Reads of MCPTaskResults, with a cache of ``limit`` bytes, least recently read first out."""

    def __init__(self, api: Api, limit: int) -> None:
        self._api, self._limit = api, limit
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self.size = 0
        """Bytes kept now."""

    async def read(self, task: TaskRecord) -> bytes:
        """The result of a task that has one.

        Raises:
            ResultNotReady: it has none.
            TaskNotFound: it went away while it was read.
            Unavailable: it can't be read now, or what is stored is not what the task names.
        """
        ref = task.result
        if ref is None or ref.name is None:
            raise ResultNotReady(task.task_id, task.state)
        if (kept := self._kept.get(ref.sha256)) is not None:
            self._kept.move_to_end(ref.sha256)
            return kept
        try:
            stored = await self._api.get(RESULT, task.namespace, ref.name)
        except NotFound:
            raise TaskNotFound(task.task_id) from None
        except ApiFailure as error:
            raise unavailable(error) from error
        text = str(stored["spec"]["result"]).encode()
        if hashlib.sha256(text).hexdigest() != ref.sha256:
            raise Unavailable(f"The stored result of task {task.task_id!r} is damaged: its checksum differs")
        self.keep(ref.sha256, text)
        return text

    def keep(self, sha256: str, text: bytes) -> None:
        """Remember a result under its checksum; equal results share their bytes."""
        if len(text) > self._limit // 4 or sha256 in self._kept:
            return
        self._kept[sha256] = text
        self.size += len(text)
        while self.size > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self.size -= len(dropped)
