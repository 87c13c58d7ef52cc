"""What standing queries ask, as frozen data: selections on streams, and how streams are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import pyarrow as pa

from eddyline.engine.join_graph import Key, Place
from eddyline.expressions import Expression
from eddyline.standing.engine.join_conditions import JoinCondition
from eddyline.standing.engine.selections import Selection

NEVER: Final = 1 << 62
"""A time difference that no two events have, in microseconds."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: its name and the types of its columns.

    ``time`` is the column that says when an event happened, None where there is none. A stream
    that a query joins with itself is there once for each time that it is named. A ``static`` one
    is a table: all its rows are there before any query's results.
    """

    name: str
    types: tuple[pa.DataType, ...]
    time: int | None = None
    static: bool = False


Edge: TypeAlias = frozenset[Place]
"""Two columns of different streams that must be equal."""


def edge(one: tuple[int, int], other: tuple[int, int]) -> Edge:
    """Return the edge between two places, each a stream's number and a column's."""
    return frozenset({Place(*one), Place(*other)})


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A window: ``late`` happens from ``least`` to ``greatest`` microseconds after ``early``."""

    early: int
    late: int
    least: int = -NEVER
    greatest: int = NEVER


@dataclass(frozen=True)
class JoinShape:
    """How streams are joined: what queries have in common that differ in what they select.

    ``streams`` is a mask. ValueError where an edge leaves them, connects a stream with itself,
    or not all of them are connected; or where columns of one stream would have to be equal,
    which is a selection's to say.
    """

    streams: int
    edges: frozenset[Edge] = frozenset()

    def __post_init__(self) -> None:
        for join in self.edges:
            relations = {place.relation for place in join}
            if len(relations) != 2:  # noqa: PLR2004 - ends of an edge
                raise ValueError(f"an edge is between two streams, not {sorted(join)}")
            if any(not self.streams >> relation & 1 for relation in relations):
                raise ValueError(f"{sorted(join)} leaves the streams {self.streams:#b}")
        for together in self.classes:
            relations = {place.relation for place in together}
            if len(relations) < len(together):
                raise ValueError(f"{sorted(together)} has two columns of one stream")
        if not self.connects(self.streams):
            raise ValueError(f"streams {self.streams:#b} are not connected")

    @cached_property
    def classes(self) -> tuple[frozenset[Place], ...]:
        """Columns that are equal in every result, together."""
        classes: list[frozenset[Place]] = []
        for join in sorted(self.edges, key=sorted):
            met = [places for places in classes if places & join]
            classes = [places for places in classes if not places & join]
            classes.append(join.union(*met))
        return tuple(classes)

    def keys(self, spanned: int, stream: int) -> tuple[Key, ...]:
        """Return how tuples that span some streams find those of another, by stored column."""
        keys = []
        for together in self.classes:
            stored = [place.column for place in together if place.relation == stream]
            probing = [place for place in together if spanned >> place.relation & 1]
            if stored and probing:
                keys.append(Key(min(probing), stored[0]))
        return tuple(sorted(keys, key=lambda key: key.stored))

    def connects(self, streams: int) -> bool:
        """Tell whether these streams alone are connected."""
        reached = streams & -streams
        while more := self.next_streams(reached) & streams:
            reached |= more
        return reached == streams

    def next_streams(self, spanned: int) -> int:
        """Return the streams that tuples can be joined with next, as a mask."""
        mask = 0
        for together in self.classes:
            streams = sum(1 << place.relation for place in together)
            if streams & spanned:
                mask |= streams & ~spanned
        return mask


@dataclass(frozen=True, slots=True)
class Absence:
    """What must not be there: rows of a ``stream`` that meet all that a query asks of them.

    That is its selection on this stream, its edges and windows to it, its conditions about it, and
    further ``conditions``, which need not be about it. ``waits`` says when it is known: for a row
    of the stream ``anchor`` when no row comes any more that happened so many microseconds after it.
    """

    stream: int
    anchor: int
    waits: int
    conditions: Sequence[Expression | JoinCondition] = field(default=())


@dataclass(frozen=True, slots=True)
class Presence(Absence):
    """What must be there: a row of a ``stream`` that meets all that a query asks of it.

    Results are put out once, however many such rows there are, when all of them are known.
    """


@dataclass(frozen=True)
class SharedQuery:
    """A standing query: a selection for each stream that it reads, edges, windows and conditions.

    A selection is a predicate over the columns of its stream, None for all tuples, or one that was
    split into boxes before. The streams
    that have an entry are those that the query reads.

    ``conditions`` are predicates over columns of several streams, whose arguments are numbered as
    :func:`~eddyline.standing.engine.join_conditions.column_of` says, or ones that were split
    before.

    With an ``absence`` its results have no component of that stream: they are what its other
    streams join to, where no row of it fits, or some, if it is a :class:`Presence`.
    """

    selections: Mapping[int, Selection]
    edges: frozenset[Edge] = frozenset()
    bounds: Sequence[TimeBound] = field(default=())
    conditions: Sequence[Expression | JoinCondition] = field(default=())
    absence: Absence | None = None

    @cached_property
    def shape(self) -> JoinShape:
        """How it joins its streams."""
        return JoinShape(sum(1 << stream for stream in self.selections), self.edges)

    @cached_property
    def present(self) -> JoinShape:
        """How it joins the streams that its results are made of.

        ValueError where these are joined otherwise than without the absent one.
        """
        if self.absence is None:
            return self.shape
        absent = self.absence.stream
        edges = [join for join in self.edges if all(place.relation != absent for place in join)]
        present = JoinShape(self.shape.streams & ~(1 << absent), frozenset(edges))
        # Else probes for the absent one would have to compare columns that need not be equal.
        left = [{p for p in places if p.relation != absent} for places in self.shape.classes]
        if {frozenset(places) for places in left if len(places) > 1} != set(present.classes):
            raise ValueError(f"stream {absent} joins what is not joined without it")
        return present
