"""What the methods of every dialect work with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from mcptasks_service.cursors import Cursors
from mcptasks_service.tasks import Tasks

PAGE = 100
"""Tasks on one page of a list."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The use cases, and what only the wire knows."""

    tasks: Tasks
    cursors: Cursors
    closing: anyio.Event
    """Set when this replica shuts down: streams that could stay open for ever end."""
    clock: Callable[[], float]
    """Epoch seconds."""
    stamp: Mapping[str, Any]
    """The ``_meta`` that names the server in every result of 2026-07-28, as a member of the result."""
