"""An even pace: turns are handed out one after another, and nobody blocks while waiting for one."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")


class Pace(Generic[K]):
    """At most ``rate`` turns a second, with ``burst`` saved up at most. ``clock`` is monotonic seconds."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._gap, self._burst, self._clock = 1 / rate, burst / rate, clock
        self._next = clock() - self._burst
        self._turns: dict[K, float] = {}

    def turn(self, key: K) -> float:
        """Seconds until it is the turn of ``key``; 0 takes it. The first ask fixes the place in the line."""
        now = self._clock()
        at = self._turns.get(key)
        if at is None:
            at = max(self._next, now - self._burst)
            self._next = at + self._gap
        if at <= now:
            self._turns.pop(key, None)
            return 0.0
        self._turns[key] = at
        return at - now

    def leave(self, key: K) -> None:
        """``key`` wants no turn any more."""
        self._turns.pop(key, None)
