import asyncio

import pytest

from mcptasks_local.dev import probe
from mcptasks_local.dev.folder import any_free


async def test_it_waits_until_the_answer_is_200(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "INTERVAL", 0.001)
    monkeypatch.setattr(probe, "ANSWER", 0.05)
    answers = iter([b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"", None, b"HTTP/1.1 200 OK\r\n\r\n"])
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        text = next(answers)
        if text is None:  # says nothing for longer than one answer may take
            await reader.read()
        else:
            writer.write(text)
        writer.close()

    port = any_free()
    waiting = asyncio.create_task(probe.until_ready(port))  # at first nobody listens
    async with await asyncio.start_server(answer, "127.0.0.1", port):
        await asyncio.wait_for(waiting, 10)
    assert asked == [b"GET /readyz HTTP/1.0\r\n"] * 4
