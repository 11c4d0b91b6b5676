"""Fixtures for every test. What they need is imported when they are used: the tests of the kinds need no server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcptasks_crds.api import Api
    from mcptasks_local.app import App
    from mcptasks_local.objects import Objects


@dataclass(frozen=True)
class ControlPlane:
    """An embedded control plane on a free port, with an empty namespace ``default``.

    ``api`` and ``kubeconfig`` are how a client sees it; ``objects`` is the inside, and ``app.requests`` counts what it
    was asked.
    """

    api: Api
    kubeconfig: Path
    objects: Objects
    app: App


@pytest.fixture
async def control_plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """A control plane that ends with the test, with its Jobs."""
    from mcptasks_crds.api import Api
    from mcptasks_local.plane import plane

    async with (
        plane(tmp_path / "plane", workdir=str(tmp_path), end_pods=True) as running,
        await Api.connect(str(running.kubeconfig), user_agent="tests") as api,
    ):
        yield ControlPlane(api, running.kubeconfig, running.objects, running.app)
