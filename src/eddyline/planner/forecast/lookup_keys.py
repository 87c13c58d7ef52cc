"""Which keys of lookup tables a query asks for: those of the other side of a join.

The plan is that of before it was rewritten, where a lookup table is a leaf below a join. Predicates
over the other side alone stand below the join there: Spark has put them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.lookup_table import LookupTable, PlannedLookup
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.forecast.paid_blocks import UnreadBlock
from eddyline.planner.forecast.surveys import (
    COUNTING_ERROR,
    KEY,
    CountedArguments,
    SampledArguments,
    SampleSlice,
    sampled_table,
)
from eddyline.planner.read.chains import EvaluationLink, FilterLink, Tree, read_link
from eddyline.planner.read.concurrent_marks import marks_in
from eddyline.planner.read.lookup_leaves import lookup_command, lookup_leaves
from eddyline.planner.rewrite.block_walk import TableOf
from eddyline.quirks.collected_tables import collected
from eddyline.reports.expected import roughly

_PASSED: Final = ("Project", "Filter")


@dataclass(frozen=True, eq=False)
class LookupUse:
    """A lookup table where a join gives values for one of its ways.

    ``keys`` are expressions over ``rows``, those that come to the join, and over ``base``, which
    has further ones: no Python function has dropped any of it.
    """

    table: LookupTable
    way: PlannedLookup
    keys: tuple[CatalystExpression, ...]
    rows: Plan
    base: Plan

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the bind columns."""
        return tuple(self.table.types[n] for n in self.way.bind)

    @property
    def text(self) -> str:
        """The table with its bind columns, for people."""
        return f"{self.table.name}({', '.join(self.table.columns[n] for n in self.way.bind)})"


def lookup_uses(plan: Plan, table_of: TableOf) -> Iterator[LookupUse | UnreadBlock]:
    """Yield the lookup tables of a plan, with where their keys come from."""
    if next(lookup_leaves(plan), None) is None:
        return
    found: set[int] = set()
    children = catalyst.children(plan)
    if catalyst.class_name(plan).endswith(".Join"):
        for side, child in enumerate(children):
            leaf = _leaf(child)
            table = None if leaf is None else table_of(leaf)
            if leaf is None or table is None or table.scan:
                continue
            found.add(side)
            yield _use(plan, leaf, table, children[1 - side])
    leaf = _leaf(plan)
    table = None if leaf is None else table_of(leaf)
    if table is not None:
        if not table.scan:
            yield UnreadBlock((table.name,), "its keys do not come from a join")
        return
    for side, child in enumerate(children):
        if side not in found:
            yield from lookup_uses(child, table_of)
    for part in catalyst.subqueries(plan):
        yield from lookup_uses(part, table_of)


def _leaf(plan: Plan) -> Plan | None:
    """Return the lookup table that a node reads, through projections and filters."""
    while catalyst.class_name(plan).rpartition(".")[2] in _PASSED:
        (plan,) = catalyst.children(plan)
    return plan if lookup_command(plan) is not None else None


def _use(join: Plan, leaf: Plan, table: LookupTable, rows: Plan) -> LookupUse | UnreadBlock:
    names = (table.name,)
    if next(lookup_leaves(rows), None) is not None or next(marks_in(rows), None) is not None:
        return UnreadBlock(names, "its keys depend on what is asked before")
    own = {Tree.of(column).identity: n for n, column in enumerate(catalyst.outputs(leaf))}
    there = {Tree.of(column).identity for column in catalyst.outputs(rows)}
    condition = catalyst.join_condition(join)
    bound: dict[int, CatalystExpression] = {}
    for conjunct in () if condition is None else Tree.of(condition).terms("And"):
        if conjunct.name != "EqualTo":
            continue
        for column, value in (conjunct.children, conjunct.children[::-1]):
            if column.name != "AttributeReference" or column.identity not in own:
                continue
            if there.issuperset(value.attributes()):
                bound.setdefault(own[column.identity], value.handle)
    way = next((way for way in table.methods if bound.keys() >= set(way.bind)), None)
    if way is None:
        return UnreadBlock(names, "its keys do not all come from one side of a join")
    base = without_python(rows)
    if base is None:
        return UnreadBlock(names, "a Python function makes what its keys depend on")
    keys = tuple(bound[column] for column in way.bind)
    known = {Tree.of(column).identity for column in catalyst.outputs(base)}
    if not all(known.issuperset(Tree.of(key).attributes()) for key in keys):
        return UnreadBlock(names, "a Python function makes its keys")
    return LookupUse(table, way, keys, rows, base)


