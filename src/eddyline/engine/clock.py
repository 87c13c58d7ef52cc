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
