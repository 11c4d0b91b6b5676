"""Watches over HTTP: one JSON object a line; what a selector makes of a change; bookmarks in silence."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import Objects
from mcptasks_local.resources import Resource
from mcptasks_local.selectors import Predicate
from mcptasks_local.storage import Event

BOOKMARK_SECONDS = 30.0
"""A watch that asks for bookmarks gets one after this silence."""
WATCH_SECONDS = 1800
"""A watch that names no end is ended after this; clients begin again from where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What a client asked for.

    Attributes:
        since: the revision to go on from; None = now.
        initial: whether what exists is told first, as ADDED.
        marked: whether the end of that is told (``sendInitialEvents``).
        seconds: how long.
        shown: how an object is represented: itself, a Table of one row, its metadata.
    """

    resource: Resource
    namespace: str | None
    matches: Predicate
    since: int | None = None
    initial: bool = False
    marked: bool = False
    bookmarks: bool = False
    seconds: float = WATCH_SECONDS
    bookmark_seconds: float = BOOKMARK_SECONDS
    shown: Callable[[Object], Object] = field(default=lambda item: item)


def change(event: Event, matches: Predicate) -> str | None:
    """What a change is to a watcher with a selector: an object that no longer matches counts as deleted."""
    before = event.old is not None and matches(event.old)
    if event.type != "DELETED" and matches(event.object):
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None


def lines(objects: Objects, watch: Watch) -> AsyncIterator[bytes]:
    """The stream of a watch, which begins with this very call, not with its first reading."""
    try:
        events = objects.watch(watch.resource, watch.namespace, watch.since)
    except ApiError as error:
        # The head of the answer is 200 all the same: so clients of a real API server expect it.
        return _refused(error)
    items = objects.list(watch.resource, watch.namespace)[0] if watch.initial else []
    return _lines(objects, watch, events, [item for item in items if watch.matches(item)], objects.revision)


async def _refused(error: ApiError) -> AsyncIterator[bytes]:
    yield _line("ERROR", error.status())


async def _lines(
    objects: Objects, watch: Watch, events: AsyncIterator[Event], initial: list[Object], revision: int
) -> AsyncIterator[bytes]:
    for item in initial:
        yield _line("ADDED", watch.shown(item))
    if watch.marked:
        yield _bookmark(watch.resource, revision, {"k8s.io/initial-events-end": "true"})
    clock = asyncio.get_running_loop().time
    end = clock() + watch.seconds
    pending = asyncio.ensure_future(anext(events, None))
    try:
        while (left := end - clock()) > 0:
            done, _ = await asyncio.wait((pending,), timeout=min(left, watch.bookmark_seconds))
            if not done:
                if watch.bookmarks and clock() < end:
                    yield _bookmark(watch.resource, objects.revision)
                continue
            if (event := pending.result()) is None:
                return
            pending = asyncio.ensure_future(anext(events, None))
            if (kind := change(event, watch.matches)) is not None:
                yield _line(kind, watch.shown(event.object))
    finally:
        pending.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
            await pending


def _bookmark(resource: Resource, revision: int, annotations: dict[str, str] | None = None) -> bytes:
    meta: Object = {"resourceVersion": str(revision)}
    if annotations:
        meta["annotations"] = annotations
    return _line("BOOKMARK", {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta})


def _line(kind: str, item: Object) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
