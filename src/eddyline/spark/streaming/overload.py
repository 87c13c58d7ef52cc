"""What is done when events come faster than they can be worked."""

from __future__ import annotations

from typing import Final

POLICIES: Final = ("block", "sample")
"""Events wait, or only a sample of them is taken."""

LEAST: Final = 0.001
"""The part of the events that is taken at the least."""

GROWTH: Final = 1.5
"""By how much the part grows after a batch that took less than half of what it may."""


class Overload:
    """How much of the next micro-batch is taken, by how long the last ones took."""

    def __init__(self, policy: str, target: float) -> None:
        """Begin with all; ``target`` are the seconds that a batch may take."""
        self._samples = policy == "sample"
        self._target = target
        self.kept = 1.0
        """The part of the rows that is taken."""

    def took(self, seconds: float) -> None:
        """Take in how long a batch took."""
        if not self._samples:
            return
        if seconds > self._target:
            self.kept = max(self.kept * self._target / seconds, LEAST)
        elif seconds < self._target / 2:
            self.kept = min(self.kept * GROWTH, 1.0)
