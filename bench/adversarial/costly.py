"""Python predicates of known cost."""

from __future__ import annotations

import time
from collections.abc import Callable


def costly(test: Callable[..., bool], microseconds: float) -> Callable[..., bool]:
    """Return a predicate that keeps its core busy for a time, then answers as ``test`` does.

    >>> costly(lambda number: number > 2, microseconds=5)(3)
    True
    """
    seconds = microseconds * 1e-6
    clock = time.perf_counter

    def predicate(*values: int) -> bool:
        end = clock() + seconds
        while clock() < end:
            pass
        return test(*values)

    return predicate
