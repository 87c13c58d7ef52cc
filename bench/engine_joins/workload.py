"""Queries for the engine and, as SQL, for DuckDB: two tables, a star, a chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.policies.catalogue import make_policy
from eddyline.expressions import Comparison, ComparisonOperator, Expression, Literal
from eddyline.wall_clock import WallClock

BATCH = 1 << 18
"""Rows that an input gives at a time, unless told otherwise.

The tables are in memory, whole. Smaller batches make more visits, and a few thousand tuples that
are left of one after its first probe pay for visits of their own.
"""

Column = tuple[str, str]
"""A table and a column of it."""


@dataclass(frozen=True)
class Workload:
    """A join: tables, equalities, ``column < bound`` filters, and columns wanted."""

    name: str
    tables: Mapping[str, pa.Table]
    equal: tuple[tuple[Column, Column], ...]
    below: tuple[tuple[Column, int], ...]
    wanted: tuple[Column, ...]
    orders: Mapping[str, tuple[str, ...]]  # written orders of FROM, by name
    batch: int = BATCH  # rows that an input gives at a time

    def sql(self, order: Sequence[str]) -> str:
        """Return the query with its FROM clause in an order."""
        columns = ", ".join(f"{t}.{c} AS o{n}" for n, (t, c) in enumerate(self.wanted))
        conditions = [f"{a}.{b} = {c}.{d}" for (a, b), (c, d) in self.equal]
        conditions += [f"{t}.{c} < {bound}" for (t, c), bound in self.below]
        return f"SELECT {columns} FROM {', '.join(order)} WHERE {' AND '.join(conditions)}"  # noqa: S608 - made here

    def query(self, order: Sequence[str]) -> JoinQuery:
        """Return the same for the engine."""
        relations = tuple(
            JoinRelation(name, tuple(self.tables[name].schema.types)) for name in order
        )
        bare = JoinQuery(relations)

        def column(place: Column) -> Expression:
            table, name = place
            return bare.column(order.index(table), self.tables[table].schema.names.index(name))

        equal = [Comparison(ComparisonOperator.EQUAL, column(a), column(b)) for a, b in self.equal]
        below = [
            Comparison(ComparisonOperator.LESS, column(c), Literal(bound, pa.int64()))
            for c, bound in self.below
        ]
        return JoinQuery(relations, (*equal, *below), tuple(map(column, self.wanted)))

    def rows(self, order: Sequence[str], policy: str = "adaptive") -> int:
        """Join, and return the number of rows; all outputs are held until then."""
        eddy = JoinEddy(
            self.query(order),
            (),
            lambda: make_policy(policy),
            WallClock(),
            np.random.default_rng(0),
        )
        inputs = [self._input(name) for name in order]
        outputs = [joined.outputs for joined in eddy.run(inputs)]
        return sum(len(columns[0]) for columns in outputs)

    def _input(self, name: str) -> HeldScan:
        batches = self.tables[name].to_batches(self.batch)
        return HeldScan([Arrival(tuple(batch.columns), batch.num_rows) for batch in batches])


def two_tables(kind: str, rows: int) -> Workload:
    """Return a join of two tables of ``rows`` rows with unique keys, which all match."""
    generator = np.random.default_rng(1)
    left, right = generator.permutation(rows), generator.permutation(rows)
    names: tuple[str, ...] = ("k",)

    def keys(numbers: np.ndarray) -> list[pa.Array]:
        if kind == "strings":
            return [pa.array([f"key-{number}" for number in numbers.tolist()])]
        if kind == "two columns":
            return [pa.array(numbers // 1000), pa.array(numbers % 1000)]
        return [pa.array(numbers * 7)]

    if kind == "two columns":
        names = ("k", "j")
    values = pa.array(generator.integers(0, 1 << 40, rows))
    tables = {
        "l": pa.table([*keys(left), values], names=[*names, "v"]),
        "r": pa.table([*keys(right), values], names=[*names, "w"]),
    }
    return Workload(
        f"{rows // 1_000_000}M x {rows // 1_000_000}M, {kind}",
        tables,
        tuple((("l", name), ("r", name)) for name in names),
        (),
        (("l", "v"), ("r", "w")),
        {"as written": ("l", "r")},
    )


def star(rows: int) -> Workload:
    """Return one large table and four small ones, each with a filter of its own."""
    generator = np.random.default_rng(2)
    sizes = (1_000, 20_000, 100_000, 200_000)
    passing = (500, 100, 900, 300)  # of a thousand
    fact = {f"k{n}": generator.integers(0, size, rows) for n, size in enumerate(sizes)}
    tables = {"fact": pa.table({**fact, "v": generator.integers(0, 1000, rows)})}
    for n, size in enumerate(sizes):
        tables[f"d{n}"] = pa.table(
            {"k": generator.permutation(size), "a": generator.integers(0, 1000, size)}
        )
    # Without join ordering DuckDB builds the first table into a cross product with the
    # second, and so on: with no fact table between two small ones none would end.
    return Workload(
        "star of 1 large and 4 small",
        tables,
        tuple((("fact", f"k{n}"), (f"d{n}", "k")) for n in range(4)),
        tuple(((f"d{n}", "a"), bound) for n, bound in enumerate(passing)),
        (("fact", "v"), ("d1", "a"), ("d3", "a")),
        {
            "good": ("fact", "d1", "d3", "d0", "d2"),
            "bad": ("d3", "fact", "d2", "d0", "d1"),
            **_random(tables, 3),
        },
    )


def chain(rows: int) -> Workload:
    """Return a chain of four tables with filters at both ends."""
    generator = np.random.default_rng(3)

    def numbers(below: int, count: int) -> np.ndarray:
        return generator.integers(0, below, count)

    middle, outer = rows // 5, rows * 3 // 5
    tables = {
        "a": pa.table({"x": generator.permutation(50_000), "v": numbers(1000, 50_000)}),
        "b": pa.table({"x": numbers(50_000, middle), "y": generator.permutation(middle)}),
        "c": pa.table(
            {"y": numbers(middle, rows), "z": numbers(300_000, rows), "v": numbers(1000, rows)}
        ),
        "d": pa.table({"z": numbers(300_000, outer), "v": numbers(1000, outer)}),
    }  # fmt: skip
    return Workload(
        "chain of 4",
        tables,
        ((("a", "x"), ("b", "x")), (("b", "y"), ("c", "y")), (("c", "z"), ("d", "z"))),
        ((("a", "v"), 200), (("d", "v"), 300)),
        (("a", "v"), ("c", "v"), ("d", "v")),
        {"good": ("a", "b", "c", "d"), "bad": ("d", "c", "b", "a"), **_random(tables, 3)},
    )


def _random(tables: Mapping[str, pa.Table], count: int) -> dict[str, tuple[str, ...]]:
    generator = np.random.default_rng(4)
    names = list(tables)
    return {
        f"random {n + 1}": tuple(str(name) for name in generator.permutation(names))
        for n in range(count)
    }
