"""Probes and metrics over HTTP."""

import asyncio

import aiohttp
import pytest

from mcptasks_operator import health


async def ask(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_probes_say_what_is_wrong() -> None:
    wrong: dict[str, str | None] = {"alive": None, "ready": "the first list is not through"}
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        health.serve(
            "127.0.0.1",
            0,
            alive=lambda: wrong["alive"],
            ready=lambda: wrong["ready"],
            metrics=lambda: b"up 1\n",
            bound=bound.set_result,
        )
    )
    port = await asyncio.wait_for(bound, 10)
    assert await ask(port, "/healthz") == (200, "ok\n")
    assert await ask(port, "/readyz") == (503, "the first list is not through\n")
    assert await ask(port, "/metrics") == (200, "up 1\n")
    wrong |= {"alive": "silent", "ready": None}
    assert await ask(port, "/healthz") == (503, "silent\n")
    assert await ask(port, "/readyz") == (200, "ok\n")
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    with pytest.raises(aiohttp.ClientError):
        await ask(port, "/healthz")
