import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcptasks_local import processes
from mcptasks_local.processes import CantStart, Process, adopt, start

from .laptop import eventually

ENV = {"PATH": os.environ["PATH"]}


def run(folder: Path, script: str, **env: str) -> Process:
    folder.mkdir()
    return start(folder, ["sh", "-c", script], ENV | env, "/")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def number(path: Path) -> int:
    await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


async def ended(process: Process) -> int:
    return await asyncio.wait_for(process.wait(), 20)


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -SEGV $$", 139), ("kill -TERM 0; sleep 9", 143)],
)
async def test_the_exit_code_is_the_programs_or_128_and_the_signal(tmp_path: Path, script: str, code: int) -> None:
    process = run(tmp_path / "p", f"echo said; {script}")
    assert await ended(process) == code
    assert (tmp_path / "p/log").read_bytes() == b"said\n"
    assert not process.lost
    assert process.started <= process.finished


async def test_output_of_any_bytes_is_kept_in_order_and_whole(tmp_path: Path) -> None:
    script = "import sys, os\nfor i in range(80):\n os.write(1, b'\\xff\\x00' * 32768); os.write(2, b'\\n')"
    folder = tmp_path / "p"
    folder.mkdir()
    assert await ended(start(folder, [sys.executable, "-c", script], ENV, "/")) == 0
    assert (folder / "log").read_bytes() == (b"\xff\x00" * 32768 + b"\n") * 80  # 5 MB


async def test_writing_to_dev_stderr_by_name_does_not_truncate_the_log(tmp_path: Path) -> None:
    await ended(run(tmp_path / "p", "echo one; echo two >/dev/stderr; echo three | tee /dev/stderr >/dev/null"))
    assert (tmp_path / "p/log").read_bytes() == b"one\ntwo\nthree\n"


async def test_a_program_is_run_and_not_the_shells_builtin_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    await ended(start(folder, ["echo", "a\\nb", "$HOME", "'"], ENV, "/"))
    assert (folder / "log").read_bytes() == b"a\\nb $HOME '\n"


async def test_variables_of_any_name_reach_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    await ended(start(folder, ["env"], ENV | {"a.b": "1", "c-d": "2 '", "E": "3"}, "/"))
    assert {"a.b=1", "c-d=2 '", "E=3"} <= set((folder / "log").read_text().splitlines())


async def test_a_relative_program_is_found_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "p").mkdir()
    await ended(start(tmp_path / "p", ["./tool"], ENV, str(tmp_path)))
    assert (tmp_path / "p/log").read_text() == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("argv", "env", "cwd", "words"),
    [
        (["no-such-program"], {}, "/", "executable file not found in $PATH"),
        (["/no/such/file"], {}, "/", "no such file"),
        (["/etc/passwd"], {}, "/", "permission denied"),
        (["true"], {}, "/no/such/folder", "chdir to the working directory '/no/such/folder'"),
        (["true", "a\0b"], {}, "/", "holds a NUL"),
        (["true"], {"X": "x" * 3_000_000}, "/", "Argument list too long"),
    ],
)
def test_what_can_not_be_started_says_why(
    tmp_path: Path, argv: list[str], env: dict[str, str], cwd: str, words: str
) -> None:
    with pytest.raises(CantStart, match=words.replace("$", r"\$")):
        start(tmp_path, argv, ENV | env, cwd)


async def test_a_folder_has_one_process_ever(tmp_path: Path) -> None:
    await ended(run(tmp_path / "p", "exit 0"))
    with pytest.raises(FileExistsError):
        start(tmp_path / "p", ["true"], ENV, "/")


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    process = run(tmp_path / "p", f"sh -c \"trap '' TERM; echo \\$\\$ >{tmp_path}/child; sleep 60\" & "
                                  f"until test -s {tmp_path}/child; do sleep 0.01; done")  # fmt: skip
    assert await ended(process) == 0
    child = await number(tmp_path / "child")
    await eventually(lambda: not alive(child))


async def test_terminate_reaches_the_whole_group_and_kill_ends_what_ignores_it(tmp_path: Path) -> None:
    script = (
        f"trap '' TERM; sh -c 'echo $$ >{tmp_path}/child; exec sleep 60' & echo up; wait; while :; do sleep 60; done"
    )
    process = run(tmp_path / "p", script)
    child = await number(tmp_path / "child")
    process.terminate()
    await eventually(lambda: (tmp_path / "p/log").read_bytes() == b"up\n")
    assert alive(child)  # it has inherited the disposition
    process.kill()
    assert await ended(process) == 137
    assert not process.lost
    await eventually(lambda: not alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="found by /proc")
