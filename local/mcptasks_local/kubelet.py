"""All pods of this machine: who may run now, what is adopted, what is stopped, what is cleaned up."""

import asyncio
import contextlib
import logging
import shutil
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from mcptasks_crds.times import parse
from mcptasks_local import pod_status
from mcptasks_local.errors import Object, bad_request
from mcptasks_local.jobs import over
from mcptasks_local.logs import LogOptions, read
from mcptasks_local.pod_status import SHUTDOWN
from mcptasks_local.pods import Host, Pod
from mcptasks_local.processes import adopt
from mcptasks_local.resources import Resource

logger = logging.getLogger(__name__)


class Rooms:
    """Places for running pods, given first come first served."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def full(self) -> bool:
        return self._free <= 0

    def claim(self) -> None:
        """Take one, even beyond the number: for what runs already."""
        self._free -= 1

    async def take(self) -> None:
        """Take one as soon as there is one."""
        if not self.full:
            return self.claim()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        """Give one back."""
        self._free += 1
        while self._free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._free -= 1
                turn.set_result(None)


class Kubelet:
    """Runs pods as they come, at most ``max_pods`` at once."""

    def __init__(self, host: Host, max_pods: int) -> None:
        self._host, self._objects, self._rooms = host, host.objects, Rooms(max_pods)
        self._pods: dict[str, Pod] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def begin(self) -> None:
        """Adopt what an earlier control plane left, end what nobody knows any more, and start what waits."""
        items, _ = self._objects.list(self._objects.resource("pods"))
        known = {item["metadata"]["uid"] for item in items}
        self._host.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in [entry for entry in self._host.folder.iterdir() if entry.name not in known]:
            await _discard(folder)
        for item in sorted(items, key=lambda item: item["metadata"]["creationTimestamp"]):
            self.see(item)

    def see(self, item: Object) -> None:
        """A pod is new, or has changed; ``item`` may be older than what is stored."""
        uid = item["metadata"]["uid"]
        spent = 0.0
        if (pod := self._pods.get(uid)) is None:
            if self._closed or over(item):
                return
            pod = Pod(self._host, item)
            if (now := pod.item()) is None or over(now):
                return
            self._pods[uid] = pod
            if pod.begun:
                self._rooms.claim()
            task = asyncio.create_task(self._run(pod, now), name=f"pod {item['metadata']['name']}")
            self._tasks[uid] = task
            item = now
            if due := item["metadata"].get("deletionTimestamp"):  # told by an earlier control plane
                spent = self._host.clock() - parse(due) + item["metadata"].get("deletionGracePeriodSeconds", 0)
        if "deletionTimestamp" in item["metadata"]:
            pod.stop(max(0.0, item["metadata"].get("deletionGracePeriodSeconds", 0) - max(0.0, spent)))

    def forget(self, item: Object) -> None:
        """A pod has been deleted: whatever of it still runs is killed."""
        uid = item["metadata"]["uid"]
        pod, task = self._pods.get(uid), self._tasks.get(uid)
        if pod is None or task is None:
            shutil.rmtree(self._host.folder / uid, ignore_errors=True)
        elif pod.begun:
            pod.stop(0)  # its task removes the folder
        else:
            task.cancel()

    def grace(self, resource: Resource, item: Object) -> int | None:
        """Seconds that a pod's processes get before it may go; None if there are none."""
        if resource.id != "pods" or (pod := self._pods.get(item["metadata"]["uid"])) is None or not pod.begun:
            return None
        return pod.grace

    async def end(self, *, end_pods: bool, grace: float) -> None:
        """Start nothing more. End what runs within ``grace`` seconds, or leave it to be adopted."""
        self._closed = True
        for uid, task in list(self._tasks.items()):
            pod = self._pods[uid]
            if end_pods and pod.begun:
                pod.stop(min(grace, pod.grace), SHUTDOWN)
            else:
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def log(self, item: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """A container's log.

        Raises:
            ApiError: 400, no such container, none named though there are several, or it has not started.
        """
        meta, spec = item["metadata"], item["spec"]
        names = [container["name"] for container in (*spec["containers"], *(spec.get("initContainers") or ()))]
        name = options.container or names[0]
        if name not in names:
            raise bad_request(f"container {name} is not valid for pod {meta['name']}")
        if options.container is None and len(spec["containers"]) > 1:
            choices = " ".join(container["name"] for container in spec["containers"])
            raise bad_request(f"a container name must be specified for pod {meta['name']}, choose one of: [{choices}]")
        path = self._host.folder / meta["uid"] / "containers" / name / "log"
        if not path.exists() and not over(item):
            raise bad_request(f'container "{name}" in pod "{meta["name"]}" is waiting to start: {_why(item, name)}')
        return read(path, options, lambda: (pod := self._pods.get(meta["uid"])) is None or pod.ended(name))

    async def _run(self, pod: Pod, item: Object) -> None:
        placed = pod.begun
        try:
            if not placed:
                if self._rooms.full:
                    pod.put(item, pod_status.unscheduled(item, self._host.clock()))
                await self._rooms.take()
                placed = True
            await pod.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logger.exception("pod %s could not be run", item["metadata"]["name"])
            pod.abandon(f"the embedded control plane could not run this pod: {error!r}")
        finally:
            if placed:
                self._rooms.give()
            del self._pods[pod.uid], self._tasks[pod.uid]
            if pod.item() is None:
                shutil.rmtree(pod.folder, ignore_errors=True)


def _why(item: Object, name: str) -> str:
    for container in (item.get("status") or {}).get("containerStatuses") or ():
        if container["name"] == name and "waiting" in container["state"]:
            return str(container["state"]["waiting"]["reason"])
    return "ContainerCreating"


async def _discard(folder: Path) -> None:
    """End what runs in the folder of a pod that is no more, and remove it."""
    for place in folder.glob("containers/*"):
        if (process := await adopt(place)) is not None:
            process.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 5)
    shutil.rmtree(folder, ignore_errors=True)
