"""Numbers, switches and texts that users give, checked where they give them.

The whole house asks here, the engine's policies as well as what users call.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from enum import StrEnum
from numbers import Real
from typing import Final, cast


def whole_number(
    value: object, name: str, least: int, of: str = "", *, floats: bool = False
) -> int:
    """Return a whole number ``of`` something, from ``least`` on; else TypeError or ValueError.

    With ``floats`` one that is written as a float is one, too.

    >>> whole_number("3", "a window", 1, "decisions")
    Traceback (most recent call last):
    TypeError: a window is a whole number of decisions from 1 on, not '3'
    """
    kind = f"whole number of {of}" if of else "whole number"
    wrong = f"{name} is a {kind} from {least} on, not {value!r}"
    if floats and isinstance(value, float):
        if not value.is_integer():
            raise ValueError(wrong)
        value = int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(wrong)
    number = operator.index(value)
    if number < least:
        raise ValueError(wrong)
    return number


def share(value: object, name: str) -> float:
    """Return a share from 0 to 1; else TypeError or ValueError.

    >>> share(2, "exploration")
    Traceback (most recent call last):
    ValueError: exploration is a share from 0 to 1, not 2
    """
    number = real_number(value, name, "share from 0 to 1")
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} is a share from 0 to 1, not {value!r}")
    return number


def positive_number(value: object, name: str, of: str = "", *, finite: bool = True) -> float:
    """Return a number above 0, a ``finite`` one; TypeError, ValueError for anything else.

    >>> positive_number(float("nan"), "timeout", "of seconds")
    Traceback (most recent call last):
    ValueError: timeout is a number of seconds above 0, not nan
    """
    kind = f"number {of}".rstrip() + " above 0"
    number = real_number(value, name, kind)
    if not number > 0 or (finite and math.isinf(number)):
        raise ValueError(f"{name} is a {kind}, not {value!r}")
    return number


def real_number(value: object, name: str, kind: str = "number") -> float:
    """Return a number; TypeError for anything else, and for True and False.

    >>> real_number(True, "weight")
    Traceback (most recent call last):
    TypeError: weight is a number, not True
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is a {kind}, not {value!r}")
    return float(value)


def switch(value: object, name: str) -> bool:
    """Return True or False; TypeError for anything else.

    >>> switch("yes", "remember")
    Traceback (most recent call last):
    TypeError: remember is True or False, not 'yes'
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return value


def text(value: object, name: str, example: str) -> str:
    """Return a text; TypeError for anything else.

    >>> text(3, "url", "https://api.example/{id}")
    Traceback (most recent call last):
    TypeError: url is a text, as 'https://api.example/{id}', not 3
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, as {example!r}, not {value!r}")
    return value


def checked_seed(seed: int) -> None:
    """Raise TypeError, ValueError for what is no seed."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"A seed is a whole number from 0 on, not {seed!r}.")
    if seed < 0:
        raise ValueError(f"A seed is a whole number from 0 on, not {seed}.")


class Joins(StrEnum):
    """Which inner joins run in eddies."""

    AUTO = "auto"  # those with predicates over Python functions, where that pays
    ALWAYS = "always"  # all that can
    NEVER = "never"  # none


def joins_named(name: str) -> Joins:
    """Return the choice of joins of that name; ValueError where there is none."""
    try:
        return Joins(name)
    except ValueError:
        known = ", ".join(repr(str(choice)) for choice in Joins)
        raise ValueError(f"joins is one of {known}, not {name!r}") from None


LEAST_MEMORY: Final = 1 << 10
"""Bytes that a task of a join needs: with less, rows would be written to disk one by one."""

_UNITS: Final = {unit: 1 << 10 * n for n, unit in enumerate(("", "k", "m", "g", "t", "p"))}
"""Bytes of the units of Spark's settings, each also with a ``b`` behind it."""


def memory_size(asked: int | str) -> int:
    """Return a size in bytes, given as a number of these or a text as in Spark's settings.

    ValueError for what is none, or less than 1 KB. Blanks do not matter.

    >>> memory_size("200 MB"), memory_size(2048)
    (209715200, 2048)
    """
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", "".join(str(asked).split()).lower())
    if found is None:
        raise ValueError(f"memory is a size such as 200MB, not {asked!r}")
    size = int(found[1]) * _UNITS[found[2]]
    if size < LEAST_MEMORY:
        raise ValueError(f"memory is a size of at least 1KB, not {asked!r}")
    return size


def worth_of_money(worth: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    """Return what units of money are worth, in seconds; TypeError, ValueError for no numbers."""
    if worth is None:
        return ()
    if not isinstance(worth, Mapping):
        raise TypeError(f'worth is a mapping, as {{"USD": 600}}, not {worth!r}.')
    rates = []
    for unit, given in cast("Mapping[str, object]", worth).items():
        if not isinstance(unit, str):
            raise TypeError(f'worth is a mapping, as {{"USD": 600}}, not {worth!r}.')
        if (
            isinstance(given, bool)
            or not isinstance(given, Real)
            or not 0 <= float(given) < math.inf
        ):
            raise ValueError(f"A {unit} is worth a number of seconds from 0 on, not {given!r}.")
        rates.append((unit, float(given)))
    return tuple(rates)
