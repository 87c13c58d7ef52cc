"""Random select-project-join queries, each with its SQL for DuckDB and a way to run it."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench.access_methods.competing_scans import CompetingScans
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.quantum import MeasuredQuantum
from eddyline.expressions import Call, Comparison, ComparisonOperator, Expression, Literal, Not
from eddyline.expressions.vector import Vector
from eddyline.simulation.fixed_quantum import FixedQuantum
from tests.oracle.plain_values import plain
from tests.oracle.random_access import TableLookup, with_access_methods, with_some_later

SHAPES = ("chain", "star", "clique", "cycle", "tree", "disconnected")
LARGEST = {1: 40, 2: 60, 3: 25, 4: 12, 5: 8, 6: 6}
"""Rows of a relation at the most, by number of relations: what a cross product still bears."""

DAY = dt.date(2024, 2, 28)
NOON = dt.datetime(2024, 2, 28, 12)  # noqa: DTZ001 - Spark's timestamps without zone

DOMAINS: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int16(): [-3, 0, 1, 300],
    pa.int32(): [-(2**31), -1, 0, 1, 2, 3, 2**31 - 1],
    pa.int64(): [-(2**63), -1, 0, 1, 2, 3, 4, 5, 2**63 - 1],
    pa.float32(): [-math.inf, -1.5, -0.0, 0.0, 1.0, math.inf, math.nan],
    pa.float64(): [-math.inf, -1.5, -0.0, 0.0, 1e-300, 1.0, math.inf, math.nan],
    pa.string(): ["", "a", "b", "ab", "eight ch", "nine char", "nine chas", "ümlaut"],
    pa.binary(): [b"", b"\0", b"\0\0", b"a", b"12345678", b"123456789"],
    pa.bool_(): [False, True],
    pa.date32(): [DAY + dt.timedelta(days) for days in range(4)],
    pa.timestamp("us"): [NOON + dt.timedelta(microseconds=t) for t in range(4)],
    pa.decimal128(10, 2): [decimal.Decimal(c) / 100 for c in (-150, 0, 150, 175)],
    pa.decimal128(30, 5): [decimal.Decimal(c).scaleb(-5) for c in (-(10**24), 0, 10**24, 7)],
    pa.struct([("i", pa.int32()), ("s", pa.string())]): [
        {"i": 1, "s": "x"},
        {"i": 1, "s": None},
        {"i": None, "s": "x"},
        {"i": 2, "s": "a longer text"},
    ],
}
ORDERED = (pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(),
           pa.timestamp("us"), pa.decimal128(10, 2))  # fmt: skip


class Modulo:
    """A user function over whole numbers: whether a weighted sum is small modulo something."""

    vectorized = False

    def __init__(self, weights: Sequence[int], modulus: int, below: int) -> None:
        self.weights, self.modulus, self.below = tuple(weights), modulus, below
        self.seen: Counter[tuple[object, ...]] = Counter()

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - the protocol's argument
        results: list[bool | None] = []
        for values in zip(*(column.to_pylist() for column in columns), strict=True):
            self.seen[values] += 1
            if None in values:
                results.append(None)
            else:
                total = sum(w * v for w, v in zip(self.weights, values, strict=True))
                results.append(total % self.modulus < self.below)
        return Vector(pa.array(results, pa.bool_()))

    def sql(self, arguments: Sequence[str]) -> str:
        total = " + ".join(f"{w} * {a}" for w, a in zip(self.weights, arguments, strict=True))
        return f"(({total}) % {self.modulus} < {self.below})"


@dataclass
class RandomJoin:
    """A query with its data."""

    query: JoinQuery
    functions: list[Modulo]
    tables: list[pa.Table]
    sql: str
    shape: str
    seed: int
    stalls: float = 0.0
    description: str = field(default="", init=False)

    def expected(self, connection: duckdb.DuckDBPyConnection) -> Counter[tuple[Any, ...]]:
        """Return what DuckDB says."""
        for number, table in enumerate(self.tables):
            connection.register(f"t{number}", table)
        return bag(connection.sql(self.sql).fetchall())

    def found(self, policy: str | None = None) -> Counter[tuple[Any, ...]]:
        """Return what the eddy says, run in a random way, or with a given policy."""
        generator = np.random.default_rng([self.seed, 1])
        pick = generator.choice
        drawn = str(pick(list(PolicyName)))
        policy = policy or drawn
        quantum = int(pick([0, 1, 3, 1000]))
        goal = Goal(str(pick(list(Goal))))
        batch = int(pick([1, 2, 7, 100]))
        self.description = f"{policy=!s} {quantum=} {goal=!s} {batch=} {self.sql}"
        sources = {
            (r, number): TableLookup(self.tables[r], lookup.bind, generator)
            for r, relation in enumerate(self.query.relations)
            for number, lookup in enumerate(relation.lookups)
        }
        eddy = JoinEddy(
            self.query,
            self.functions,
            lambda: make_policy(policy),
            TickingClock(generator),
            generator,
            quantum=FixedQuantum(quantum) if quantum else MeasuredQuantum(),
            lookups=with_some_later(sources, generator),
        )
        eddy.reading.goal = goal
        inputs = [self._input(r, batch, generator) for r in range(len(self.tables))]
        rows: list[tuple[Any, ...]] = []
        for joined in eddy.run(inputs, wait=lambda: None):
            assert all(len(column) == joined.rows for column in joined.outputs)
            rows += zip(*(column.to_pylist() for column in joined.outputs), strict=True)
            if generator.random() < 0.1:
                eddy.reading.goal = Goal(str(pick(list(Goal))))
        self._check_calls()
        return bag(rows)

    @property
    def has_alternatives(self) -> bool:
        """Whether a prior prober may go to one of several access methods."""
        return any(r.lookups and r.scan + len(r.lookups) > 1 for r in self.query.relations)

    def _input(self, relation: int, batch: int, generator: np.random.Generator) -> ScanAccess:
        description, table = self.query.relations[relation], self.tables[relation]
        if not description.scan:
            return HeldScan(())
        scans: list[ScanAccess] = [
            StutteringInput(
                table, batch, generator, self.stalls, known=bool(generator.random() < 0.6)
            )
        ]
        for _ in range(description.mirrors):
            other = table.take(pa.array(generator.permutation(len(table))))
            scans.append(StutteringInput(other, batch, generator, self.stalls, known=True))
        return CompetingScans(scans) if len(scans) > 1 else scans[0]

    def _check_calls(self) -> None:
        """Check that a function of one relation was called once a row, however often joined."""
        for function in self.functions:
            if len(function.weights) == 1 and function.seen:
                value, times = function.seen.most_common(1)[0]
                assert times == 1, f"called {times} times for {value}: {self.description}"


class TickingClock:
    """A clock on which everything takes some time, at random."""

    resolution = 0.0

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._now = 0.0

    def now(self) -> float:
        self._now += float(self._generator.exponential(1e-5))
        return self._now


class StutteringInput:
    """An input that has nothing to give now and then."""

    def __init__(
        self,
        table: pa.Table,
        batch: int,
        generator: np.random.Generator,
        stalls: float,
        *,
        known: bool,
    ) -> None:
        self._table = table
        self._batch = batch
        self._generator = generator
        self._stalls = stalls
        self._known = known
        self._at = 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._table)

    @property
    def expected_rows(self) -> float | None:
        return len(self._table) - self._at if self._known else None

    def poll(self) -> Arrival | None:
        if self.ended or self._generator.random() < self._stalls:
            return None
        part = self._table.slice(self._at, self._batch)
        self._at += len(part)
        columns = tuple(
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
            for column in part.columns
        )
        return Arrival(columns, len(part))


def random_join(seed: int) -> RandomJoin:  # noqa: C901 - one decision after the other
    """Make the query of a seed."""
    generator = np.random.default_rng([seed, 0])
    pick = generator.choice
    count = int(pick([1, 2, 2, 3, 3, 3, 4, 4, 5, 6]))
    shape = str(pick(SHAPES))
    types = list(DOMAINS)
    # A few types, so that columns of one type are in several relations.
    chosen = [types[int(n)] for n in generator.integers(0, len(types), 2)] + [pa.int64()]
    same_as: list[int | None] = []
    for r in range(count):
        same = int(generator.integers(0, r)) if r and generator.random() < 0.15 else None
        same_as.append(same if same is None or same_as[same] is None else same_as[same])
    tables: list[pa.Table] = []
    columns: list[tuple[pa.DataType, ...]] = []
    for r in range(count):
        same = same_as[r]
        if same is not None:
            tables.append(tables[same])
            columns.append(columns[same])
            continue
        rows = int(
            pick([0, 1, 2, LARGEST[count] // 2, LARGEST[count]], p=[0.05, 0.1, 0.1, 0.35, 0.4])
        )
        own = (pa.int64(), *(chosen[int(n)] for n in generator.integers(0, 3, 3)))
        nulls = float(pick([0.0, 0.0, 0.15]))
        arrays = [pa.array(np.arange(rows) + 100 * r)]
        for a_type in own[1:]:
            domain = DOMAINS[a_type]
            domain = [domain[int(n)] for n in generator.integers(0, len(domain), 3)]
            values = [
                None if generator.random() < nulls else domain[int(n)]
                for n in generator.integers(0, len(domain), rows)
            ]
            arrays.append(pa.array(values, a_type))
        columns.append(own)
        tables.append(pa.table(arrays, names=[f"c{c}" for c in range(len(own))]))
    relations = tuple(
        JoinRelation(f"t{r}", columns[r], same_rows_as=same_as[r]) for r in range(count)
    )
    maker = _Maker(JoinQuery(relations), generator)
    for left, right in _edges(shape, count, generator):
        maker.equality(left, right)
        if generator.random() < 0.15:
            maker.equality(left, right)
    for _ in range(int(pick([0, 0, 1, 2]))):
        maker.anything()
    outputs: list[Expression] = [maker.query.column(r, 0) for r in range(count)]
    names = [f"r{r}.c0" for r in range(count)]
    for _ in range(int(pick([0, 1, 2]))):
        r, c = int(generator.integers(0, count)), int(generator.integers(1, 4))
        outputs.append(maker.query.column(r, c))
        names.append(f"r{r}.c{c}")
    if generator.random() < 0.3:
        call, text = maker.call([int(generator.integers(0, count))])
        outputs.append(call)
        names.append(text)
    order = generator.permutation(len(maker.predicates))
    query = JoinQuery(relations, tuple(maker.predicates[int(n)] for n in order), tuple(outputs))
    query = with_access_methods(query, np.random.default_rng([seed, 2]))
    sql = "SELECT " + ", ".join(names) + " FROM "  # noqa: S608 - made here
    sql += ", ".join(f"t{r} AS r{r}" for r in range(count))
    if maker.texts:
        sql += " WHERE " + " AND ".join(maker.texts)
    return RandomJoin(query, maker.functions, tables, sql, shape, seed, float(pick([0.0, 0.3])))


class _Maker:
    """Makes predicates, as expressions and as SQL."""

    def __init__(self, query: JoinQuery, generator: np.random.Generator) -> None:
        self.query = query
        self.generator = generator
        self.predicates: list[Expression] = []
        self.texts: list[str] = []
        self.functions: list[Modulo] = []

    def equality(self, left: int, right: int) -> None:
        self._comparison(left, right, ComparisonOperator.EQUAL, tuple(DOMAINS))

    def anything(self) -> None:
        count = len(self.query.relations)
        left, right = (int(n) for n in self.generator.integers(0, count, 2))
        kind = int(self.generator.integers(0, 6))
        if kind == 0:
            operator = ComparisonOperator(str(self.generator.choice(["<", "<=", ">", ">="])))
            self._comparison(left, right, operator, ORDERED)
        elif kind == 1:
            self._band(left, right)
        elif kind == 2:
            self._comparison(left, right, ComparisonOperator.EQUAL, ORDERED, negated=True)
        elif kind == 3:
            predicate, text = self.call([left])
            self._add(predicate, text)
        elif kind == 4:
            predicate, text = self.call(sorted({left, right, (left + 1) % count}))
            self._add(predicate, text)
        else:
            value = int(self.generator.integers(0, 100 * count))
            bound = Literal(value, pa.int64())
            column = self.query.column(left, 0)
            self._add(Comparison(ComparisonOperator.LESS, column, bound), f"r{left}.c0 < {value}")

    def call(self, relations: Sequence[int]) -> tuple[Call, str]:
        weights = [int(w) for w in self.generator.integers(1, 5, len(relations))]
        function = Modulo(weights, int(self.generator.integers(2, 5)), 1)
        self.functions.append(function)
        arguments = tuple(self.query.column(r, 0) for r in relations)
        call = Call(len(self.functions) - 1, arguments, pa.bool_())
        return call, function.sql([f"r{r}.c0" for r in relations])

    def _add(self, predicate: Expression, text: str) -> None:
        self.predicates.append(predicate)
        self.texts.append(text)

    def _common(
        self, left: int, right: int, types: Sequence[pa.DataType]
    ) -> tuple[int, int] | None:
        relations = self.query.relations
        pairs = [
            (a, b)
            for a, one in enumerate(relations[left].types)
            for b, other in enumerate(relations[right].types)
            if a and b and one == other and one in types
        ]
        return pairs[int(self.generator.integers(0, len(pairs)))] if pairs else None

    def _comparison(
        self,
        left: int,
        right: int,
        operator: ComparisonOperator,
        types: Sequence[pa.DataType],
        *,
        negated: bool = False,
    ) -> None:
        pair = self._common(left, right, types)
        if pair is None or (left == right and pair[0] == pair[1]):
            return
        predicate: Expression = Comparison(
            operator, self.query.column(left, pair[0]), self.query.column(right, pair[1])
        )
        if not _comparable(self.query.relations[left].types[pair[0]]) and left == right:
            return
        text = f"r{left}.c{pair[0]} {operator} r{right}.c{pair[1]}"
        self._add(Not(predicate) if negated else predicate, f"NOT ({text})" if negated else text)

    def _band(self, left: int, right: int) -> None:
        pair = self._common(left, right, ORDERED)
        if pair is None or left == right:
            return
        one, other = self.query.column(left, pair[0]), self.query.column(right, pair[1])
        other_two = [
            c for c, t in enumerate(self.query.relations[right].types) if t == other.type and c
        ]
        upper = self.query.column(right, other_two[-1])
        self._add(
            Comparison(ComparisonOperator.LESS_OR_EQUAL, other, one),
            f"r{right}.c{pair[1]} <= r{left}.c{pair[0]}",
        )
        self._add(
            Comparison(ComparisonOperator.LESS, one, upper),
            f"r{left}.c{pair[0]} < r{right}.c{other_two[-1]}",
        )


def _comparable(a_type: pa.DataType) -> bool:
    return not pa.types.is_struct(a_type)


def _edges(shape: str, count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    numbers = range(count)
    if shape == "chain":
        return [(r, r + 1) for r in numbers[:-1]]
    if shape == "star":
        return [(0, r) for r in numbers[1:]]
    if shape == "clique":
        return [(a, b) for a in numbers for b in numbers if a < b]
    if shape == "cycle":
        return [(r, (r + 1) % count) for r in numbers if count > 1]
    if shape == "tree":
        return [(int(generator.integers(0, r)), r) for r in numbers[1:]]
    return [(r, r + 1) for r in numbers[:-1] if generator.random() < 0.5]


def bag(rows: Sequence[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return rows as a multiset, floats and structs made comparable."""
    return Counter(tuple(map(plain, row)) for row in rows)


def check(seed: int, connection: duckdb.DuckDBPyConnection) -> RandomJoin:
    """Run the query of a seed both ways and compare; AssertionError where they differ."""
    join = random_join(seed)
    check_found(join, join.expected(connection))
    return join


def check_found(
    join: RandomJoin, expected: Counter[tuple[Any, ...]], policy: str | None = None
) -> None:
    """Run a query that is new and compare; AssertionError where other rows were expected."""
    found = join.found(policy)
    assert found == expected, (
        f"seed {join.seed}: {join.description}\n"
        f"missing {list((expected - found).items())[:3]}, "
        f"extra {list((found - expected).items())[:3]}"
    )
