"""Asks a child over HTTP whether it is ready."""

import asyncio
import contextlib

INTERVAL = 0.05
"""Seconds between two questions."""
ANSWER = 2.0
"""Seconds one answer may take."""


async def until_ready(port: int, path: str = "/readyz") -> None:
    """Wait, without end, until ``path`` answers 200 on a port of 127.0.0.1."""
    while not await _ready(port, path):  # noqa: ASYNC110 - another process has no event to wait for
        await asyncio.sleep(INTERVAL)


async def _ready(port: int, path: str) -> bool:
    try:
        async with asyncio.timeout(ANSWER):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                await writer.drain()
                status = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in status
