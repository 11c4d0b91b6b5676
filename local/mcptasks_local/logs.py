"""What a reader of a container's log may ask for."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from mcptasks_local.errors import Object


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The query of ``pods/log``: lines from the end, bytes from the beginning, and whether to stay."""

    container: str | None = None
    follow: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


Logs = Callable[[Object, LogOptions], AsyncIterator[bytes]]
"""Reads the log of a pod; raises ApiError before the first chunk."""
