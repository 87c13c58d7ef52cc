"""The boxes of all queries as arrays, kept up as queries come and go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.expressions import Expression, evaluate, type_of
from eddyline.expressions.vector import Scope
from eddyline.standing.engine import filter_kernels as kernels
from eddyline.standing.engine.key_space import Bounds, KeySpace, key_space
from eddyline.standing.engine.ranges import Box, Range

Integers = npt.NDArray[np.int64]


class Constraints(NamedTuple):
    """Boxes in the order of their queries: box b is of ``queries[b]``.

    It has the constraints ``starts[b]`` to ``starts[b + 1]``: the words of attribute number
    ``attributes[c]`` must lie from ``least[c]`` to ``greatest[c]``.
    """

    queries: npt.NDArray[np.int32]
    starts: Integers
    attributes: npt.NDArray[np.int32]
    least: Integers
    greatest: Integers

    @property
    def box_of(self) -> Integers:
        """The box of each constraint."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.starts))


class Attribute:
    """An attribute of predicates, and how its values and their ranges are words."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self._type = type_of(expression)
        self._space: KeySpace | None = None

    def fits(self, ranges: Sequence[Range]) -> bool:
        """Tell whether ranges can be told apart by the words that there are, if there are any.

        The first ones say which words there are.
        """
        if self._space is None:
            self._space = key_space(self._type, ranges)
            return True
        return self._space.fits(ranges)

    def bounds(self, ranges: Sequence[Range]) -> Bounds:
        """Return the least and the greatest word of ranges that were taken, or that fit."""
        return self._words().bounds(ranges)

    def words(self, scope: Scope) -> Integers:
        """Return the words of its values, one a row."""
        return self._words().words(evaluate(self.expression, scope).values)

    def _words(self) -> KeySpace:
        if self._space is None:
            raise ValueError(f"no ranges of {self.expression} are known")
        return self._space


class Boxes:
    """The boxes of queries, by the queries' numbers."""

    def __init__(self) -> None:
        self.attributes: list[Attribute] = []
        self._number: dict[Expression, int] = {}
        self._of: dict[int, Sequence[Box]] = {}
        self._parts = [self._compiled(self._read({}))]
        self._gone = 0  # queries removed since all boxes were compiled

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._of)

    def __contains__(self, query: object) -> bool:
        """Tell whether a query is here."""
        return query in self._of

    def add(self, boxes: Mapping[int, Sequence[Box]]) -> None:
        """Take the boxes of further queries; ValueError for one that is here already."""
        if both := boxes.keys() & self._of.keys():
            raise ValueError(f"queries {sorted(both)} are here already")
        self._of |= boxes
        read = self._read(boxes)
        if any(not self.attributes[number].fits(ranges) for number, ranges in read.ranges.items()):
            self._compile_all()
        elif boxes:
            self._parts.append(self._compiled(read))

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries; ValueError for one that is not here."""
        if unknown := set(queries) - self._of.keys():
            raise ValueError(f"there are no queries {sorted(unknown)}")
        for query in queries:
            del self._of[query]
        self._gone += len(queries)
        gone = np.array(sorted(queries), np.int32)
        kept = [np.flatnonzero(~np.isin(part.queries, gone)) for part in self._parts]
        self._parts = [_chosen(part, rows) for part, rows in zip(self._parts, kept, strict=True)]
        used = np.unique(np.concatenate([part.attributes for part in self._parts]))
        if self._gone > len(self._of) or len(used) < len(self.attributes):
            self._compile_all()  # so that nothing is left of what has gone

    def constraints(self) -> Constraints:
        """Return all boxes, in the order of their queries."""
        parts = self._parts
        whole = parts[0]
        if len(parts) > 1:
            sizes = np.concatenate([np.diff(part.starts) for part in parts])
            whole = Constraints(
                np.concatenate([part.queries for part in parts]),
                _starts(sizes),
                np.concatenate([part.attributes for part in parts]),
                np.concatenate([part.least for part in parts]),
                np.concatenate([part.greatest for part in parts]),
            )
        if (np.diff(whole.queries) < 0).any():
            whole = _chosen(whole, np.argsort(whole.queries, kind="stable"))
        self._parts = [whole]
        return whole

    def words(self, scope: Scope) -> Integers:
        """Return the words of rows, shape (rows, attributes)."""
        words = np.zeros((len(scope), max(len(self.attributes), 1)), np.int64)
        for number, attribute in enumerate(self.attributes):
            words[:, number] = attribute.words(scope)
        return words

    def _compile_all(self) -> None:
        self.attributes, self._number, self._gone = [], {}, 0
        read = self._read(self._of)
        for number, ranges in read.ranges.items():
            self.attributes[number].fits(ranges)
        self._parts = [self._compiled(read)]

    def _read(self, boxes: Mapping[int, Sequence[Box]]) -> _ReadBoxes:
        """Read boxes, in the order of their queries; attributes that are new get numbers."""
        queries, sizes, attributes = [], [], []
        ranges: dict[int, list[Range]] = {}
        # By identity first: queries of a template have the same expression, which is hashed by all
        # that it says otherwise.
        known: dict[int, tuple[int, list[Range]]] = {}
        for query in sorted(boxes):
            for box in boxes[query]:
                queries.append(query)
                sizes.append(len(box))
                for expression, range_ in box.items():
                    entry = known.get(id(expression))
                    if entry is None:
                        number = self._numbered(expression)
                        entry = known[id(expression)] = number, ranges.setdefault(number, [])
                    attributes.append(entry[0])
                    entry[1].append(range_)
        return _ReadBoxes(
            np.array(queries, np.int32),
            np.array(sizes, np.int64),
            np.array(attributes, np.int32),
            ranges,
        )

    def _numbered(self, expression: Expression) -> int:
        number = self._number.get(expression)
        if number is None:
            number = self._number[expression] = len(self.attributes)
            self.attributes.append(Attribute(expression))
        return number

    def _compiled(self, read: _ReadBoxes) -> Constraints:
        least, greatest = np.empty((2, len(read.attributes)), np.int64)
        for number, ranges in read.ranges.items():
            places = read.attributes == number
            least[places], greatest[places] = self.attributes[number].bounds(ranges)
        return Constraints(read.queries, _starts(read.sizes), read.attributes, least, greatest)


class _ReadBoxes(NamedTuple):
    """Boxes in the order of their queries: their sizes, and the attribute of each constraint.

    ``ranges`` are those of each attribute, in the order of the constraints.
    """

    queries: npt.NDArray[np.int32]
    sizes: Integers
    attributes: npt.NDArray[np.int32]
    ranges: dict[int, list[Range]]


def _starts(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _chosen(part: Constraints, boxes: Integers) -> Constraints:
    """Return some boxes, in the order given."""
    sizes = np.diff(part.starts)[boxes]
    starts = _starts(sizes)
    places = np.repeat(part.starts[boxes] - starts[:-1], sizes) + np.arange(starts[-1])
    return Constraints(
        part.queries[boxes],
        starts,
        part.attributes[places],
        part.least[places],
        part.greatest[places],
    )


def axis_of(attribute: int, cuts: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Return the row of an axis that is alone, and its buckets; ``cuts`` ascend."""
    span = int(cuts[-1]) - int(cuts[0]) if len(cuts) else 0
    shift = max(span.bit_length() - (kernels.BUCKETS.bit_length() - 1), 0)
    buckets = np.zeros(kernels.BUCKETS + 1, np.int32)
    kernels.fill_buckets(cuts, shift, buckets)
    return np.array([attribute, 0, len(cuts), 0, shift], np.int64), buckets
