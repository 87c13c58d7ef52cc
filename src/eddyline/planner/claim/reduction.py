"""Which inputs of a region reduce which, by what means, and which are left out and why.

A row that has no partner in another input is in no joined row, whatever is asked of it; told so
natively it costs 15 to 20 ns, while asking a Python function about it costs a microsecond for
the way alone. So before functions are asked, their input is reduced by the others: by its
neighbours in the join graph, these by theirs before, and so on, from the leaves of a spanning
tree to its root (Yannakakis, 1981; predicate transfer: Yang, Zhao, Yu and Koutris, 2024).

Reducing is sound for inner joins whatever comes after, so a tree that leaves edges of a cycle out
does no harm. What an input reduces by is read a second time, though, or found a second time by
Spark's reuse of exchanges; so it must give the same rows again.

The rules, in this order, by which an input reduces its neighbour:

* it gives the same rows each time it is read;
* Spark would broadcast it as it is joined, and it carries a condition or has no more rows than
  what it reduces: then one broadcast serves both the reduction and the join above, and what
  remains to pay is a probe of 15 to 20 ns a row;
* its keys alone may be broadcast, and it carries a condition: they are read for themselves;
* it carries a condition, and is larger: by a Bloom filter of its keys.

An input that carries no condition drops nothing for certain: each key has its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_edges import Edge, JoinEdges, KeyEquality
from eddyline.planner.read.chains import Tree

BLOOM_ITEMS: Final = 4_000_000
"""Keys that a Bloom filter is made for at the most, as Spark's own runtime filters are."""

BLOOM_BITS: Final = 8
"""Bits for each of them: 2 % of other keys pass."""

LARGEST_FILTER: Final = 64
"""How many rows an input read for a Bloom filter only may have for each row that it reduces."""

HASHED: Final = frozenset({"byte", "short", "integer", "long", "date", "string", "timestamp"})
"""Types of keys whose equal values have equal hashes, by their names in Spark's JSON."""


class Means(StrEnum):
    """How an input reduces another; the value is what people read."""

    JOINED = "exactly"  # by a semijoin with what is joined above, broadcast once
    KEYS = "exactly, by its keys"  # by a semijoin with its keys, which are read for themselves
    BLOOM = "by a Bloom filter of its keys"


@dataclass(frozen=True)
class Reducer:
    """An input that reduces its neighbour along an edge, once ``by`` have reduced it."""

    number: int
    edge: Edge
    means: Means
    selective: bool
    by: tuple[Reducer, ...] = ()

    def all(self) -> Iterator[Reducer]:
        """Yield this one and those below it."""
        yield self
        for reducer in self.by:
            yield from reducer.all()


@dataclass(frozen=True)
class LeftOut:
    """An input that reduces nothing, and the rule that leaves it out."""

    number: int
    rule: Rule


class Rule(StrEnum):
    """The rules by which an input is left out; the value is what people read."""

    NOT_REPEATABLE = "it may give other rows the second time"
    NOTHING_SAID = "no condition says that it drops anything, and it is the larger one"
    TOO_LARGE = "it is too large for what it could save"
    NO_KEY = "no equality relates it"
    NOT_HASHED = "it is large, and its keys are of a type that is not hashed alike"


@dataclass(frozen=True)
class Reduction:
    """What reduces one input, the ``root``, and what does not.

    ``exact`` if the rows that are left are just those that are part of joined rows.
    """

    root: int
    reducers: tuple[Reducer, ...]
    left_out: tuple[LeftOut, ...]
    exact: bool

    def all(self) -> Iterator[Reducer]:
        """Yield all reducers, also those that reduce others."""
        for reducer in self.reducers:
            yield from reducer.all()

    @property
    def selective(self) -> bool:
        """Whether something says that rows are dropped."""
        return any(reducer.selective for reducer in self.reducers)


class Source:
    """An input with its own conditions, and what is known about it."""

    def __init__(self, plan: Plan, below: Sequence[CatalystExpression]) -> None:
        """``below`` are the conditions on the rows of a plan."""
        self._below = below
        self.plan = catalyst.filtered(catalyst.conjunction(below), plan) if below else plan
        self.columns = catalyst.outputs(plan)

    def over(self, plan: Plan) -> Source:
        """Return the same over another plan of the same columns."""
        return Source(plan, self._below)

    @property
    def name(self) -> str | None:
        """The name of the table that it reads; None where there is no such table."""
        return catalyst.table_name(self.plan)

    @cached_property
    def size(self) -> int:
        """Spark's estimate in bytes."""
        return catalyst.size_in_bytes(self.plan)

    @cached_property
    def known_rows(self) -> int | None:
        """How many rows the files have before any condition; None where that is not known."""
        return catalyst.parquet_rows(self.plan)

    @cached_property
    def rows(self) -> int:
        """How many rows it has, by its files or else by its size."""
        return self.known_rows or self.size // (8 * max(len(self.columns), 1))

    @cached_property
    def moved(self) -> int:
        """Bytes of its rows once they are read, at eight a column where rows are known."""
        return self.known_rows * 8 * len(self.columns) if self.known_rows else self.size

    @cached_property
    def repeatable(self) -> bool:
        """Whether it gives the same rows each time it is read."""
        return catalyst.unrepeatable(self.plan) is None

    @cached_property
    def cheap(self) -> bool:
        """Whether reading it a second time computes nothing but filters and projections."""
        return catalyst.is_scan(self.plan)

    @cached_property
    def selective(self) -> bool:
        """Whether a condition in it says that rows are dropped."""
        return catalyst.drops_rows(self.plan)


