"""The life of one pod as local processes: volumes, init containers, containers, its end.

Every step can be the last one before a SIGKILL of the control plane, and the next one goes on from what is there:

- the object alone: the pod has not begun; it begins as if it were new;
- a container's folder, but no process ran in it: the container is started (see `processes.adopt`);
- a process, running or ended, that the status does not know: it is adopted, never started again;
- a final status, but the pod to be deleted is still there: it is deleted.

The image of a container is not looked at, `restartPolicy` is always Never, probes, resources, security contexts and
lifecycle hooks are ignored, and the token of the ServiceAccount is never mounted unless a projected volume asks.
Sidecars (init containers with `restartPolicy: Always`) are refused.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcptasks_crds.times import parse
from mcptasks_local import pod_status, volumes
from mcptasks_local.environment import NotReady, References, Unsupported, expand, inherited, variables
from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import Objects
from mcptasks_local.pod_status import DEADLINE, Ending, Running, State, Terminated, Waiting
from mcptasks_local.processes import CantStart, Process, adopt, start
from mcptasks_local.recorder import Recorder

GRACE = 30
"""Seconds that a pod gets to end if it does not say itself."""
MESSAGE_LIMIT = 4096
"""Bytes of a termination message; the rest is cut."""
LOG_MESSAGE_LIMIT = 2048
"""Bytes from the end of the log that stand in for a missing message, if the container asks for it."""
RETRY = 1.0
"""Seconds between two looks for a Secret or ConfigMap that is not there."""
START_ERROR = 128


@dataclass(frozen=True)
class Host:
    """What the pods of one control plane share. ``workdir``: where a container without `workingDir` runs."""

    objects: Objects
    folder: Path
    references: References
    issue_token: volumes.IssueToken
    workdir: Path
    recorder: Recorder
    clock: Callable[[], float]


class Pod:
    """One pod from its place on this machine to its end."""

    def __init__(self, host: Host, item: Object) -> None:
        meta, spec = item["metadata"], item["spec"]
        self.uid, self._namespace, self._name = meta["uid"], meta["namespace"], meta["name"]
        self._host, self._spec = host, spec
        self.folder: Path = host.folder / self.uid
        self.begun = (self.folder / "containers").exists()
        """Whether its processes may have started."""
        self.over = False
        containers = (*(spec.get("initContainers") or ()), *spec["containers"])
        self._states: dict[str, State] = {container["name"]: Waiting() for container in containers}
        if spec.get("initContainers"):
            self._states |= {container["name"]: Waiting("PodInitializing") for container in spec["containers"]}
        self._processes: dict[str, Process] = {}
        self._stopping, self._killed = asyncio.Event(), False
        self._ending: Ending | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._told: set[str] = set()

    @property
    def grace(self) -> int:
        """Seconds that it gets between the polite signal and the end."""
        seconds = self._spec.get("terminationGracePeriodSeconds")
        return GRACE if seconds is None else int(seconds)

    def item(self) -> Object | None:
        """The object as it is now; None if it has gone, or is another one of the same name."""
        try:
            found = self._host.objects.get(self._host.objects.resource("pods"), self._namespace, self._name)
        except ApiError:
            return None
        return found if found["metadata"]["uid"] == self.uid else None

    def log(self, container: str) -> Path:
        """Where a container's output is."""
        return self._place(container) / "log"

    def ended(self, container: str) -> bool:
        """Whether a container has ended, its log whole."""
        return self.over or isinstance(self._states[container], Terminated)

    async def run(self) -> None:
        """Run its containers, or go on with them, and write how it ended."""
        try:
            self._limit()
            try:
                await self._containers()
            except Unsupported as error:
                self._fail(str(error))
        finally:
            for timer in self._timers:
                timer.cancel()
        self._conclude()

    def stop(self, grace: float, ending: Ending | None = None) -> None:
        """Tell it to end within ``grace`` seconds; said again, the shortest time counts."""
        self._ending = self._ending or ending
        if not self._stopping.is_set():
            self._stopping.set()
            for name, process in self._processes.items():
                if not self.ended(name):
                    self._record("Killing", f"Stopping container {name}")
                    process.terminate()
        if grace > 0:
            self._timers.append(asyncio.get_running_loop().call_later(grace, self.kill))
        else:
            self.kill()

    def abandon(self, why: str) -> None:
        """End it because it can't be gone on with: it has failed, for this reason."""
        self.kill()
        self._fail(why)
        self._conclude()

    def kill(self) -> None:
        """End its processes by force."""
        self._killed = True
        for name, process in self._processes.items():
            if not self.ended(name):
                process.kill()

    def write(self) -> None:
        """Bring the object's status up to date."""
        if (item := self.item()) is None:
            return
        stopped = self.over and self._stopping.is_set()
        new = pod_status.status(item, self._states, self._host.clock(), self._ending, stopped=stopped)
        self.put(item, new)

    def put(self, item: Object, status: Object) -> None:
        """Write a status, if it is not the present one."""
        if status != item.get("status"):
            resource = self._host.objects.resource("pods")
            patch = {"status": dict.fromkeys(item.get("status") or ()) | status}
            self._host.objects.patch(resource, self._namespace, self._name, patch, subresource="status")

    async def _containers(self) -> None:
        first, main = self._spec.get("initContainers") or (), self._spec["containers"]
        if sidecars := [item["name"] for item in first if item.get("restartPolicy")]:
            raise Unsupported(
                f"init container {sidecars[0]!r} has a restartPolicy: sidecars are not supported by the embedded "
                "control plane; take an ordinary container, or a real cluster"
            )
        if not any(self.folder.glob("containers/*/alive")):
            await self._until_ready(self._prepare, "FailedMount", lambda _: Waiting())
        for container in first:
            if not await self._container(container):
                return
        await asyncio.gather(*(self._container(container) for container in main))

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (item := self.item()) is not None:
            volumes.prepare(item, self.folder / "volumes", self._host.references, self._host.issue_token)

    async def _container(self, container: Object) -> bool:
        """Run one to its end; whether it exited with 0."""
        name, place = container["name"], self._place(container["name"])
        process = await adopt(place)
        if process is None:
            try:
                process = await self._started(container, place)
            except (CantStart, Unsupported) as error:
                now = self._host.clock()
                self._states[name] = Terminated(START_ERROR, "StartError", str(error), now, now)
                self._record("Failed", f"Error: {error}", warning=True)
                self.write()
                return False
            if process is None:
                return False
            self._record("Started", f"Started container {name}")
        self._processes[name] = process
        self._states[name] = Running(process.started)
        if self._killed:  # told before it was adopted
            process.kill()
        elif self._stopping.is_set():
            process.terminate()
        self.write()
        code = await process.wait()
        self._states[name] = _terminated(container, process, place, code)
        if len(self._states) > 1:  # with one, the pod's end says it
            self.write()
        return code == 0

    async def _started(self, container: Object, place: Path) -> Process | None:
        """A new process; None if the pod was told to stop before."""
        self.begun = True
        started: list[Process] = []

        def begin() -> None:
            if (item := self.item()) is None:
                return
            argv, env, cwd = self._plan(container, item, place)
            shutil.rmtree(place, ignore_errors=True)  # another control plane claimed it, and died before it began
            place.mkdir(parents=True, mode=0o700)
            (place / "termination-log").touch(0o600)
            started.append(start(place, argv, env, cwd))

        def waiting(message: str) -> State:
            return Waiting("CreateContainerConfigError", message)

        await self._until_ready(begin, "Failed", waiting, container["name"])
        return started[0] if started else None

    def _plan(self, container: Object, item: Object, place: Path) -> tuple[list[str], dict[str, str], str]:
        """Command line, environment and working directory, all with local paths."""
        own = variables(container, item, self._host.references)
        if not container.get("command"):
            raise CantStart(
                f"container {container['name']!r} has no command: the embedded control plane runs programs of this "
                f"machine, not images, so the entry point of {container.get('image') or 'its image'} is not known "
                "here; give the template a `command`"
            )
        message = container.get("terminationMessagePath") or "/dev/termination-log"
        local = volumes.mounts(container, item, self.folder / "volumes") | {message: str(place / "termination-log")}
        paths = volumes.Paths(local)
        # Mapped after all expansion: a value that is used in another one must not be mapped twice.
        argv = [paths.local(expand(w, own)) for w in (*container["command"], *(container.get("args") or ()))]
        env = inherited(os.environ, self._name) | {key: paths.local(value) for key, value in own.items()}
        return argv, env, paths.local(container.get("workingDir") or "") or str(self._host.workdir)

    async def _until_ready(
        self, attempt: Callable[[], None], reason: str, waiting: Callable[[str], State], name: str = ""
    ) -> None:
        """Try until what is missing is there, or the pod is told to stop."""
        while not self._stopping.is_set():
            try:
                attempt()
                return
            except NotReady as error:
                for container in (name,) if name else self._states:
                    self._states[container] = waiting(str(error))
                if str(error) not in self._told:
                    self._told.add(str(error))
                    self._record(reason, str(error) if name else f"MountVolume.SetUp failed: {error}", warning=True)
                self.write()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), RETRY)

    def _fail(self, why: str) -> None:
        now = self._host.clock()
        self._record("Failed", f"Error: {why}", warning=True)
        for name in self._states:
            self._states[name] = Terminated(START_ERROR, "StartError", why, now, now)

    def _conclude(self) -> None:
        """The final status, and then, if the pod is to be deleted, its end: in this order, so that none is missed."""
        self.over = True
        self.write()
        item = self.item()
        if item is not None and "deletionTimestamp" in item["metadata"]:
            resource = self._host.objects.resource("pods")
            self._host.objects.delete(resource, self._namespace, self._name, uid=self.uid, grace_seconds=0)

    def _limit(self) -> None:
        """End it after its `activeDeadlineSeconds`, of which an earlier control plane may have spent some."""
        if (seconds := self._spec.get("activeDeadlineSeconds")) is not None and (item := self.item()) is not None:
            began = (item.get("status") or {}).get("startTime")
            left = seconds if began is None else max(0.0, parse(began) + seconds - self._host.clock())
            self._timers.append(asyncio.get_running_loop().call_later(left, self.stop, self.grace, DEADLINE))

    def _place(self, container: str) -> Path:
        return self.folder / "containers" / container

    def _record(self, reason: str, message: str, *, warning: bool = False) -> None:
        if (item := self.item()) is not None:
            self._host.recorder.record(item, reason, message, self._host.clock(), warning=warning)


def _terminated(container: Object, process: Process, place: Path, code: int) -> Terminated:
    said = _read(place / "termination-log", MESSAGE_LIMIT)
    if not said and code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        said = _read(place / "log", LOG_MESSAGE_LIMIT, last=True)
    message = said.decode(errors="replace")
    if process.lost and not message:
        message = "the process and its supervisor were killed from outside, or the machine was restarted"
    return Terminated(code, "Error" if code else "Completed", message, process.started, process.finished)


def _read(path: Path, limit: int, *, last: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            if last:
                file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read(limit)
    except OSError:
        return b""  # removed, or replaced by something that can't be read, by the program
