"""What people write around a function that is asked the same again and again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def remembered(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function behind :func:`functools.lru_cache`, whose cache is made by a first call.

    So each task has its own: a cache does not travel, and one that is a worker's own would have
    all answers from the run before, which asks the same.

    >>> asked = []
    >>> double = remembered(lambda number: asked.append(number) or 2 * number)
    >>> double(1), double(1), asked
    (2, 2, [1])
    """
    cached: Callable[..., Value] | None = None

    def ask(*values: object) -> Value:
        nonlocal cached
        if cached is None:
            cached = functools.lru_cache(maxsize=None)(function)
        return cached(*values)

    return ask