def sources_of(claim: JoinClaim, plans: Sequence[Plan]) -> list[Source]:
    """Return the inputs of a claim, each with its native conditions."""
    catalyst.read_outputs(plans)
    sources = [Source(plan, below) for plan, below in zip(plans, claim.below, strict=True)]
    catalyst.look_at(source.plan for source in sources)
    return sources


class Reductions:
    """Decides what reduces what among the inputs of a region."""

    def __init__(
        self,
        spark: SparkSession,
        edges: JoinEdges,
        sources: Sequence[Source],
        *,
        joined_above: bool,
    ) -> None:
        """``joined_above``: whether Spark joins the same inputs above what is reduced."""
        self._edges = edges
        self._sources = sources
        self._joined_above = joined_above
        self._found_again = str(spark.conf.get("spark.sql.exchange.reuse")) == "true"
        self._broadcast = catalyst.bytes_of(
            str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold"))
        )

    def of(self, root: int) -> Reduction:
        """Decide what reduces an input; each other input is looked at once."""
        left_out: dict[int, Rule] = {}
        reached = {root}
        reducers = self._reducers(root, reached, left_out)
        for number in range(len(self._sources)):
            if number not in reached:
                left_out[number] = Rule.NO_KEY
        used = {reducer.number for top in reducers for reducer in top.all()}
        exact = (
            self._edges.exhaustive
            and len(self._edges.edges) == len(self._sources) - 1
            and len(used) == len(self._sources) - 1
            and all(reducer.means is not Means.BLOOM for top in reducers for reducer in top.all())
        )
        out = tuple(LeftOut(number, rule) for number, rule in left_out.items())
        return Reduction(root, reducers, out, exact)

    def _reducers(
        self, root: int, reached: set[int], left_out: dict[int, Rule]
    ) -> tuple[Reducer, ...]:
        edges = [edge for edge in self._edges.of(root) if edge.other(root) not in reached]
        reached.update(edge.other(root) for edge in edges)
        reducers = []
        for edge in edges:
            number = edge.other(root)
            by = self._reducers(number, reached, left_out)
            reducer = self._reducer(root, edge, by)
            if isinstance(reducer, Rule):
                left_out[number] = reducer
                left_out.update({lower.number: reducer for below in by for lower in below.all()})
            else:
                reducers.append(reducer)
        # What drops rows for certain first, then the smaller ones: each probes what is left.
        sizes = {chosen.number: self._sources[chosen.number].rows for chosen in reducers}
        return tuple(
            sorted(reducers, key=lambda chosen: (not chosen.selective, sizes[chosen.number]))
        )

    def _reducer(  # noqa: PLR0911 - a rule after the other
        self, root: int, edge: Edge, by: tuple[Reducer, ...]
    ) -> Reducer | Rule:
        number = edge.other(root)
        source, reduced = self._sources[number], self._sources[root]
        if not source.repeatable:
            return Rule.NOT_REPEATABLE
        selective = source.selective or any(reducer.selective for reducer in by)
        if not selective and source.rows > reduced.rows:
            return Rule.NOTHING_SAID
        plain = not any(key.null_safe for key in edge.keys)
        once = self._found_again or source.cheap
        if self._joined_above and once and plain and source.size <= self._broadcast:
            return Reducer(number, edge, Means.JOINED, selective, by)
        if not selective:
            return Rule.NOTHING_SAID
        if not source.cheap or source.rows > LARGEST_FILTER * reduced.rows:
            return Rule.TOO_LARGE
        by = tuple(reducer for reducer in by if reducer.selective)
        if _keys_size(source, edge) <= self._broadcast:
            return Reducer(number, edge, Means.KEYS, selective, by)
        if not plain or not all(map(_is_hashed, edge.keys)):
            return Rule.NOT_HASHED
        return Reducer(number, edge, Means.BLOOM, selective, by)


def _keys_size(source: Source, edge: Edge) -> int:
    return catalyst.size_in_bytes(
        catalyst.projected(edge_columns(edge, source.columns), source.plan)
    )


def edge_columns(edge: Edge, columns: Sequence[CatalystExpression]) -> list[CatalystExpression]:
    """Return those of some columns that the conditions of an edge look at."""
    looked_at = {n for condition in edge.conditions for n, _ in Tree.of(condition).attributes()}
    return [column for column in columns if catalyst.identity_number(column) in looked_at]


def _is_hashed(key: KeyEquality) -> bool:
    types = {catalyst.data_type(side).strip('"') for side in key.sides.values()}
    return len(types) == 1 and types <= HASHED
