"""Claims of the papers and targets of ours, judged by what was measured.

A claim is data: a sentence, what to say of ours, and the conditions under which it holds. A
condition is a chain of comparisons such as ``1 < naive <= worse.most``, of numbers and of what
was measured, by name. Of several numbers under one name it has to be true of all.

>>> measured = {"naive": Numbers([1.5, 1.7]), "worse": 2.0}
>>> claim = Claim("paper", "is better", "{naive:.1f} against {worse}", ("1 < naive < worse",))
>>> judged = claim.judged(measured)
>>> judged.ours, judged.verdict
('1.5, 1.7 against 2.0', 'holds')

Runs with other seeds, or single turns, say how far what was measured spreads; see :class:`Repeats`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median_low
from string import Formatter
from typing import Any, Final, Literal

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
class Repeats:
    """What was measured with each of several seeds, or in each of several turns.

    Runs with one seed are as good as those with another: a claim holds if it does with most of
    them, and the median is given. Turns are there for the median of them all: a claim holds if it
    does of that, which is given.
    """

    of: Literal["seeds", "turns"]
    measured: Sequence[Measured]

    @property
    def name(self) -> str:
        """How many there are of what."""
        return f"{len(self.measured)} {self.of}"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a paper says or what we aim at, beside what came out.

    ``held`` of ``repeats`` seeds or turns agree with the claim; of none where there was one run.
    """

    source: str
    says: str
    ours: str
    holds: bool
    remark: str
    held: int = 0
    repeats: int = 0

    @property
    def verdict(self) -> str:
        """Whether it holds, and how often where that is not always."""
        word = "holds" if self.holds else "differs"
        always = self.held == (self.repeats if self.holds else 0)
        return word if always else f"{word}; holds in {self.held} of {self.repeats}"


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

    def judged(self, measured: Measured, repeats: Repeats | None = None) -> Judged:
        """Return what came out; raises LookupError where a name was not measured."""
        says, remark = (text.format_map(measured) for text in (self.says, self.remark))
        if repeats is None or not repeats.measured:
            ours = self.ours.format_map(measured)
            return Judged(self.source, says, ours, self._holds(measured), remark)
        held = sum(map(self._holds, repeats.measured))
        seeds = repeats.of == "seeds"
        holds = 2 * held > len(repeats.measured) if seeds else self._holds(measured)
        ours = spread(self.ours, repeats.measured, None if seeds else measured)
        return Judged(self.source, says, ours, holds, remark, held, len(repeats.measured))

    def _holds(self, measured: Measured) -> bool:
        return all(is_true(condition, measured) for condition in self.holds)


def spread(text: str, repeats: Sequence[Measured], middle: Measured | None = None) -> str:
    """Return a text with what it names in braces, and from where to where that goes in repeats.

    What is given is the median of the repeats, or what was measured in the ``middle`` of them.

    >>> spread("{x:.1f} s by {y}", [{"x": 1.0, "y": "a"}, {"x": 3.0, "y": "b"}], {"x": 2, "y": "a"})
    '2.0 (1.0-3.0) s by a or b'
    """
    formatter, parts = Formatter(), []
    for literal, name, spec, _ in formatter.parse(text):
        parts.append(literal)
        if name is not None:
            values = [formatter.get_field(name, (), each)[0] for each in repeats]
            given = None if middle is None else formatter.get_field(name, (), middle)[0]
            parts.append(_spread(values, spec or "", given))
    return "".join(parts)


def _spread(values: Sequence[Any], spec: str, given: object) -> str:
    if isinstance(values[0], Numbers):
        givens = given if isinstance(given, Numbers) else [None] * len(values[0])
        by_place = zip(zip(*values, strict=True), givens, strict=True)
        return ", ".join(_spread(of_one, spec, own) for of_one, own in by_place)
    if not all(isinstance(value, int | float) for value in values):
        return " or ".join(dict.fromkeys(format(value, spec) for value in values))
    told = format(median_low(values) if given is None else given, spec)
    least, most = format(min(values), spec), format(max(values), spec)
    return told if least == most == told else f"{told} ({least}-{most})"


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
