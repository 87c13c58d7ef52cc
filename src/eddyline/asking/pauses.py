"""How long to wait before the next try, and how many there were."""

from __future__ import annotations

from random import Random
from typing import Final

FIRST: Final = 0.2
"""Seconds before the second try at the most; each next one waits for twice as long at the most."""

LONGEST: Final = 20.0
"""Seconds before any try at the most."""


def pause(tries: int, random: Random) -> float:
    """Return the seconds to wait after so many tries: up to twice as long each time.

    With full jitter, so that calls which failed together do not come together again.

    >>> random = Random(0)
    >>> [round(pause(tries, random), 2) for tries in (1, 2, 30)]
    [0.17, 0.3, 8.41]
    """
    return random.uniform(0.0, min(LONGEST, FIRST * 2 ** (tries - 1)))


def tried(tries: int) -> str:
    """Return how often something was tried, as people read it.

    >>> tried(1), tried(3)
    ('tried once', 'tried 3 times')
    """
    return "tried once" if tries == 1 else f"tried {tries} times"
