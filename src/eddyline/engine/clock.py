"""Time, as the engine knows it: a clock that it is given."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Where the engine reads the time; seconds, or any other unit that costs are stated in."""

    @property
    def resolution(self) -> float:
        """The shortest time that the clock can tell from none; 0 where it tells all."""
        ...

    def now(self) -> float:
        """Return the time; it never goes backwards."""
        ...


class VirtualClock:
    """A clock that moves only when it is told to.

    >>> clock = VirtualClock()
    >>> clock.advance(2.5)
    >>> clock.now()
    2.5
    """

    resolution = 0.0

    def __init__(self, start: float = 0.0) -> None:
        """Start at ``start``."""
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
