"""Which texts pass which tests: an index of the literals without which a text cannot pass.

An automaton (Aho and Corasick, 1975) finds the literals of all tests in one pass over the texts;
the few texts that have one are confirmed by the test itself. The idea is old: codesearch of Cox
(2012), and every intrusion detection system. See ``docs/decisions/0082-patterns-are-grouped.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.program import true_mask
from eddyline.expressions.strings import TextKernel, TextTest, with_valid_text

try:
    import ahocorasick_rs
except ImportError:  # without the extra `streaming` each test looks at all texts
    ahocorasick_rs = None  # type: ignore[assignment]

Integers: TypeAlias = "npt.NDArray[np.int64]"

Pairs: TypeAlias = "tuple[Integers, Integers]"
"""Positions of texts, and numbers of what they are paired with."""

MOST_BYTES: Final = 1 << 20
"""Bytes of texts that are searched at once: each literal found is a Python tuple of 150 bytes."""


class LiteralIndex:
    """Tells which texts pass which of some tests, known by their position.

    A test may need literals of several sets, one of each. Which of the sets is looked at is decided
    for each search, by how often its literals are met there: with 10,000 rules over log lines, of
    which 1,250 need "table app" and each a number of its own, 10,000 lines took 4.5 s by the
    longest literal.

    Time of a search grows with the texts (20 ms a megabyte) and with the pairs of a text and a test
    that it may pass (15 microseconds for each test that has any, as RE2 compiles it); that of tests
    without a literal with their number times the texts.
    """

    def __init__(self, tests: Sequence[TextTest]) -> None:
        self._tests = tests
        self._kernels: dict[int, TextKernel] = {}
        searches = [test.search for test in tests]
        self._exact = np.array([search.exact for search in searches], np.bool_)
        automatic = ahocorasick_rs is not None
        needed = [search.needed if automatic else () for search in searches]
        self._everywhere = [number for number, sets in enumerate(needed) if not sets]
        numbers: dict[str, int] = {}
        test_of: list[int] = []
        pairs: list[tuple[int, int]] = []
        for number, sets in enumerate(needed):
            for literals in sets:
                pairs += [(len(test_of), numbers.setdefault(t, len(numbers))) for t in literals]
                test_of.append(number)
        self._test_of = np.array(test_of, np.int64)
        self._first_sets = np.flatnonzero(np.diff(self._test_of, prepend=-1))
        self._literals_of = Spread.of(pairs, len(test_of))
        self._literals = len(numbers)
        self._automaton = (
            ahocorasick_rs.BytesAhoCorasick([literal.encode() for literal in numbers])
            if numbers
            else None
        )

    def passed(self, texts: pa.Array) -> Pairs:
        """Return pairs of a text and a test that it passes, each once, in no order.

        The texts are not NULL.
        """
        found = [self._confirmed(test, texts, None) for test in self._everywhere]
        at, tests = self._candidates(texts)
        exact = self._exact[tests]
        found.append((at[exact], tests[exact]))
        at, tests = at[~exact], tests[~exact]
        bounds = [*np.flatnonzero(np.diff(tests, prepend=-1)).tolist(), len(tests)]
        for start, stop in itertools.pairwise(bounds):
            found.append(self._confirmed(int(tests[start]), texts, at[start:stop]))
        return joined(found)

    def _confirmed(self, test: int, texts: pa.Array, among: Integers | None) -> Pairs:
        kernel = self._kernels.get(test)
        if kernel is None:
            kernel = self._kernels[test] = self._tests[test].kernel()
        passed = true_mask(kernel(texts if among is None else texts.take(pa.array(among))))
        at = np.flatnonzero(passed) if among is None else among[passed]
        return at, np.full(len(at), test, np.int64)

    def _candidates(self, texts: pa.Array) -> Pairs:
        """Return pairs of a text and a test that it may pass, by test."""
        if self._automaton is None:
            return _NO_PAIRS
        lowered = pc.ascii_lower(with_valid_text(texts))
        at, literals = distinct(joined(list(self._occurrences(lowered))), len(texts))
        texts_of = Spread(literals, at, self._literals)
        met = self._literals_of.sums(texts_of.sizes)
        # Of each test the set that is met least often; nothing of a test with one that never is.
        least = np.repeat(
            np.minimum.reduceat(met, self._first_sets),
            np.diff(self._first_sets, append=len(met)),
        )
        sets = np.flatnonzero((met == least) & (least > 0))
        sets = sets[np.flatnonzero(np.diff(self._test_of[sets], prepend=-1))]
        tests, literals = self._literals_of.pairs(self._test_of[sets], sets)
        tests, at = texts_of.pairs(tests, literals)
        return distinct((at, tests), len(texts))

    def _occurrences(self, texts: pa.Array) -> Iterator[Pairs]:
        """Yield pairs of a text and a literal in it, some more than once."""
        wide = pa.types.is_large_string(texts.type)
        _, offsets_buffer, data = texts.buffers()
        if self._automaton is None or data is None:
            return
        kind = np.int64 if wide else np.int32
        offsets = np.frombuffer(offsets_buffer, kind)[texts.offset : texts.offset + len(texts) + 1]
        characters = np.frombuffer(data, np.uint8)
        first = 0
        while first < len(texts):
            start = int(offsets[first])
            after = max(int(np.searchsorted(offsets, start + MOST_BYTES, "right")) - 1, first + 1)
            part = characters[start : int(offsets[after])].data
            matches = self._automaton.find_matches_as_indexes(part, overlapping=True)
            if matches:
                literals, begins, ends = np.array(matches, np.int64).T
                at = np.searchsorted(offsets, begins + start, "right") - 1
                within = ends + start <= offsets[at + 1]  # not from one text into the next
                yield at[within], literals[within]
            first = after


_NOTHING: Final = np.empty(0, np.int64)
_NO_PAIRS: Final = (_NOTHING, _NOTHING)


def joined(parts: Sequence[Pairs]) -> Pairs:
    """Return pairs end to end."""
    if not parts:
        return _NO_PAIRS
    at, numbers = zip(*parts, strict=True)
    return np.concatenate(at), np.concatenate(numbers)


def distinct(pairs: Pairs, texts: int) -> Pairs:
    """Return pairs of texts below so many with something, each once, by the latter."""
    at, numbers = pairs
    keys = numbers * max(texts, 1) + at
    keys.sort()  # numpy.unique takes three times as long
    numbers, at = np.divmod(keys[np.diff(keys, prepend=-1) > 0], max(texts, 1))
    return at, numbers


class Spread:
    """What numbers below ``size`` are paired with, each with any number of others."""

    def __init__(self, ones: Integers, others: Integers, size: int) -> None:
        self._others = others[np.argsort(ones, kind="stable")]
        self.sizes = np.bincount(ones, minlength=size)
        """With how many each is."""
        self._starts = np.cumsum(self.sizes) - self.sizes

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]], size: int) -> Spread:
        """Return it for pairs of Python's."""
        ones, others = np.array(pairs, np.int64).reshape(-1, 2).T
        return cls(ones, others, size)

    def pairs(self, at: Integers, numbers: Integers) -> Pairs:
        """Return pairs with all that the second of each is paired with in its place."""
        sizes = self.sizes[numbers]
        ends = np.cumsum(sizes)
        inner = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return np.repeat(at, sizes), self._others[np.repeat(self._starts[numbers], sizes) + inner]

    def sums(self, values: Integers) -> Integers:
        """Return for each number the sum of what its others have for a value."""
        ends = np.concatenate([[0], np.cumsum(values[self._others])])
        sums: Integers = ends[self._starts + self.sizes] - ends[self._starts]
        return sums
