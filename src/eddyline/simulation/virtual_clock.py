"""Time that passes only when somebody says so."""

from __future__ import annotations


class VirtualClock:
    """A clock that moves only when it is told to.

    >>> clock = VirtualClock()
    >>> clock.advance(2.5)
    >>> clock.now()
    2.5
    """

    resolution = 0.0

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the virtual time."""
        return self._now

    def advance(self, duration: float) -> None:
        """Move the clock on; a negative duration raises ValueError."""
        if duration < 0:
            message = f"a clock cannot go back ({duration})"
            raise ValueError(message)
        self._now += duration
