"""The conditions on several streams of all queries, each distinct attribute once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from eddyline.expressions import Argument, Call, Expression
from eddyline.expressions.terms import Conjunction, Term, terms_of
from eddyline.standing.engine.join_conditions import (
    JoinAttribute,
    JoinCondition,
    conditions_in,
    met,
)
from eddyline.standing.engine.shared_conditions import PairedCondition, RangedCondition
from eddyline.standing.engine.shared_query import SharedQuery

AskedCondition: TypeAlias = RangedCondition | PairedCondition


class _Asked(NamedTuple):
    """When a condition is evaluated, and what: for tuples that span ``streams``, a mask.

    ``selecting`` is the stream that it is a delayed selection of.
    """

    streams: int
    attribute: JoinAttribute
    selecting: int | None


class AskedConditions:
    """What is asked of joined tuples, and by whom.

    A condition that cannot fail is known as soon as a tuple spans its streams, any other when the
    tuple spans all streams of the query.
    """

    def __init__(self) -> None:
        self._asked: dict[_Asked, AskedCondition] = {}
        self._queries: dict[int, dict[_Asked, JoinCondition]] = {}
        self._predicates: dict[int, list[tuple[JoinCondition, int]]] = {}
        self._due: dict[tuple[int, int], list[AskedCondition]] = {}

    @property
    def calling(self) -> tuple[Expression, ...]:
        """The expressions that call functions."""
        return tuple(
            asked.attribute.expression
            for asked in self._asked
            if any(isinstance(node, Call) for node in asked.attribute.expression.walk())
        )

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Take the conditions of further queries; ValueError where one leaves their streams."""
        came: dict[_Asked, dict[int, JoinCondition]] = {}
        split = {
            n: list(_conditions_of(query))
            for n, query in queries.items()
            if query.conditions or query.absence is not None
        }
        for number, conditions in split.items():
            streams = queries[number].shape.streams if conditions else 0
            for condition, _ in conditions:
                if condition.attribute.streams & ~streams or not streams & (streams - 1):
                    raise ValueError(
                        f"{condition.predicate} is about other streams than {streams:#b}"
                    )
        for number, conditions in split.items():
            if not conditions:
                continue
            of_query = self._queries[number] = {}
            self._predicates[number] = conditions
            for condition, needed in conditions:
                asked = _Asked(needed, condition.attribute, condition.selecting)
                before = of_query.get(asked)
                if before is not None:
                    condition = condition._replace(ranges=met(before.ranges, condition.ranges))  # noqa: PLW2901 - both
                of_query[asked] = came.setdefault(asked, {})[number] = condition
        for asked, of_queries in came.items():
            if asked not in self._asked:
                attribute = asked.attribute
                self._asked[asked] = (
                    PairedCondition(attribute)
                    if attribute.constants
                    else RangedCondition(attribute.expression, asked.selecting)
                )
            self._asked[asked].add(of_queries)
        self._due.clear()

    def remove(self, queries: Collection[int]) -> None:
        """Forget the conditions of queries."""
        went: dict[_Asked, list[int]] = {}
        for number in queries:
            self._predicates.pop(number, None)
            for asked in self._queries.pop(number, ()):
                went.setdefault(asked, []).append(number)
        for asked, of_queries in went.items():
            self._asked[asked].remove(of_queries)
            if not self._asked[asked].asking.queries:
                del self._asked[asked]
        self._due.clear()

    def due(self, spanned: int, newest: int) -> Sequence[AskedCondition]:
        """Return what is asked of tuples that have got a component of a stream, ``newest``.

        None of these conditions can fail.
        """
        return self._chosen(spanned, 1 << newest)

    def at_last(self, spanned: int) -> Sequence[AskedCondition]:
        """Return what is asked of tuples that span all streams of queries: it may fail."""
        return self._chosen(spanned, 0)

    def predicate(self, query: int, spanned: int) -> tuple[Term, dict[int, pa.Array]]:
        """Return what a query asks of tuples that span some streams, and its constants.

        Of each constant one value.
        """
        terms, constants = [], {}
        for condition, needed in self._predicates[query]:
            if needed & ~spanned:
                continue  # about what must not be there
            terms.append(terms_of(condition.predicate))
            for node in condition.predicate.walk():
                if isinstance(node, Argument) and node.index < 0:
                    value = condition.constants[-1 - node.index]
                    constants[node.index] = pa.array([value], node.type)
        return Conjunction(tuple(terms)), constants

    def _chosen(self, spanned: int, newest: int) -> list[AskedCondition]:
        known = self._due.get((spanned, newest))
        if known is None:
            known = self._due[spanned, newest] = [
                condition
                for asked, condition in self._asked.items()
                if (
                    not asked.streams & ~spanned and asked.streams & newest
                    if newest
                    else asked.streams == spanned
                )
                and _at_last(asked) is not bool(newest)
            ]
        return known


def _conditions_of(query: SharedQuery) -> Iterator[tuple[JoinCondition, int]]:
    """Yield the conditions of a query, each with the streams that a tuple must span for it."""
    if query.conditions:
        present, whole = query.present.streams, query.shape.streams
        for condition in conditions_in(query.conditions):
            attribute = condition.attribute
            yield condition, attribute.needs(whole if attribute.streams & ~present else present)
    if query.absence is not None:
        for condition in conditions_in(query.absence.conditions):
            yield condition, query.shape.streams


def _at_last(asked: _Asked) -> bool:
    """Tell whether a condition waits until a tuple spans all streams of a query."""
    attribute = asked.attribute
    return attribute.may_fail or not attribute.streams & (attribute.streams - 1)
