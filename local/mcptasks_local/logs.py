"""The log of a container: what a reader may ask for, and the reading."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mcptasks_local.errors import Object

_CHUNK = 64 * 1024
_LOOK = 0.1
"""Seconds between two looks for new output."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The query of ``pods/log``: lines from the end, bytes from the beginning, and whether to stay.

    There is no "since": a log is the program's bytes, without times.
    """

    container: str | None = None
    follow: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


Logs = Callable[[Object, LogOptions], AsyncIterator[bytes]]
"""Reads the log of a pod; raises ApiError before the first chunk."""


async def read(path: Path, options: LogOptions, over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The log in ``path`` in chunks of at most 64 KiB; an absent file is an empty log.

    ``over`` says whether the container has ended, so that nothing more comes.
    """
    left = options.limit_bytes
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        if options.tail_lines is not None:
            file.seek(tail(file, options.tail_lines))
        while left is None or left > 0:
            ended = over()  # asked before the read: what came after it is read in the next round
            chunk = file.read(_CHUNK if left is None else min(left, _CHUNK))
            if chunk:
                left = None if left is None else left - len(chunk)
                yield chunk
                await asyncio.sleep(0)
            elif ended or not options.follow:
                return
            else:
                await asyncio.sleep(_LOOK)


def tail(file: BinaryIO, lines: int) -> int:
    """The offset at which the last ``lines`` lines of a file begin; a last line without an end counts as one."""
    end = position = file.seek(0, 2)
    if lines <= 0:
        return end
    missing = lines
    while position > 0:
        start = max(0, position - _CHUNK)
        file.seek(start)
        block = file.read(position - start)
        # The newline at the very end closes the last line and begins none.
        at = len(block) - 1 if position == end and block.endswith(b"\n") else len(block)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            missing -= 1
            if missing == 0:
                return start + at + 1
        position = start
    return 0
