"""A control plane without its HTTP side: objects, collector and controllers in this process, real programs as pods."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mcptasks_local.collection import Collector
from mcptasks_local.controllers import Controllers
from mcptasks_local.errors import ApiError, Object
from mcptasks_local.logs import LogOptions
from mcptasks_local.objects import Objects
from mcptasks_local.storage import Storage

NAMESPACE = "default"
LIMIT = 20.0
"""Seconds after which a wait has failed."""


def pod_spec(*command: str, **more: object) -> Object:
    """The spec of a pod whose one container, `tool`, runs ``command``; keys of a container go there."""
    spec: Object = {"restartPolicy": "Never", "containers": [{"name": "tool", "image": "any"}]}
    if command:
        spec["containers"][0]["command"] = list(command)
    inside = ("args", "env", "envFrom", "volumeMounts", "workingDir", "terminationMessagePolicy")
    for key, value in more.items():
        (spec["containers"][0] if key in inside else spec)[key] = value
    return spec


def job(name: str, *command: str, spec: Object | None = None, **more: object) -> Object:
    """A Job of one try; ``spec`` is the Job's, ``more`` the pod's (see `pod_spec`)."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, **(spec or {}), "template": {"spec": pod_spec(*command, **more)}},
    }


def sh(script: str) -> tuple[str, str, str]:
    """A command that runs a script; `$$` is doubled, since the kubelet would halve it."""
    return "sh", "-c", script.replace("$$", "$$$$")


def phase(pod: Object) -> str:
    found: str = (pod.get("status") or {}).get("phase", "")
    return found


def terminated(pod: Object, container: int = 0) -> Object:
    """How a container of a pod ended."""
    found: Object = pod["status"]["containerStatuses"][container]["state"]["terminated"]
    return found


def conditions(item: Object) -> dict[str, str]:
    """Reasons of the conditions that hold, in their order."""
    return {c["type"]: c.get("reason", "") for c in item["status"].get("conditions", ()) if c["status"] == "True"}


class Laptop:
    """See `laptop`."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder, self.options = folder, options
        self.storage = Storage(folder / "objects.db")
        self.objects = Objects(self.storage)
        for resource, namespace, name in (("namespaces", "", NAMESPACE), ("serviceaccounts", NAMESPACE, "default")):
            with contextlib.suppress(ApiError):
                self.objects.create(self.objects.resource(resource), namespace, {"metadata": {"name": name}})
        self.controllers = Controllers(self.objects, folder, issue_token, **options)  # type: ignore[arg-type]
        self._collector: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._collector = asyncio.create_task(Collector(self.objects).run())
        await self.controllers.start()

    async def stop(self, *, end_pods: bool = True, grace: float = 2.0) -> None:
        await self.controllers.stop(end_pods=end_pods, grace=grace)
        if self._collector is not None:
            self._collector.cancel()
            await asyncio.gather(self._collector, return_exceptions=True)
        self.storage.close()

    def create(self, resource: str, item: Object) -> Object:
        return self.objects.create(self.objects.resource(resource), NAMESPACE, item)

    def run(self, item: Object) -> Object:
        return self.create("jobs.batch", item)

    def get(self, resource: str, name: str) -> Object:
        return self.objects.get(self.objects.resource(resource), NAMESPACE, name)

    def patch(self, resource: str, name: str, patch: Object) -> Object:
        return self.objects.patch(self.objects.resource(resource), NAMESPACE, name, patch)

    def delete(self, resource: str, name: str, grace: int | None = None) -> None:
        kind = self.objects.resource(resource)
        self.objects.delete(kind, NAMESPACE, name, propagation="Background", grace_seconds=grace)

    def pods(self, job_name: str | None = None) -> list[Object]:
        """All pods, or those of one Job, oldest first."""
        items, _ = self.objects.list(self.objects.resource("pods"), NAMESPACE)
        own = [p for p in items if job_name is None or p["metadata"]["labels"].get("job-name") == job_name]
        return sorted(own, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def events(self, about: str = "") -> list[str]:
        """Reasons of the events about objects whose names begin so, oldest first."""
        items, _ = self.objects.list(self.objects.resource("events"), NAMESPACE)
        named = [e for e in items if e["involvedObject"]["name"].startswith(about)]
        return [e["reason"] for e in sorted(named, key=lambda e: int(e["metadata"]["resourceVersion"]))]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until ``holds()`` is true; looked at after each change."""
        async with asyncio.timeout(LIMIT):
            events = self.objects.watch()
            while not holds():
                await anext(aiter(events))

    async def finished(self, name: str) -> Object:
        """Wait for a Job's end."""
        await self.until(
            lambda: {"Complete", "Failed"} & conditions({"status": {}} | self.get("jobs.batch", name)).keys()
        )
        return self.get("jobs.batch", name)

    async def running(self, job_name: str) -> Object:
        """Wait until a Job's newest pod runs, and has printed something."""

        def log() -> Path | None:
            found = [p for p in self.pods(job_name) if phase(p) == "Running"]
            return self.pod_folder(found[-1]) / "containers/tool/log" if found else None

        await self.until(log)
        path = log()
        assert path is not None
        await eventually(lambda: path.stat().st_size > 0)
        return self.pods(job_name)[-1]

    def pod_folder(self, pod: Object) -> Path:
        uid: str = pod["metadata"]["uid"]
        return self.folder / "pods" / uid

    async def log(self, pod: Object, **options: object) -> bytes:
        chunks = self.controllers.log(pod, LogOptions(**options))  # type: ignore[arg-type]
        return b"".join([chunk async for chunk in chunks])


def issue_token(namespace: str, account: str, pod: Object, audience: str, seconds: int) -> str:
    return f"{namespace}/{account}/{pod['metadata']['name']}/{audience}/{seconds}"


@asynccontextmanager
async def laptop(folder: Path, **options: object) -> AsyncIterator[Laptop]:
    """One that runs; its pods end with it."""
    one = Laptop(folder, **options)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


async def eventually(holds: Callable[[], object]) -> None:
    """Wait for something that happens in another process and tells nobody."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.005)
