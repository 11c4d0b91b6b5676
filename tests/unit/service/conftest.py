"""Two replicas of the service over one Kubernetes API in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from mcptasks_crds.api import Api
from mcptasks_service import core
from mcptasks_service.app import Service
from mcptasks_service.settings import Settings

from .asgi_client import Legacy, Modern
from .fake_api import FakeApi

START = 1_785_000_000.0


@dataclass
class Replicas:
    """The API and the replicas; clients use these in turn, one for each request."""

    api: FakeApi
    services: list[Service]

    async def legacy(self, version: str = "2025-11-25", **fields: Any) -> Legacy:
        client = Legacy([*self.services], version=version, **fields)
        await client.start()
        return client

    def modern(self, *, extension: bool = True) -> Modern:
        return Modern([*self.services], extension=extension)

    def advance(self, seconds: float) -> None:
        self.api.now += seconds


Start = Callable[..., Awaitable[Replicas]]


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Starts replicas with the settings given."""
    async with AsyncExitStack() as stack:

        async def started(count: int = 2, **settings: Any) -> Replicas:
            api = FakeApi(START)

            async def connect(*_: object, **__: object) -> FakeApi:
                return api

            monkeypatch.setattr(Api, "connect", connect)
            await api.offer("build", pollInterval="500ms", inputSchema=INPUT)
            await api.offer("only-task", taskSupport="required")
            await api.offer("never-task", taskSupport="forbidden")
            given = {"signing_keys": ["k" * 32], "ping_seconds": 30, **settings}
            services = [
                Service(Settings(**given), lambda s: core.running(s, clock=lambda: api.now)) for _ in range(count)
            ]
            for service in services:
                running = await stack.enter_async_context(service.running())
                for informer in running.informers:
                    await informer.synced.wait()
            return Replicas(api, services)

        yield started


@pytest.fixture
async def replicas(start: Start) -> Replicas:
    return await start()


INPUT = {"type": "object", "properties": {"path": {"type": "string"}}}
