"""A container's process, which outlives whoever started it.

Its folder says everything, so that the next control plane can go on from there:

- ``alive``: locked for as long as the shim lives. A lock can't be recycled, as a process id can.
- ``pid``: the shim's, which leads the process group; written before the program runs.
- ``exit``: the program's exit code; there is none if the shim was killed too.
- ``log``: stdout and stderr as bytes; locked until all of it is written.
- ``termination-log``: what the program wants to say about its end.

The shim is a POSIX shell: it runs the program, writes the code and takes the rest of its group with it, as the end of
process 1 ends a container. ``cat`` writes the log, because a program that opens /dev/stderr by name would truncate a
file, and can't truncate a pipe.

A process that leaves the group (setsid) is found on Linux by its environment, when its pod is ended by force or when
it holds the log open; elsewhere, or with its output redirected, it may live on.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcptasks_crds.errors import McpTasksError

KILLED = 128 + signal.SIGKILL
MARK = "MCPTASKS_PROCESS"
"""The variable that holds a process's folder, by which what left its group is found."""

_SHIM = """\
trap : HUP INT QUIT TERM USR1 USR2
cd -- "$1" || exit
shift
echo $$ >"$0/pid" || exit
( exec "$@" 2>&1 </dev/null )
echo $? >"$0/exit"
kill -s KILL -- -$$
"""
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DRAIN = 2.0
"""Seconds that a log gets to be written to its end once the program is gone."""
_LINGER = 0.25
"""Seconds of that after which somebody else must be holding the log open."""
_POLL = 0.02


class CantStart(McpTasksError):
    """The program can't be run; the text is what the pod says."""


class Process:
    """A running or ended process; made by `start` or `adopt`."""

    def __init__(self, folder: Path, pid: int, *, logger: int = 0, adopted: bool = False) -> None:
        self.folder, self._pid, self._logger, self._adopted = folder, pid, logger, adopted
        self._ended = self._forced = False

    @property
    def started(self) -> float:
        """When it started, in epoch seconds."""
        return (self.folder / "alive").stat().st_mtime

    @property
    def finished(self) -> float:
        """When it ended, in epoch seconds; now, if nothing says so."""
        try:
            return (self.folder / "exit").stat().st_mtime
        except FileNotFoundError:
            return time.time()

    @property
    def lost(self) -> bool:
        """Whether it ended without an exit code though nobody here killed it."""
        return self._ended and not self._forced and _number(self.folder / "exit") is None

    def terminate(self) -> None:
        """Ask the whole group to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group, and what left it."""
        self._forced = True
        self._signal(signal.SIGKILL)
        _sweep(self.folder)

    async def wait(self) -> int:
        """Wait for its end; its exit code (128 + n for signal n). Its log is whole then, and nothing of it runs."""
        await self._gone()
        self._ended = True
        code = _number(self.folder / "exit")
        if code is None:
            _sweep(self.folder)
        await self._drained()
        return KILLED if code is None else code

    async def _gone(self) -> None:
        if self._adopted and not _locked(self.folder / "alive"):
            return
        if hasattr(os, "pidfd_open"):
            await self._gone_by_descriptor()
        else:
            while _locked(self.folder / "alive"):  # noqa: ASYNC110 - another process's lock has no event
                await asyncio.sleep(_POLL)
        if not self._adopted:
            # Not reaped yet, so the group's id is still ours: a shim that was killed alone leaves its program behind.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            _reap(self._pid)

    async def _gone_by_descriptor(self) -> None:
        try:
            descriptor = os.pidfd_open(self._pid)
        except ProcessLookupError:
            return
        try:
            # Looked at after the descriptor was there: it stands for the shim and no later owner of its number.
            if self._adopted and not _locked(self.folder / "alive"):
                return
            loop, gone = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(descriptor, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(descriptor)
        finally:
            os.close(descriptor)

    async def _drained(self) -> None:
        pause, waited = 0.001, 0.0
        while waited < _DRAIN and (not _reap(self._logger) if self._logger else _locked(self.folder / "log")):
            await asyncio.sleep(pause)
            if waited < _LINGER <= waited + pause:
                _sweep(self.folder)
            waited, pause = waited + pause, min(pause * 2, 0.05)

    def _signal(self, number: int) -> None:
        if self._ended or (self._adopted and not _locked(self.folder / "alive")):
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)