def without_python(plan: Plan) -> Plan | None:
    """Return a plan in which no Python function drops a row; None where their values are used.

    It has the same columns but for what such functions return.
    """
    stripped = _without_python(plan)
    return None if stripped is None else stripped[0]


def _without_python(plan: Plan) -> tuple[Plan, frozenset[tuple[int, str]]] | None:
    """Return a plan likewise, and the attributes that it lacks."""
    if not catalyst.has_python_function(plan):
        return plan, frozenset()
    parts = [_without_python(child) for child in catalyst.children(plan)]
    children = [part[0] for part in parts if part is not None]
    if len(children) < len(parts):
        return None
    gone = frozenset(identity for part in parts if part is not None for identity in part[1])
    link, _ = read_link(plan)
    if isinstance(link, EvaluationLink):
        return children[0], gone | {result.identity for result in link.results}
    if isinstance(link, FilterLink):
        left = [term.handle for term in link.conjuncts if gone.isdisjoint(term.attributes())]
        kept = (
            children[0] if not left else catalyst.filtered(catalyst.conjunction(left), children[0])
        )
        return kept, gone
    if catalyst.reference_numbers(plan) & {number for number, _ in gone}:
        return None
    return catalyst.with_children(plan, children), gone


@dataclass
class LookupSurveys:
    """Spark's jobs for the keys of one lookup table; another ``salt`` makes another sample."""

    spark: SparkSession
    use: LookupUse
    salt: int
    time_zone: str

    def counted(self) -> CountedArguments:
        """Count the rows and the distinct keys that there may be."""
        distinct = F.approx_count_distinct(KEY, COUNTING_ERROR).alias("distinct")
        keys = self._keyed(self.use.base, SampleSlice())
        (row,) = keys.agg(F.count(F.lit(1)).alias("rows"), distinct).collect()
        return CountedArguments(int(row["rows"]), roughly(float(row["distinct"]), COUNTING_ERROR))

    def sampled(self, part: SampleSlice) -> tuple[int, SampledArguments]:
        """Return how many keys of a part there may be, and those of them that are asked for."""
        (row,) = self._keyed(self.use.base, part).agg(F.countDistinct(KEY).alias("keys")).collect()
        frame = self._keyed(self.use.rows, part)
        columns = [F.col(f"k{n}").alias(f"g{n}") for n in range(len(self.use.keys))]
        table = collected(
            frame.groupBy(KEY).agg(
                F.count(F.lit(1)).alias("rows"),
                F.count(F.lit(1)).alias("passing"),
                F.lit(0).alias("unknown"),
                F.first(F.struct(*columns)).alias("given"),
            )
        )
        return int(row["keys"]), sampled_table(table, self._kinds())

    def _kinds(self) -> list[pa.DataType]:
        return [arrow_type(kind, self.time_zone) for kind in self.use.types]

    def _keyed(self, plan: Plan, part: SampleSlice) -> DataFrame:
        """Return the keys of some rows, without NULLs, which are not looked up."""
        items = [catalyst.named(each, f"k{n}") for n, each in enumerate(self.use.keys)]
        names = [f"k{n}" for n in range(len(items))]
        frame: DataFrame = catalyst.dataframe_over(self.spark, catalyst.projected(items, plan))
        frame = frame.dropna(subset=names)
        key = F.xxhash64(*map(F.col, names), F.lit(self.salt))
        chosen: Column | None = part.holds(key)
        return (frame if chosen is None else frame.where(chosen)).withColumn(KEY, key)
