"""Claims of the papers and targets of ours, judged by what was measured.

A claim is data: a sentence, what to say of ours, and the conditions under which it holds. A
condition is a chain of comparisons such as ``1 < naive <= worse.most``, of numbers and of what
was measured, by name. Of several numbers under one name it has to be true of all.

>>> measured = {"naive": Numbers([1.5, 1.7]), "worse": 2.0}
>>> claim = Claim("paper", "is better", "{naive:.1f} against {worse}", ("1 < naive < worse",))
>>> claim.judged(measured)
Judged(source='paper', says='is better', ours='1.5, 1.7 against 2.0', holds=True, remark='')
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from string import Formatter
from typing import Final, Literal

COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Numbers(tuple[float, ...]):
    """Measured numbers of one kind; formatted, each by itself."""

    __slots__ = ()

    @property
    def least(self) -> float:
        """The least of them."""
        return min(self)

    @property
    def most(self) -> float:
        """The greatest of them."""
        return max(self)

    @property
    def mean(self) -> float:
        """Their arithmetic mean."""
        return fmean(self)

    def __format__(self, spec: str) -> str:
        return ", ".join(format(number, spec) for number in self)


Measured = Mapping[str, object]
"""By name: numbers, :class:`Numbers`, and records whose attributes are numbers."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a paper says or what we aim at, beside what came out."""

    source: str
    says: str
    ours: str
    holds: bool
    remark: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed; ``says``, ``ours`` and ``remark`` may name what was measured in braces.

    ``remark`` says what else is to be known, above all why ours differs.
    """

    source: Literal["paper", "target", "ours"]
    says: str
    ours: str
    holds: Iterable[str]
    remark: str = ""

    def judged(self, measured: Measured) -> Judged:
        """Return what came out; raises LookupError where a name was not measured."""
        says, ours, remark = (
            text.format_map(measured) for text in (self.says, self.ours, self.remark)
        )
        holds = all(is_true(condition, measured) for condition in self.holds)
        return Judged(self.source, says, ours, holds, remark)


def is_true(condition: str, measured: Measured) -> bool:
    """Return whether a chain of comparisons is true.

    >>> is_true("a > 1", {"a": Numbers([1, 2])}), is_true("a[1] > a[0] >= 1", {"a": [1, 2]})
    (False, True)
    """
    words = condition.split()
    terms = [_numbers(term, measured) for term in words[::2]]
    return all(
        COMPARISONS[sign](one, other)
        for sign, (left, right) in zip(words[1::2], pairwise(terms), strict=True)
        for one in left
        for other in right
    )


def _numbers(term: str, measured: Measured) -> Iterable[float]:
    try:
        return (float(term),)
    except ValueError:
        found, _ = Formatter().get_field(term, (), measured)
    return found if isinstance(found, Numbers) else (found,)
