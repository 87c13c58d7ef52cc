"""Parameters of policies, checked where a policy is made."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from numbers import Real


def whole_number(value: object, what: str, of: str, least: int = 1) -> int:
    """Return a whole number ``of`` something, from ``least`` on; else TypeError or ValueError.

    >>> whole_number("3", "a window", "decisions")
    Traceback (most recent call last):
    TypeError: a window is a whole number of decisions from 1 on, not '3'
    """
    wrong = f"{what} is a whole number of {of} from {least} on, not {value!r}"
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(wrong)
    if isinstance(value, bool) or not (hasattr(value, "__index__") or isinstance(value, float)):
        raise TypeError(wrong)
    number = int(value) if isinstance(value, float) else operator.index(value)
    if number < least:
        raise ValueError(wrong)
    return number


def share(value: object, what: str) -> float:
    """Return a share from 0 to 1; else TypeError or ValueError.

    >>> share(2, "exploration")
    Traceback (most recent call last):
    ValueError: exploration is a share from 0 to 1, not 2
    """
    wrong = f"{what} is a share from 0 to 1, not {value!r}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(wrong)
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(wrong)
    return number


def switch(value: object, what: str) -> bool:
    """Return what is true or false; else TypeError.

    >>> switch("no", "by_content")
    Traceback (most recent call last):
    TypeError: by_content is True or False, not 'no'
    """
    if not isinstance(value, bool):
        raise TypeError(f"{what} is True or False, not {value!r}")
    return value


def order_of_modules(value: object) -> tuple[int, ...]:
    """Return an order of modules, each of which has a number from 0 on and comes once.

    TypeError for what is no sequence of such numbers, ValueError for one with a number twice.

    >>> order_of_modules((1, 1))
    Traceback (most recent call last):
    ValueError: an order names each module once, by its number from 0 on, not (1, 1)
    """
    wrong = f"an order names each module once, by its number from 0 on, not {value!r}"
    if isinstance(value, str | AbstractSet) or not isinstance(value, Iterable):
        raise TypeError(wrong)
    numbers: Sequence[object] = tuple(value)
    if any(isinstance(number, bool) or not hasattr(number, "__index__") for number in numbers):
        raise TypeError(wrong)
    order = tuple(map(operator.index, numbers))  # type: ignore[arg-type]
    if len(set(order)) < len(order) or min(order, default=0) < 0:
        raise ValueError(wrong)
    return order
