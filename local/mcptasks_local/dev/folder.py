"""The folder where a dev server keeps what must outlive it."""

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path


class DevError(Exception):
    """Something that keeps the dev server from starting; the text says what to do."""


class StateFolder:
    """Database, certificates, kubeconfig, signing key, ports and logs of one dev server."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.kubeconfig = self.path / "kubeconfig"
        self._lock = self.path / "lock"
        self._key = self.path / "session-key"
        self._ports = self.path / "ports.json"

    @contextlib.contextmanager
    def held(self, *, reset: bool = False) -> Iterator[None]:
        """Make the folder if need be and keep other dev servers out of it; ``reset`` empties it first.

        Raises:
            DevError: another dev server uses it, or it can't be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DevError(f"{self.path} can't be used: {error.strerror}; name another folder with --state") from error
        with os.fdopen(descriptor, "r+") as lock:
            try:
                # The kernel drops it with the process, so nothing is left behind by a kill -9.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DevError(
                    f"{self.path} is in use by another mcptasks dev (pid {lock.read().strip() or 'unknown'}); "
                    "end that one, or name another folder with --state"
                ) from None
            if reset:
                self._empty()
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            (self.path / ".gitignore").write_text("*\n")
            yield

    def _empty(self) -> None:
        if not self._ports.exists() and {p.name for p in self.path.iterdir()} != {"lock"}:
            raise DevError(f"{self.path} was not made by mcptasks dev, so --reset leaves it alone")
        for path in self.path.iterdir():
            if path.is_file() and path != self._lock:
                path.unlink()
            # Folders stay: by those of pods the next control plane finds processes that a killed one has left, and
            # ends them, since it knows no such pods.

    def signing_key(self) -> str:
        """The key that signs session ids: made once, so that sessions outlive the dev server."""
        if not self._key.exists():
            descriptor = os.open(self._key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(48))
        return self._key.read_text()

    def log(self, name: str) -> Path:
        """Where the whole log of a child goes."""
        return self.path / f"{name}.log"

    def note(self, name: str, text: str) -> None:
        """Keep a word for scripts: ``service.pid``, ``operator.metrics``."""
        (self.path / name).write_text(f"{text}\n")

    def port(self, name: str, wanted: int | None, option: str) -> int:
        """A port for ``name``: the one that is wanted, else the one it had last time if that is free, else a free one.

        Raises:
            DevError: the wanted port is taken; ``option`` is how to name another.
        """
        remembered: dict[str, int] = json.loads(self._ports.read_text()) if self._ports.exists() else {}
        if wanted:
            if not free(wanted):
                raise DevError(f"port {wanted} is in use by another program; name another with {option}, or 0 for any")
            port = wanted
        else:
            last = remembered.get(name)
            port = last if last and free(last) else any_free()
        if remembered.get(name) != port:
            self._ports.write_text(json.dumps({**remembered, name: port}))
        return port


def free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        # As servers do it: a port whose last connections linger in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True


def any_free() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
