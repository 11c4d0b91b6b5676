"""Times and durations: RFC 3339 in UTC with a ``Z`` on every wire, epoch seconds inside."""

import re
from datetime import UTC, datetime

from mcptasks_crds.errors import InvalidValue

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION_PATTERN = r"^([0-9]+(ms|s|m|h|d))+$"
"""How a duration is written in a schema: ``1h30m``."""
_DURATION = re.compile(DURATION_PATTERN)
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d)")

RATE_PATTERN = r"^[1-9][0-9]*/(second|minute|hour|day)$"
"""How a rate is written in a schema: ``60/minute``."""


_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def render(seconds: float) -> str:
    """Epoch seconds as RFC 3339 with milliseconds: ``2026-07-28T12:00:00.000Z``.

    RFC 3339 ends with the year 9999: what a retention of 285,000 years puts later is written as its last second.
    """
    return datetime.fromtimestamp(min(seconds, _LAST), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text: str) -> float:
    """RFC 3339 as epoch seconds; a time without a zone is read as UTC.

    Raises:
        InvalidValue: ``text`` is not a time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"{text!r} is not a time like 2026-07-28T12:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def milliseconds(duration: str) -> int:
    """A duration such as ``90s``, ``1h30m`` or ``250ms`` in milliseconds.

    Raises:
        InvalidValue: ``duration`` is not written so.
    """
    if not _DURATION.fullmatch(duration):
        raise InvalidValue(f"{duration!r} is not a duration; write for example 500ms, 30s, 5m, 1h30m or 7d")
    return sum(int(n) * _UNITS[unit] for n, unit in _PART.findall(duration))


def seconds(duration: str) -> float:
    """The same in seconds."""
    return milliseconds(duration) / 1000
