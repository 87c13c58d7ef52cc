"""Figures with their types, and how a terminal and a page spell them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from eddyline.reports.records import Change, Order
from eddyline.reports.wording import (
    NOTHING,
    change_text,
    compact,
    count,
    duration,
    order_name,
    percent,
    ratio,
    size,
)


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows, calls or tuples."""

    number: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The rows that reached a predicate, of so many that could; these are None in a join."""

    rows: int
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time; ``about`` where it is an estimate."""

    seconds: float
    about: bool = False


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size in memory or on disk."""

    number: int


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole; it does not exist where the whole is 0."""

    part: float
    whole: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times something is; it does not exist where it is None."""

    value: float | None


Figure: TypeAlias = Count | Reach | Seconds | Bytes | Share | Ratio | str | None
"""What stands in a cell; None where there is no such figure."""

Sentence: TypeAlias = str | tuple[Figure, ...]
"""Words, and figures among them that each face spells in its own way."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How figures are spelled in one place.

    ``counts`` spells a count, ``micro`` the unit of a microsecond, ``about`` stands before an
    estimate, ``arrow`` between the steps of an order. A ``brief`` spelling of a reach tells its
    share alone.
    """

    counts: Callable[[int], str]
    micro: str
    about: str
    arrow: str
    brief: bool = False

    def figure(self, figure: Figure) -> str:  # noqa: PLR0911 - one a kind
        """Spell a figure.

        >>> TERMINAL.figure(Count(2_500_000)), PAGE.figure(Count(2_500_000))
        ('2.50M', '2,500,000')
        >>> TERMINAL.figure(Reach(104_000, 329_000)), BRIEF.figure(Reach(104_000, 329_000))
        ('104k (31.6 %)', '31.6 %')
        >>> PAGE.figure(Seconds(12.34e-6, about=True)), PAGE.figure(None)
        ('≈ 12.3 µs', '-')
        """
        match figure:
            case None:
                return NOTHING
            case str():
                return figure
            case Count(number):
                return self.counts(number)
            case Reach(rows, of):
                return self._reach(rows, of)
            case Seconds(seconds, about):
                return self.about * about + self.time(seconds)
            case Bytes(number):
                return size(number)
            case Share(part, whole):
                return percent(part, whole)
            case Ratio(value):
                return ratio(value)

    def time(self, seconds: float) -> str:
        """Spell a time.

        >>> TERMINAL.time(12.34e-6), PAGE.time(12.34e-6)
        ('12.3 us', '12.3 µs')
        """
        return self._with_unit(duration(seconds))

    def sentence(self, parts: Sentence) -> str:
        """Spell a sentence with figures in it.

        >>> PAGE.sentence(("It took ", Seconds(3e-6), "."))
        'It took 3.00 µs.'
        """
        return parts if isinstance(parts, str) else "".join(map(self.figure, parts))

    def order(self, steps: Order, labels: Sequence[str]) -> str:
        """Spell an order by the labels of its steps.

        >>> PAGE.order((1, 0), ("1", "flights"))
        'flights → 1'
        """
        return order_name(steps, self.arrow, labels)

    def change(self, change: Change) -> str:
        """Say what changed, without when."""
        return self._with_unit(change_text(change, self.arrow))

    def _with_unit(self, words: str) -> str:
        return words.replace(" us", f" {self.micro}")

    def _reach(self, rows: int, of: int | None) -> str:
        if not rows:
            return "never" if self.brief else "never reached"
        if of is None:
            return self.counts(rows)
        return percent(rows, of) if self.brief else f"{self.counts(rows)} ({percent(rows, of)})"


TERMINAL: Final = Spelling(compact, "us", "~", "->")
"""A terminal has little room, and may know ASCII alone."""

BRIEF: Final = replace(TERMINAL, brief=True)
"""A narrow terminal."""

PAGE: Final = Spelling(count, "µs", "≈ ", "→")
"""A page has room for all digits."""

TILES: Final = replace(PAGE, counts=compact)
"""What a page tells at a glance."""
