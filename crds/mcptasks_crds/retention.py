"""How long a task is kept: SEP-1686's keepAlive (from the end) and the later dialects' ttl (from creation)."""

from mcptasks_crds.task import MILLISECONDS_LIMIT, Retention
from mcptasks_crds.times import milliseconds
from mcptasks_crds.tool import ToolRetention

TTL_FLOOR = 60.0
"""Seconds that a finished ttl task is kept at least: a ttl that ran out while the work went on must not take the
result away from who waits for it."""


def span(duration: str | None) -> int | None:
    """A duration of a tool in milliseconds; ten digits of days are cut to what a task can hold."""
    return None if duration is None else min(milliseconds(duration), MILLISECONDS_LIMIT)


def default_retention(limits: ToolRetention) -> Retention | None:
    """How long a tool keeps a task whose maker said nothing; None = for ever."""
    spans = [ms for ms in (span(limits.default), span(limits.max)) if ms is not None]
    return Retention(after="Finish", milliseconds=min(spans)) if spans else None


def expires_at(retention: Retention | None, created: float, finished: float) -> float | None:
    """When a finished task may go, in epoch seconds; None = never.

    keepAlive counts from ``finished``; ttl from ``created``, but never less than ``TTL_FLOOR`` (or the ttl itself, if
    that is shorter) after the end.
    """
    if retention is None:
        return None
    span = retention.milliseconds / 1000
    if retention.after == "Finish":
        return finished + span
    return max(created + span, finished + min(span, TTL_FLOOR))


def keep_alive(retention: Retention | None, created: float, finished: float | None) -> int | None:
    """keepAlive in milliseconds as SEP-1686 shows it (R-5.1); None = unlimited.

    For a ttl task it is what is left at its end; before the end the ttl itself is the best bound.
    """
    if retention is None:
        return None
    if retention.after == "Finish" or finished is None:
        return retention.milliseconds
    end = expires_at(retention, created, finished)
    return None if end is None else round((end - finished) * 1000)


def ttl(retention: Retention | None, created: float, finished: float | None) -> int | None:
    """ttl in milliseconds from creation as the later dialects show it; None = unlimited, or not yet known."""
    if retention is None:
        return None
    if retention.after == "Creation" and finished is None:
        return retention.milliseconds
    if finished is None:
        return None
    end = expires_at(retention, created, finished)
    return None if end is None else round((end - created) * 1000)
