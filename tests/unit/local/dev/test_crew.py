import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcptasks_local.dev import crew as crew_module
from mcptasks_local.dev.crew import Crew
from mcptasks_local.dev.folder import StateFolder, any_free
from mcptasks_local.dev.programs import Program
from mcptasks_local.dev.screen import Screen

SERVER = """
import http.server, os
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
print("12:00:00 W starting", flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Ready).serve_forever()
"""


@asynccontextmanager
async def crew_of(tmp_path: Path) -> AsyncIterator[tuple[Crew, StateFolder]]:
    (tmp_path / "subject.py").write_text(SERVER)
    folder, port = StateFolder(tmp_path), any_free()
    program = Program("subject", "subject", "json", port, {"PYTHONPATH": str(tmp_path), "PORT": str(port)})
    crew = Crew([program], folder, Screen())
    await crew.start()
    try:
        yield crew, folder
    finally:
        await crew.stop()
        await asyncio.wait_for(asyncio.gather(*crew.work), 10)


def pid(folder: StateFolder) -> int:
    return int((folder.path / "subject.pid").read_text())


async def test_a_child_waits_for_the_word_and_its_death_and_return_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with crew_of(tmp_path) as (crew, folder):
        ready = asyncio.create_task(crew.until_ready())
        await asyncio.sleep(0)
        assert not ready.done()
        first = pid(folder)
        crew.go()
        await asyncio.wait_for(ready, 20)
        crew.kill()
        said = ""
        async with asyncio.timeout(20):
            while "is back" not in said:
                said += capsys.readouterr().out
                await asyncio.sleep(0.01)
        assert pid(folder) != first
    assert re.search(r"subject 12:00:00 W starting\n", said)
    assert re.search(r"the subject was killed by SIGKILL; starting it again \(its log: .*subject.log\)\n", said)
    assert re.search(r"the subject is back after \d\.\d s\n", said)
    assert (tmp_path / "subject.metrics").read_text().startswith("http://127.0.0.1:")


async def test_a_child_that_never_gets_ready_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(crew_module, "PATIENCE", 0.01)
    async with crew_of(tmp_path) as (crew, _):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(crew.until_ready(), 0.2)
    assert "the subject is not ready after 0.01 s; its log: " in capsys.readouterr().out
