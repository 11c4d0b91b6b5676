import asyncio
import io
from pathlib import Path

import pytest

from mcptasks_local import logs
from mcptasks_local.logs import LogOptions, read, tail


async def text(path: Path, *, over: bool = True, **options: int | bool) -> bytes:
    return b"".join([chunk async for chunk in read(path, LogOptions(**options), lambda: over)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "lines", "expected"),
    [
        (b"", 3, b""),
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\nc\n", 3, b"a\nb\nc\n"),
        (b"a\nb\nc\n", 9, b"a\nb\nc\n"),
        (b"a\nb\n", 0, b""),
        (b"a\n\n\n", 2, b"\n\n"),
        (b"\xff\xfe\n\x00\n", 1, b"\x00\n"),
        (b"x" * 200_000 + b"\n" + b"y" * 70_000, 1, b"y" * 70_000),
        (b"line\n" * 60_000, 59_999, b"line\n" * 59_999),
    ],
)
def test_the_last_lines(content: bytes, lines: int, expected: bytes) -> None:
    file = io.BytesIO(content)
    assert content[tail(file, lines) :] == expected


async def test_the_whole_and_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content := bytes(range(256)) * 20_000)
    assert await text(path) == content
    assert await text(path, limit_bytes=70_000) == content[:70_000]
    assert await text(path, limit_bytes=0) == b""
    path.write_bytes(b"a\nb\nc\n")
    assert await text(path, tail_lines=2, limit_bytes=3) == b"b\nc"


async def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert await text(tmp_path / "none") == b""


async def test_without_follow_a_running_container_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"so far")
    assert await text(tmp_path / "log", over=False) == b"so far"


async def test_follow_stays_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_LOOK", 0.001)
    path = tmp_path / "log"
    path.write_bytes(b"one ")
    over = False
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def follow() -> None:
        async for chunk in read(path, LogOptions(follow=True), lambda: over):
            got.put_nowait(chunk)

    async with asyncio.timeout(10):
        reader = asyncio.create_task(follow())
        assert await got.get() == b"one "
        with path.open("ab") as file:
            file.write(b"two ")
        assert await got.get() == b"two "
        with path.open("ab") as file:
            file.write(b"three")
        over = True
        await reader
        assert await got.get() == b"three"
