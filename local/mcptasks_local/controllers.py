"""The controllers of the embedded control plane: Jobs make pods, pods run as local processes."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from mcptasks_local.environment import References
from mcptasks_local.errors import ApiError, Object
from mcptasks_local.jobs import controller_of, pod_of, step
from mcptasks_local.kubelet import Kubelet
from mcptasks_local.logs import LogOptions
from mcptasks_local.objects import Objects
from mcptasks_local.pods import Host
from mcptasks_local.recorder import Recorder
from mcptasks_local.resources import Resource
from mcptasks_local.storage import Event
from mcptasks_local.volumes import IssueToken, plain

logger = logging.getLogger(__name__)
_RETRY = 5.0
"""Seconds before the next try of a Job whose pod could not be made."""
_PAUSE = 0.05
"""Seconds between two looks at everything."""


class Controllers:
    """Runs Jobs and Pods of one control plane.

    Args:
        objects: where everything is.
        state_dir: pods get their folders in here; they hold secrets, so nobody else may read it.
        issue_token: makes the tokens of projected volumes.
        default_workdir: where a container without `workingDir` runs; without it, the present folder.
        max_pods: how many pods run at once; others wait, first come first served.
    """

    def __init__(
        self,
        objects: Objects,
        state_dir: Path,
        issue_token: IssueToken,
        *,
        default_workdir: Path | None = None,
        max_pods: int = 32,
        clock: Callable[[], float] = time.time,
    ) -> None:
        folder, workdir = plain(state_dir.absolute()) / "pods", (default_workdir or Path.cwd()).absolute()
        recorder = Recorder(objects, "kubelet")
        host = Host(objects, folder, References(objects), issue_token, workdir, recorder, clock)
        self._objects, self._clock = objects, clock
        self._kubelet = Kubelet(host, max_pods)
        self._recorder = Recorder(objects, "job-controller")
        self._pods_of: dict[str, dict[str, str]] = {}
        """Job uid → pod uid → pod name: a search through all pods at each step would be slow."""
        self._again: dict[str, asyncio.TimerHandle] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Adopt what runs, start what waits, and follow every change until `stop`."""
        self._objects.grace = self._kubelet.grace
        events = self._objects.watch()
        await self._kubelet.begin()
        self._resync()
        self._task = asyncio.create_task(self._follow(events), name="controllers")

    async def stop(self, *, end_pods: bool, grace: float = 5.0) -> None:
        """Stop. Running pods are ended within ``grace`` seconds (else by force), or left for the next `start`.

        Pods that were ended so are Failed with reason Terminated and condition DisruptionTarget, as after a node's
        shutdown; pods that had not begun wait for the next start.
        """
        await self._kubelet.end(end_pods=end_pods, grace=grace)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if end_pods:
            self._resync()  # the ends reach the Jobs
        for timer in self._again.values():
            timer.cancel()

    def log(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of a pod's container; see `Kubelet.log`."""
        return self._kubelet.log(pod, options)

    async def _follow(self, events: AsyncIterator[Event]) -> None:
        while True:
            async for event in events:
                with _guarded(event.object):
                    self._see(event)
                await asyncio.sleep(0)  # a burst of changes must not keep requests waiting
            # A watch that lags too far behind is ended; what it missed is found by looking at all there is.
            events = self._objects.watch()
            self._resync()
            await asyncio.sleep(_PAUSE)

    def _see(self, event: Event) -> None:
        item, meta = event.object, event.object["metadata"]
        gone = event.type == "DELETED"
        if event.resource == "pods":
            if gone:
                self._kubelet.forget(item)
            else:
                self._kubelet.see(item)
            if job := controller_of(item):
                self._index(item, job, gone=gone)
                self._sync(meta["namespace"], job["name"], job["uid"])
        elif event.resource == "jobs.batch":
            if gone:
                self._pods_of.pop(meta["uid"], None)
                self._look_again(meta["uid"], None, "", "")
            else:
                self._sync(meta["namespace"], meta["name"], meta["uid"])

    def _resync(self) -> None:
        """Look at everything, as if all of it had just changed."""
        self._pods_of.clear()
        for item in self._objects.list(self._objects.resource("pods"))[0]:
            if job := controller_of(item):
                self._index(item, job, gone=False)
            with _guarded(item):
                self._kubelet.see(item)
        for item in self._objects.list(self._objects.resource("jobs.batch"))[0]:
            meta = item["metadata"]
            with _guarded(item):
                self._sync(meta["namespace"], meta["name"], meta["uid"])

    def _index(self, pod: Object, job: Object, *, gone: bool) -> None:
        meta = pod["metadata"]
        pods = self._pods_of.setdefault(job["uid"], {})
        if not gone:
            pods[meta["uid"]] = meta["name"]
        else:
            pods.pop(meta["uid"], None)
        if not pods:
            del self._pods_of[job["uid"]]

    def _sync(self, namespace: str, name: str, uid: str) -> None:
        """Bring one Job further: its pods first, then the status that counts them (see `jobs`)."""
        kind, pod_kind = self._objects.resource("jobs.batch"), self._objects.resource("pods")
        job = self._get(kind, namespace, name, uid)
        if job is None:
            return
        found = [self._get(pod_kind, namespace, pod, pod_uid) for pod_uid, pod in self._pods_of.get(uid, {}).items()]
        now = self._clock()
        do = step(job, [pod for pod in found if pod is not None], now)
        self._look_again(uid, do.again, namespace, name)
        if do.delete:
            self._objects.delete(kind, namespace, name, uid=uid, propagation="Background")
            return
        for pod_name in do.end:
            self._objects.delete(pod_kind, namespace, pod_name)
            self._recorder.record(job, "SuccessfulDelete", f"Deleted pod: {pod_name}", now)
        for _ in range(do.make):
            try:
                pod = self._objects.create(pod_kind, namespace, pod_of(job))
            except ApiError as error:
                self._recorder.record(job, "FailedCreate", f"Error creating: {error}", now, warning=True)
                self._look_again(uid, _RETRY, namespace, name)
                return
            self._index(pod, job["metadata"], gone=False)
            self._recorder.record(job, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}", now)
        if do.status is not None:
            patch = {"status": dict.fromkeys(job.get("status") or ()) | do.status}
            self._objects.patch(kind, namespace, name, patch, subresource="status")
        for note in do.notes:
            self._recorder.record(job, note.reason, note.message, now, warning=note.warning)

    def _get(self, kind: Resource, namespace: str, name: str, uid: str) -> Object | None:
        try:
            found = self._objects.get(kind, namespace, name)
        except ApiError:
            return None
        return found if found["metadata"]["uid"] == uid else None

    def _look_again(self, uid: str, seconds: float | None, namespace: str, name: str) -> None:
        if (timer := self._again.pop(uid, None)) is not None:
            timer.cancel()
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._again[uid] = loop.call_later(max(0.0, seconds), self._sync, namespace, name, uid)


@contextlib.contextmanager
def _guarded(item: Object) -> Iterator[None]:
    """One odd object is logged and left as it is; all others go on."""
    try:
        yield
    except Exception:
        logger.exception("%s %s could not be handled", item["kind"], item["metadata"]["name"])