def start(folder: Path, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Process:
    """Run a program in a new session, with all that `Process` needs in ``folder``, which must be new.

    Raises:
        CantStart: no such program or working directory, not executable, arguments too long, or a NUL in them.
        FileExistsError: ``folder`` has had its process.
    """
    program = _program(argv[0], env, cwd)
    alive = os.open(folder / "alive", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    source, sink = os.pipe()
    try:
        fcntl.flock(alive, fcntl.LOCK_EX)
        fcntl.flock(log, fcntl.LOCK_EX)
        logger = _spawn(["/bin/sh", "-c", "exec cat"], {"PATH": os.defpath}, source, log)
        # A shell may drop variables whose names it can't hold (a.b, a-b), which Kubernetes allows.
        odd = [f"{name}={value}" for name, value in env.items() if not _SHELL_NAME.fullmatch(name)]
        through = ["/usr/bin/env", *odd] if odd else []
        command = ["/bin/sh", "-c", _SHIM, str(folder), cwd, *through, program, *argv[1:]]
        try:
            pid = _spawn(command, {**env, MARK: str(folder)}, alive, sink)
        except (OSError, ValueError) as error:
            unfit = "an argument or variable holds a NUL, or is no valid text"
            why = unfit if isinstance(error, ValueError) else error.strerror
            raise CantStart(f'exec: "{argv[0]}": {why}') from error
    finally:
        for descriptor in (alive, log, source, sink):
            os.close(descriptor)
    return Process(folder, pid, logger=logger)


async def adopt(folder: Path) -> Process | None:
    """The process that was started in ``folder`` by another control plane, running or ended; None if it never ran."""
    if not (folder / "alive").exists():
        return None
    while (pid := _number(folder / "pid")) is None and _locked(folder / "alive"):  # noqa: ASYNC110 - as above
        await asyncio.sleep(_POLL)  # the shim is about to write it
    # Once more, since it may have been written and ended in between.
    pid = _number(folder / "pid") if pid is None else pid
    return None if pid is None else Process(folder, pid, adopted=True)


def _spawn(command: list[str], env: Mapping[str, str], stdin: int, stdout: int) -> int:
    """A session of its own with default signals. posix_spawn: a fork would copy this process's page tables."""
    return os.posix_spawn(
        command[0],
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )


def _program(name: str, env: Mapping[str, str], cwd: str) -> str:
    """The program's absolute path: a bare name would run the shell's own `echo`."""
    if not os.path.isdir(cwd):
        raise CantStart(f"chdir to the working directory {cwd!r}: no such folder on this machine")
    if "/" not in name:
        if (found := shutil.which(name, path=env.get("PATH", os.defpath))) is None:
            raise CantStart(f'exec: "{name}": executable file not found in $PATH ({env.get("PATH", os.defpath)})')
        return os.path.abspath(found)
    path = os.path.join(cwd, name)
    if not os.path.exists(path):
        raise CantStart(f'exec: "{name}": no such file on this machine (images are not run: their files are not here)')
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise CantStart(f'exec: "{name}": permission denied: it is no executable file')
    return path


def _locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _number(path: Path) -> int | None:
    """The number in a file; None if it is not there, or not whole yet."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    return int(text) if text.endswith("\n") else None


def _reap(pid: int) -> bool:
    """Whether a child has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _sweep(folder: Path) -> None:
    """Kill what belongs to a process by its environment, whatever group it is in."""
    mark = f"{MARK}={folder}\0".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)
