"""Stops asking a source that does not answer any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

FAILURES: Final = 5
"""Calls that fail one after the other, each in all its tries, before nobody is let through."""

PAUSE: Final = 30.0
"""Seconds after which one call is let through again, to see."""


class CircuitBreaker:
    """Opens after calls that failed one after the other, and lets one through after a pause.

    >>> now = 0.0
    >>> breaker = CircuitBreaker(lambda: now, failures=2, pause=10.0)
    >>> for _ in range(2):
    ...     breaker.failed()
    >>> breaker.lets_through()
    False
    >>> now = 10.0
    >>> breaker.lets_through(), breaker.lets_through()
    (True, False)
    >>> breaker.answered()
    >>> breaker.lets_through()
    True
    """

    def __init__(
        self, now: Callable[[], float], *, failures: int = FAILURES, pause: float = PAUSE
    ) -> None:
        """Start closed; ``now`` tells the time in seconds."""
        self._now = now
        self._failures = failures
        self._pause = pause
        self._in_a_row = 0
        self._opens_at = 0.0

    def lets_through(self) -> bool:
        """Tell whether the source may be asked now; where it is a try, only once a pause."""
        if self._in_a_row < self._failures:
            return True
        if self._now() < self._opens_at:
            return False
        self._opens_at = self._now() + self._pause
        return True

    def answered(self) -> None:
        """Note that the source has answered."""
        self._in_a_row = 0

    def failed(self) -> None:
        """Note that a call has failed."""
        self._in_a_row += 1
        self._opens_at = self._now() + self._pause
