"""The boxes of all queries as arrays, kept up as queries come and go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.expressions import Expression, evaluate, type_of
from eddyline.expressions.vector import Scope
from eddyline.standing.engine import filter_kernels as kernels
from eddyline.standing.engine.key_space import KeySpace, key_space
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
    """An attribute of predicates, with all ranges that its values are compared with."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self._type = type_of(expression)
        self._bounds: dict[Range, tuple[int, int]] = {}
        self._space: KeySpace | None = None

    @property
    def space(self) -> KeySpace:
        """The words of its values."""
        if self._space is None:
            self._space = key_space(self._type, self._bounds)
        return self._space

    def take(self, ranges: Collection[Range]) -> bool:
        """Take further ranges; tell whether those known before have other words now."""
        new = [range_ for range_ in ranges if range_ not in self._bounds]
        before = self._space
        if new and (before is None or not before.fits(new)):
            self._bounds |= dict.fromkeys(new, (0, 0))
            self._space = None
            self._bounds = dict(
                zip(self._bounds, self.space.bounds(list(self._bounds)), strict=True)
            )
            return before is not None
        self._bounds |= zip(new, self.space.bounds(new), strict=True)
        return False

    @property
    def bounds(self) -> Mapping[Range, tuple[int, int]]:
        """The least and the greatest word of each range that was taken."""
        return self._bounds

    def words(self, scope: Scope) -> Integers:
        """Return the words of its values, one a row."""
        return self.space.words(evaluate(self.expression, scope).values)


class Boxes:
    """The boxes of queries, by the queries' numbers."""

    def __init__(self) -> None:
        self.attributes: list[Attribute] = []
        self._number: dict[Expression, int] = {}
        self._of: dict[int, Sequence[Box]] = {}
        self._parts = [self._compiled({})]
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
        if self._take_ranges(boxes):
            self._parts = [self._compiled(self._of)]
        elif boxes:
            self._parts.append(self._compiled(boxes))

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
        self._take_ranges(self._of)
        self._parts = [self._compiled(self._of)]

    def _take_ranges(self, boxes: Mapping[int, Sequence[Box]]) -> bool:
        ranges: dict[Expression, dict[Range, None]] = {}
        for of_query in boxes.values():
            for box in of_query:
                for expression, range_ in box.items():
                    of_attribute = ranges.get(expression)
                    if of_attribute is None:
                        of_attribute = ranges[expression] = {}
                    of_attribute[range_] = None
        changed = False
        for expression, of_attribute in ranges.items():
            number = self._number.get(expression)
            if number is None:
                number = self._number[expression] = len(self.attributes)
                self.attributes.append(Attribute(expression))
            changed |= self.attributes[number].take(of_attribute.keys())
        return changed

    def _compiled(self, boxes: Mapping[int, Sequence[Box]]) -> Constraints:
        known = {
            expression: (number, self.attributes[number].bounds)
            for expression, number in self._number.items()
        }
        queries, sizes, attributes, bounds = [], [], [], []
        for query in sorted(boxes):
            for box in boxes[query]:
                queries.append(query)
                sizes.append(len(box))
                for expression, range_ in box.items():
                    number, bounds_of = known[expression]
                    attributes.append(number)
                    bounds.append(bounds_of[range_])
        least, greatest = np.array(bounds, np.int64).reshape(-1, 2).T
        return Constraints(
            np.array(queries, np.int32),
            _starts(np.array(sizes, np.int64)),
            np.array(attributes, np.int32),
            np.ascontiguousarray(least),
            np.ascontiguousarray(greatest),
        )


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
