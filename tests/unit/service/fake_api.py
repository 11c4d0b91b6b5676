"""A Kubernetes API in memory, as far as the service uses one: several replicas can share it."""

import asyncio
import copy
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Self

from mcptasks_crds.api import Object
from mcptasks_crds.ending import ended
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, NotFound
from mcptasks_crds.kinds import RESULT, TASK, TOOL, Kind
from mcptasks_crds.lifecycle import State
from mcptasks_crds.record import record
from mcptasks_crds.result import new_result, result_ref
from mcptasks_crds.task import TaskError
from mcptasks_crds.times import render

NAMESPACE = "default"


class FakeApi:
    """Objects by plural and name, one resourceVersion for all, and everything that happened, for watches."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.objects: dict[tuple[str, str], Object] = {}
        self.log: list[tuple[str, Object]] = []
        self.news = asyncio.Condition()
        self.requests: list[str] = []
        self.away = False
        """Unreachable: every request fails."""
        self.gate: asyncio.Event | None = None
        """If set, a create waits for it."""
        self.at_gate = asyncio.Event()
        """Set when a create waits."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def create(self, kind: Kind, namespace: str, body: Object, *, dry_run: bool = False) -> Object:
        self._asked("create", kind)
        if self.gate is not None:
            self.at_gate.set()
            await self.gate.wait()
        key = (kind.plural, body["metadata"]["name"])
        if key in self.objects:
            raise AlreadyExists(409, "AlreadyExists", f"{key[1]} already exists")
        item = {"apiVersion": kind.api_version, "kind": kind.name, **copy.deepcopy(body)}
        item["metadata"] |= {
            "namespace": namespace,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": render(self.now),
        }
        return await self._put("ADDED", key, item)

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        self._asked("get", kind)
        if (item := self.objects.get((kind.plural, name))) is None:
            raise NotFound(404, "NotFound", f"{name} not found")
        return copy.deepcopy(item)

    async def list(
        self, kind: Kind, namespace: str | None, *, labels: str = "", limit: int = 500, after: str = ""
    ) -> Object:
        self._asked("list", kind)
        name, _, value = labels.partition("=")
        found = [
            copy.deepcopy(item)
            for (plural, _), item in self.objects.items()
            if plural == kind.plural and (not name or item["metadata"].get("labels", {}).get(name) == value)
        ]
        return {"items": found, "metadata": {"resourceVersion": str(len(self.log))}}

    async def watch(
        self, kind: Kind, namespace: str | None, resource_version: str, *, labels: str = ""
    ) -> AsyncIterator[Object]:
        seen = int(resource_version)
        while True:
            async with self.news:
                while len(self.log) <= seen:
                    await self.news.wait()
                events, seen = self.log[seen:], len(self.log)
            for what, item in events:
                if item["kind"] == kind.name:
                    yield {"type": what, "object": copy.deepcopy(item)}

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> Object:
        self._asked("patch", kind)
        if (item := self.objects.get((kind.plural, name))) is None:
            raise NotFound(404, "NotFound", f"{name} not found")
        if resource_version not in (None, item["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", "the object has been modified")
        item = copy.deepcopy(item)
        item["status"] = {**item.get("status", {}), **body["status"]}
        return await self._put("MODIFIED", (kind.plural, name), item)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str | None = None) -> None:
        self._asked("delete", kind)
        if (item := self.objects.pop((kind.plural, name), None)) is None:
            raise NotFound(404, "NotFound", f"{name} not found")
        await self._put("DELETED", None, item)

    # What the operator and platform teams do.

    async def offer(self, name: str, **spec: Any) -> None:
        """Write an MCPTool."""
        spec = {"description": f"Runs {name}", "job": {"template": {}}, **spec}
        with suppress(NotFound):
            await self.delete(TOOL, NAMESPACE, name)
        await self.create(TOOL, NAMESPACE, {"metadata": {"name": name}, "spec": spec})

    async def task(self, task_id: str | None = None) -> Object:
        """The one task there is, or the one of an id."""
        tasks = [o for (plural, _), o in self.objects.items() if plural == TASK.plural]
        return next(o for o in tasks if task_id in (None, o["spec"]["taskId"]))

    def tasks(self) -> int:
        return sum(plural == TASK.plural for plural, _ in self.objects)

    async def made(self, count: int = 1) -> None:
        """Wait until there are so many tasks."""
        async with self.news, asyncio.timeout(5):
            await self.news.wait_for(lambda: self.tasks() >= count)

    async def work(self, task_id: str | None = None, **progress: Any) -> None:
        """The task runs, and its worker reports."""
        task = await self.task(task_id)
        status: Object = {"state": "working", "startedAt": render(self.now), "lastUpdatedAt": render(self.now)}
        await self._status(task, {**status, **({"progress": progress} if progress else {})})

    async def complete(self, task_id: str | None = None, text: str = '{"content":[]}') -> None:
        """The task ends with a result."""
        task = record(await self.task(task_id))
        is_error = bool(json.loads(text).get("isError"))
        body = new_result(task.name, task.uid, text, is_error=is_error)
        ref = result_ref(await self.create(RESULT, NAMESPACE, body))
        reason = "ToolError" if is_error else "Succeeded"
        status = ended(task, State.COMPLETED, now=self.now, reason=reason, message="done", result=ref)
        await self._status(await self.task(task_id), status)

    async def fail(
        self, task_id: str | None = None, *, error: TaskError | None = None, state: State = State.FAILED
    ) -> None:
        """The task ends without a result."""
        task = await self.task(task_id)
        status = ended(record(task), state, now=self.now, reason="ImagePull", message="no such image", error=error)
        await self._status(task, status)

    async def _status(self, task: Object, status: Object) -> None:
        await self.patch(TASK, NAMESPACE, task["metadata"]["name"], {"status": status}, subresource="status")

    async def _put(self, what: str, key: tuple[str, str] | None, item: Object) -> Object:
        async with self.news:
            item["metadata"]["resourceVersion"] = str(len(self.log) + 1)
            if key is not None:
                self.objects[key] = item
            self.log.append((what, copy.deepcopy(item)))
            self.news.notify_all()
        return copy.deepcopy(item)

    def _asked(self, verb: str, kind: Kind) -> None:
        if self.away:
            raise ApiFailure(0, "Unreachable", "no route to host")
        self.requests.append(f"{verb} {kind.plural}")
