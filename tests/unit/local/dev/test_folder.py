import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcptasks_local.dev.folder import DevError, StateFolder, any_free, free


def test_a_folder_in_use_is_refused_with_the_pid_of_its_user(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from mcptasks_local.dev.folder import StateFolder\n"
        "with StateFolder(pathlib.Path(sys.argv[1])).held():\n    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(DevError, match=rf"in use by another mcptasks dev \(pid {other.pid}\).*--state"):
            StateFolder(tmp_path).held().__enter__()
        other.communicate()
    with StateFolder(tmp_path).held():
        pass


def test_a_folder_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DevError, match="can't be used"):
        StateFolder(tmp_path / "file" / "state").held().__enter__()


def test_reset_forgets_all_but_the_processes_that_are_to_be_ended(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with folder.held():
        folder.port("api", 0, "--api-port")
        key = folder.signing_key()
        (tmp_path / "pods").mkdir()
        (tmp_path / "objects.db").touch()
    with folder.held(reset=True):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", "lock", "pods"]
        assert folder.signing_key() != key


def test_reset_leaves_alone_what_is_no_state_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DevError, match="not made by mcptasks dev"):
        StateFolder(tmp_path).held(reset=True).__enter__()
    assert (tmp_path / "thesis.tex").exists()


def test_the_signing_key_stays_and_is_private(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    key = folder.signing_key()
    assert len(key) >= 32
    assert StateFolder(tmp_path).signing_key() == key
    assert (tmp_path / "session-key").stat().st_mode & 0o077 == 0


def test_a_port_is_kept_while_it_is_free(tmp_path: Path) -> None:
    port = StateFolder(tmp_path).port("api", 0, "--api-port")
    assert StateFolder(tmp_path).port("api", 0, "--api-port") == port
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        assert StateFolder(tmp_path).port("api", 0, "--api-port") != port


def test_a_wanted_port_in_use_is_refused_by_name(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert not free(port)
        with pytest.raises(DevError, match=rf"port {port} is in use .*--port"):
            StateFolder(tmp_path).port("service", port, "--port")


def test_a_wanted_port_that_is_free_is_taken(tmp_path: Path) -> None:
    port = any_free()
    assert StateFolder(tmp_path).port("service", port, "--port") == port
