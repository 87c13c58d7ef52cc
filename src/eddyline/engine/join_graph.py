"""The join graph of a query: what its predicates say about which relations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from eddyline.engine.join_query import JoinQuery, Lookup
from eddyline.errors import NotExecutableError
from eddyline.expressions import (
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    calls_in,
    with_arguments,
)
from eddyline.expressions.value_types import (
    is_joinable,
    is_one_value,
    is_ordered,
    same_but_for_labels,
)


class Place(NamedTuple):
    """A column of a relation."""

    relation: int
    column: int


class Key(NamedTuple):
    """One column of a join key: what a tuple brings, and what a stored row must have there."""

    probing: Place
    stored: int  # column of the relation probed


@dataclass(frozen=True, slots=True)
class RangeEdge:
    """``left operator right`` between columns of two relations; ``predicate`` is its number."""

    predicate: int
    left: Place
    operator: ComparisonOperator
    right: Place

    def seen_from(self, relation: int) -> tuple[Place, ComparisonOperator, int]:
        """Return the probing column, how it compares, and the column of ``relation``."""
        if self.right.relation == relation:
            return self.left, self.operator, self.right.column
        return self.right, MIRRORED[self.operator], self.left.column


MIRRORED = {
    ComparisonOperator.LESS: ComparisonOperator.GREATER,
    ComparisonOperator.LESS_OR_EQUAL: ComparisonOperator.GREATER_OR_EQUAL,
    ComparisonOperator.GREATER: ComparisonOperator.LESS,
    ComparisonOperator.GREATER_OR_EQUAL: ComparisonOperator.LESS_OR_EQUAL,
}


class JoinGraph:
    """What follows from the predicates of a query for joining its relations.

    Columns that predicates set equal fall into classes: where a.x = b.x and b.x = c.x, a may
    probe c right away, so that spanning trees which nobody wrote down are routes like any
    other; where a.x = b.x and b.x = b.y, it may look b up by y. An equality that holds because
    of a class has been checked once both its relations are spanned; all other predicates are
    checked by a module of their own.
    """

    def __init__(self, query: JoinQuery) -> None:
        """NotExecutableError where some relation can be neither scanned nor looked up by others."""
        self.query = query
        equalities = [_equality(query, predicate) for predicate in query.predicates]
        self.classes = _classes([pair for pair in equalities if pair is not None])
        self._class_of = {place: c for c, places in enumerate(self.classes) for place in places}
        # Two columns of one relation in a class: equal in every result, so they can be
        # compared at once. The written predicates may say so only by way of another relation.
        implied = tuple(_implied(query, places) for places in self.classes)
        written = [
            predicate
            for predicate, pair in zip(query.predicates, equalities, strict=True)
            if pair is None or pair[0] not in self._class_of
        ]
        # A predicate written once more over columns that are equal to those of another, as
        # Spark's optimizer infers them, asks nothing new: its function would be called twice.
        said: dict[Expression, Expression] = {}
        for predicate in (*written, *(part for parts in implied for part in parts)):
            said.setdefault(self._in_first_columns(predicate), predicate)
        self.predicates: tuple[Expression, ...] = tuple(dict.fromkeys(said.values()))
        """The predicates that a module checks, implied ones last."""
        texts = dict(zip(query.predicates, query.texts, strict=False))
        self.texts = tuple(texts.get(part, "") for part in self.predicates)
        """What users call them; an empty text where that is not known."""
        self.masks = tuple(query.relations_in(predicate) for predicate in self.predicates)
        """The relations that each of them needs; a constant is checked with relation 0."""
        self.ranges = tuple(
            edge
            for number, predicate in enumerate(self.predicates)
            if (edge := _range(query, number, predicate)) is not None
        )
        self._keys: dict[tuple[int, int], tuple[Key, ...]] = {}
        self._neighbours = self._find_neighbours()
        self.suppliers = self._find_suppliers()
        """Relations that are only looked up, each with the relations, as a mask, that supply it.

        A supplier is scanned and leads nowhere else: each of its rows goes there first, and is
        looked up. So all rows of the one that are in a result come in by any of its suppliers,
        as if by a scan of them, which has ended once the scan of the supplier has.
        """
        self._require_executable()

    def keys(self, spanned: int, relation: int) -> tuple[Key, ...]:
        """Return the join key by which tuples that span ``spanned`` find rows of a relation."""
        known = self._keys.get((spanned, relation))
        if known is None:
            keys = []
            for places in self.classes:
                probing = [place for place in places if spanned >> place.relation & 1]
                if probing:
                    keys += [
                        Key(probing[0], place.column)
                        for place in places
                        if place.relation == relation
                    ]
            known = self._keys[spanned, relation] = tuple(keys)
        return known

    def best_ranges(self, spanned: int, relation: int) -> tuple[RangeEdge, ...]:
        """Return the range predicates that one ordered index of a relation can check.

        They all bound the same column of it: the one with the most bounds.
        """
        by_column: dict[int, list[RangeEdge]] = {}
        for edge in self.ranges:
            for stored, probing in ((edge.left, edge.right), (edge.right, edge.left)):
                if stored.relation == relation and spanned >> probing.relation & 1:
                    by_column.setdefault(stored.column, []).append(edge)
        best: list[RangeEdge] = []
        for edges in by_column.values():
            best = edges if len(edges) > len(best) else best
        return tuple(best)

    def binds(self, spanned: int, relation: int, lookup: Lookup) -> bool:
        """Tell whether tuples that span ``spanned`` bring all values that a lookup needs."""
        return {key.stored for key in self.keys(spanned, relation)}.issuperset(lookup.bind)

    def reachable(self, spanned: int) -> int:
        """Return the further relations that tuples find an access method of, as a mask.

        That is a scan, a lookup that they bind, or the supplier of a relation. A tuple must
        not probe the SteM of any other: it would come back as a prior prober, and nothing
        could complete its probe.
        """
        mask = 0
        for relation, description in enumerate(self.query.relations):
            if not spanned >> relation & 1 and (
                description.scan
                or relation in self.suppliers
                or any(self.binds(spanned, relation, lookup) for lookup in description.lookups)
            ):
                mask |= 1 << relation
        return mask

    def next_relations(self, spanned: int) -> int:
        """Return the relations that tuples may be joined with next, as a mask.

        Of those that are reachable the ones that an equality or a range leads to; where
        there is none, those that another predicate then applies to; where there is none
        either, all that are left: a cross product has no other way.
        """
        left = self.reachable(spanned)
        indexed = 0
        for relation, neighbours in enumerate(self._neighbours):
            if spanned >> relation & 1:
                indexed |= neighbours
        if indexed & left:
            return indexed & left
        compared = 0
        for mask in self.masks:
            missing = mask & ~spanned
            if mask & spanned and missing.bit_count() == 1:
                compared |= missing
        if compared & left:
            return compared & left
        # A predicate over three relations needs two cross products, one of them now.
        for mask in self.masks:
            if mask & spanned:
                compared |= mask & ~spanned
        return (compared & left) or left

    def _require_executable(self) -> None:
        """Check that each relation can be reached from those that are scanned.

        Then any tuple can go on: of the relations in the order in which they are reached
        here, the first that it does not span is one that it finds an access method of.
        """
        relations = self.query.relations
        spanned = sum(1 << r for r, description in enumerate(relations) if description.scan)
        while further := self.reachable(spanned) if spanned else 0:
            spanned |= further
        lost = [r for r in range(len(relations)) if not spanned >> r & 1]
        if lost:
            raise NotExecutableError(
                f"{', '.join(relations[r].name for r in lost)}: no scan, and no other relation "
                f"that can be reached gives values for all columns of a lookup; add an equality "
                f"with one, or a scan",
                lost,
            )

    def _in_first_columns(self, predicate: Expression) -> Expression:
        """Return a predicate with each column replaced by the first that is the same value.

        Equal numbers of floating point need not be: a function may tell -0.0 from 0.0. Columns
        of one relation stay apart, since what is equal there is a predicate of its own. A
        predicate that calls no function stays as it is: it is cheap, and on every relation
        that it is written for it drops rows early.
        """
        if not calls_in(predicate):
            return predicate

        def first(column: Argument) -> Argument:
            place = Place(*self.query.place_of(column.index))
            number = self._class_of.get(place)
            if number is None or not is_one_value(column.type):
                return column
            leader = self.classes[number][0]
            return column if leader.relation == place.relation else self.query.column(*leader)

        return with_arguments(predicate, first)

    def _find_suppliers(self) -> dict[int, int]:
        suppliers: dict[int, int] = {}
        for relation, neighbours in enumerate(self._neighbours):
            if neighbours.bit_count() != 1 or not self.query.relations[relation].scan:
                continue
            other = neighbours.bit_length() - 1
            supplied = self.query.relations[other]
            if not supplied.scan and any(
                self.binds(1 << relation, other, lookup) for lookup in supplied.lookups
            ):
                suppliers[other] = suppliers.get(other, 0) | 1 << relation
        return suppliers

    def _find_neighbours(self) -> list[int]:
        neighbours = [0] * len(self.query.relations)
        for places in self.classes:
            members = {place.relation for place in places}
            for relation in members:
                neighbours[relation] |= sum(1 << other for other in members - {relation})
        for edge in self.ranges:
            neighbours[edge.left.relation] |= 1 << edge.right.relation
            neighbours[edge.right.relation] |= 1 << edge.left.relation
        return neighbours


def _columns(
    query: JoinQuery, predicate: Expression, fits: Callable[[pa.DataType], bool]
) -> tuple[Place, Place] | None:
    """Return the two columns that a comparison compares, if they are of a type that fits."""
    if not isinstance(predicate, Comparison):
        return None
    left, right = predicate.left, predicate.right
    if not isinstance(left, Argument) or not isinstance(right, Argument):
        return None
    first, second = Place(*query.place_of(left.index)), Place(*query.place_of(right.index))
    if first == second or not fits(left.type):
        return None
    return (first, second) if same_but_for_labels(left.type, right.type) else None


def _equality(query: JoinQuery, predicate: Expression) -> tuple[Place, Place] | None:
    if isinstance(predicate, Comparison) and predicate.operator is ComparisonOperator.EQUAL:
        return _columns(query, predicate, is_joinable)
    return None


def _range(query: JoinQuery, number: int, predicate: Expression) -> RangeEdge | None:
    if not isinstance(predicate, Comparison) or predicate.operator not in MIRRORED:
        return None
    places = _columns(query, predicate, is_ordered)
    if places is None or places[0].relation == places[1].relation:
        return None
    return RangeEdge(number, places[0], predicate.operator, places[1])


def _classes(equalities: list[tuple[Place, Place]]) -> tuple[tuple[Place, ...], ...]:
    """Return the columns of several relations that are equal to each other, in a fixed order."""
    leader: dict[Place, Place] = {}

    def find(place: Place) -> Place:
        while leader.setdefault(place, place) != place:
            place = leader[place]
        return place

    for left, right in equalities:
        first, second = find(left), find(right)
        leader[max(first, second)] = min(first, second)
    classes: dict[Place, list[Place]] = {}
    for place in sorted(leader):
        classes.setdefault(find(place), []).append(place)
    return tuple(
        tuple(places)
        for places in classes.values()
        if len({place.relation for place in places}) > 1
    )


def _implied(query: JoinQuery, places: tuple[Place, ...]) -> tuple[Expression, ...]:
    """Return the comparisons of columns of one relation that a class implies."""
    first: dict[int, Place] = {}
    implied = []
    for place in places:
        before = first.setdefault(place.relation, place)
        if before != place:
            implied.append(
                Comparison(ComparisonOperator.EQUAL, query.column(*before), query.column(*place))
            )
    return tuple(implied)