async def test_kill_finds_what_left_the_group(tmp_path: Path) -> None:
    leave = (
        f"import os; os.setsid(); print(os.getpid(), file=open('{tmp_path}/child', 'w')); import time; time.sleep(60)"
    )
    process = run(tmp_path / "p", f'{sys.executable} -c "{leave}" & wait')
    child = await number(tmp_path / "child")
    process.kill()
    await ended(process)
    await eventually(lambda: not alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="found by /proc")
async def test_what_left_the_group_and_holds_the_log_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    leave = (
        f"import os; os.setsid(); print(os.getpid(), file=open('{tmp_path}/child', 'w')); import time; time.sleep(60)"
    )
    script = f'{sys.executable} -c "{leave}" & until test -s {tmp_path}/child; do sleep 0.01; done; echo done'
    assert await ended(run(tmp_path / "p", script)) == 0
    child = await number(tmp_path / "child")
    await eventually(lambda: not alive(child))
    assert (tmp_path / "p/log").read_bytes() == b"done\n"


async def test_a_shim_that_is_killed_from_outside_takes_its_program_with_it(tmp_path: Path) -> None:
    process = run(tmp_path / "p", f"echo $$ >{tmp_path}/child; sleep 60")
    child = await number(tmp_path / "child")
    os.kill(int((tmp_path / "p/pid").read_text()), signal.SIGKILL)
    assert await ended(process) == 137
    assert process.lost
    await eventually(lambda: not alive(child))


STARTER = """
import os, sys, time
from pathlib import Path
from mcptasks_local.processes import start
start(Path(sys.argv[1]), ["sh", "-c", sys.argv[2]], dict(os.environ), "/")
print("started", flush=True)
time.sleep(60)
"""


def started_by_another(folder: Path, script: str) -> None:
    """Started by a process that is then killed."""
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", STARTER, folder, script], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"started\n"
        other.kill()


async def test_a_running_process_of_a_killed_starter_is_adopted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    started_by_another(tmp_path / "p", f"echo before; read line <{tmp_path}/gate; echo $line; exit 5")
    process = await adopt(tmp_path / "p")
    assert process is not None
    waiting = asyncio.create_task(ended(process))
    await asyncio.to_thread((tmp_path / "gate").write_text, "after\n")
    assert await waiting == 5
    assert (tmp_path / "p/log").read_bytes() == b"before\nafter\n"


async def test_an_adopted_process_can_be_ended(tmp_path: Path) -> None:
    started_by_another(tmp_path / "p", f"trap '' TERM; echo $$ >{tmp_path}/child; while :; do sleep 60; done")
    process = await adopt(tmp_path / "p")
    assert process is not None
    child = await number(tmp_path / "child")
    process.terminate()
    process.kill()
    assert await ended(process) == 137
    assert not alive(child)


async def test_an_end_that_nobody_saw_is_found(tmp_path: Path) -> None:
    started_by_another(tmp_path / "p", "echo alone; exit 6")
    await eventually((tmp_path / "p/exit").exists)
    process = await adopt(tmp_path / "p")
    assert process is not None
    assert await ended(process) == 6


async def test_without_pidfd_the_end_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert await ended(run(tmp_path / "p", "exit 7")) == 7


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "60"], start_new_session=True)


async def test_a_recycled_process_id_is_left_alone(tmp_path: Path) -> None:
    with sleeper() as innocent:
        (tmp_path / "alive").touch()
        (tmp_path / "log").touch()
        (tmp_path / "pid").write_text(f"{innocent.pid}\n")
        process = await adopt(tmp_path)
        assert process is not None
        process.terminate()
        process.kill()
        assert await ended(process) == 137
        assert innocent.poll() is None
        innocent.kill()


@pytest.mark.parametrize("files", [{}, {"alive": ""}, {"alive": "", "pid": ""}])
async def test_what_never_ran_is_not_adopted(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert await adopt(tmp_path) is None


async def test_a_log_that_stays_open_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_DRAIN", 0.3)
    monkeypatch.setattr(processes, "MARK", "UNKNOWN")
    leave = (
        f"import os; os.setsid(); print(os.getpid(), file=open('{tmp_path}/child', 'w')); import time; time.sleep(60)"
    )
    process = run(
        tmp_path / "p", f'{sys.executable} -c "{leave}" & until test -s {tmp_path}/child; do sleep 0.01; done'
    )
    monkeypatch.setattr(processes, "MARK", "ANOTHER")
    assert await ended(process) == 0
    os.kill(await number(tmp_path / "child"), signal.SIGKILL)
