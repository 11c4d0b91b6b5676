"""One replica of the service as an ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcptasks_service import worker_api
from mcptasks_service.core import Core, running
from mcptasks_service.entry import Entry
from mcptasks_service.errors import ServiceError
from mcptasks_service.settings import Settings
from mcptasks_service.signing import Signer
from mcptasks_service.worker_identity import WorkerRefused

MCP_PATHS = ("/mcp", "/mcp/")

Start = Callable[[Settings], AbstractAsyncContextManager[Core]]


class Service:
    """``/mcp`` goes straight to its entry, past FastAPI's layers, which would cost every poll a fifth of its time; the
    worker API, metrics and probes are an ordinary FastAPI application."""

    def __init__(self, settings: Settings, start: Start = running) -> None:
        self.settings, self._start = settings, start
        self._signer = Signer.of(settings.signing_keys)
        self.closing = anyio.Event()
        """Set it when the replica shuts down: open streams end, and those that can be resumed go on elsewhere."""
        self.core: Core | None = None
        self._mcp: ASGIApp | None = None
        self.http = self._http()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        mcp = self._mcp if scope["type"] == "http" and scope["path"] in MCP_PATHS else None
        await (mcp or self.http)(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Core]:
        """The service at work; an ASGI server does this through the lifespan, a test directly."""
        async with self._start(self.settings) as core:
            self.core = core
            self._mcp = Entry(core, self.settings, self._signer, self.closing)
            self.http.include_router(worker_api.router(core.api, core.workers, core.reports))
            try:
                yield core
            finally:
                self.closing.set()
                self.core = self._mcp = None

    def _http(self) -> FastAPI:
        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            async with self.running():
                yield

        http = FastAPI(title="mcptasks", lifespan=lifespan, openapi_url=None)

        @http.exception_handler(ServiceError)
        @http.exception_handler(WorkerRefused)
        async def refused(_: Request, error: WorkerRefused | ServiceError) -> JSONResponse:
            return worker_api.refused(self._running().metrics, error)

        @http.get("/healthz")
        async def healthz() -> Response:
            return _probe(*self._running().alive())

        @http.get("/readyz")
        async def readyz() -> Response:
            if self.closing.is_set():
                return _probe(False, "shutting down")
            return _probe(*self._running().ready())

        @http.get("/metrics")
        async def metrics() -> Response:
            return Response(self._running().metrics.render(), media_type="text/plain; version=0.0.4")

        return http

    def _running(self) -> Core:
        if self.core is None:
            raise RuntimeError("the service has not been started: run its lifespan, or `async with service.running()`")
        return self.core


def create_app(settings: Settings | None = None) -> Service:
    """The application, with settings from the environment unless some are given."""
    return Service(settings or Settings())


def _probe(good: bool, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=200 if good else 503)
