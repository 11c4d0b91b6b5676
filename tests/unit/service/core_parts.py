"""One replica without its wire, over a Kubernetes API in memory that can be made to fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from mcptasks_crds.api import Api, Object
from mcptasks_crds.kinds import JOB, POD, TASK, Kind
from mcptasks_crds.names import AUDIENCE, LABEL_TASK, job_name
from mcptasks_crds.record import TaskRecord, record
from mcptasks_service import core
from mcptasks_service.callers import Caller, anonymous
from mcptasks_service.core import Core
from mcptasks_service.settings import Settings
from mcptasks_service.tasks import NewTask

from .fake_api import NAMESPACE, FakeApi

START = 1_785_000_000.0
BOUND = 5.0
"""Seconds that a test waits at most for what must come."""


@dataclass
class Fault:
    """The next request of one kind fails."""

    request: str
    error: Exception
    landed: bool = False
    """Whether it is carried out all the same, and only the answer is lost."""


class Cluster(FakeApi):
    """FakeApi, with faults, lagging watches, and reviews of workers' tokens."""

    def __init__(self) -> None:
        super().__init__(START)
        self.faults: list[Fault] = []
        self.moving = asyncio.Event()
        self.moving.set()
        self.tokens: dict[str, Object] = {}

    def refuse(self, request: str, error: Exception, *, landed: bool = False, times: int = 1) -> None:
        """Let the next requests such as ``create mcptasks`` fail."""
        self.faults += [Fault(request, error, landed)] * times

    def count(self, request: str) -> int:
        return self.requests.count(request)

    async def create(self, kind: Kind, namespace: str, body: Object, *, dry_run: bool = False) -> Object:
        fault = self._fault("create", kind)
        answer = await super().create(kind, namespace, body, dry_run=dry_run)
        return _unless(fault, answer)

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        fault = self._fault("get", kind)
        return _unless(fault, await super().get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str | None, **query: Any) -> Object:
        fault = self._fault("list", kind)
        return _unless(fault, await super().list(kind, namespace, **query))

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object, **how: Any) -> Object:
        fault = self._fault("patch", kind)
        return _unless(fault, await super().patch(kind, namespace, name, body, **how))

    async def delete(self, kind: Kind, namespace: str, name: str, **guards: Any) -> None:
        fault = self._fault("delete", kind)
        await super().delete(kind, namespace, name, **guards)
        _unless(fault, {})

    async def watch(self, *args: Any, **query: Any) -> AsyncIterator[Object]:
        async for event in super().watch(*args, **query):
            await self.moving.wait()
            yield event

    async def review(self, kind: Kind, spec: Object) -> Object:
        self._asked("review", kind)
        self._fault("review", kind)
        assert spec["audiences"] == [AUDIENCE]
        return self.tokens.get(spec["token"], {"error": "no such token"})

    def _fault(self, verb: str, kind: Kind) -> Fault | None:
        request = f"{verb} {kind.plural}"
        fault = next((f for f in self.faults if f.request == request), None)
        if fault is None:
            return None
        self.faults.remove(fault)
        if not fault.landed:
            self.requests.append(request)
            raise fault.error
        return fault


def _unless(fault: Fault | None, answer: Object) -> Object:
    if fault is not None:
        raise fault.error
    return answer


@dataclass
class Parts:
    """A running replica."""

    api: Cluster
    core: Core
    caller: Caller = field(default_factory=lambda: anonymous("session"))

    @property
    def tasks(self) -> Any:
        return self.core.tasks

    async def make(self, task_id: str | None = "t", caller: Caller | None = None, **fields: Any) -> TaskRecord:
        new = NewTask(**{"tool": "build", "arguments": {}, "origin": "sep-1686", "task_id": task_id, **fields})
        made: TaskRecord = await self.tasks.create(caller or self.caller, new)
        return made

    async def stored(self, task: TaskRecord) -> TaskRecord:
        """The task as the API server has it, without a request being counted."""
        return record(self.api.objects[TASK.plural, task.name])

    async def caught_up(self) -> None:
        """Wait until the watches have brought everything."""
        informer, moved = self.core.informers[0], asyncio.Event()

        def behind() -> bool:
            objects = {name: item for (plural, name), item in self.api.objects.items() if plural == TASK.plural}
            return {task.name: task for task in informer} != {name: record(item) for name, item in objects.items()}

        with informer.listen(None, lambda *_: moved.set()):
            async with asyncio.timeout(BOUND):
                while behind():
                    moved.clear()
                    await moved.wait()

    async def worker(self, task: TaskRecord, attempt: int = 1, token: str = "token") -> str:
        """A pod that works on the task; its Authorization header."""
        job = job_name(task.uid, attempt)
        pod = f"{job}-pod"
        uid = f"uid-of-{pod}"
        self.api.objects[POD.plural, pod] = {
            "kind": "Pod",
            "metadata": {
                "name": pod,
                "namespace": NAMESPACE,
                "uid": uid,
                "labels": {LABEL_TASK: task.name},
                "ownerReferences": [{"kind": JOB.name, "name": job, "uid": f"uid-of-{job}", "controller": True}],
            },
        }
        self.api.tokens[token] = {
            "authenticated": True,
            "audiences": [AUDIENCE],
            "user": {
                "username": f"system:serviceaccount:{NAMESPACE}:default",
                "extra": {
                    "authentication.kubernetes.io/pod-name": [pod],
                    "authentication.kubernetes.io/pod-uid": [uid],
                },
            },
        }
        return f"Bearer {token}"


@asynccontextmanager
async def replica(api: Cluster | None = None, **settings: Any) -> AsyncIterator[Parts]:
    """A replica that has synced, with a tool ``build``."""
    if api is None:
        api = Cluster()
        await api.offer("build", inputSchema={"type": "object", "properties": {"path": {"type": "string"}}})
    cluster = api

    async def connect(*_: object, **__: object) -> Cluster:
        return cluster

    with patch.object(Api, "connect", connect):
        async with core.running(Settings(**settings), clock=lambda: cluster.now) as running:
            async with asyncio.timeout(BOUND):
                for informer in running.informers:
                    await informer.synced.wait()
            yield Parts(cluster, running)
