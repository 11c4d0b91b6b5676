"""/healthz, /readyz and /metrics on one port."""

import asyncio
from collections.abc import Callable

from aiohttp import web

Check = Callable[[], str | None]
"""None if all is well, else what is wrong."""


async def serve(
    host: str,
    port: int,
    *,
    alive: Check,
    ready: Check,
    metrics: Callable[[], bytes],
    bound: Callable[[int], None] = lambda _port: None,
) -> None:
    """Answer until cancelled; ``bound`` is told the port.

    Raises:
        OSError: the port is taken.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return _answer(alive())

    async def readyz(_request: web.Request) -> web.Response:
        return _answer(ready())

    async def scrape(_request: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", scrape)])
    # Probes must not fill the log, nor hold up the end.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound(runner.addresses[0][1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _answer(wrong: str | None) -> web.Response:
    return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)
