"""Puts what reduces an input into its plan: semijoins and Bloom filters.

They stand in the plan below the functions that are asked about it. In the query above Spark would
push a Python predicate below a semijoin again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.claim.reduction import (
    BLOOM_BITS,
    BLOOM_ITEMS,
    Means,
    Reducer,
    Source,
    edge_columns,
)


class Reducing:
    """Makes reduced plans of the inputs of one region; equal parts are the same plan."""

    def __init__(self, spark: SparkSession, sources: Sequence[Source]) -> None:
        """``sources`` are the region's inputs, by number."""
        self._spark = spark
        self._sources = sources
        self.made: dict[int, Plan] = {}  # the inputs that reduce and are joined above as they are

    def reduced(self, plan: Plan, root: int, reducers: Sequence[Reducer]) -> Plan:
        """Return a plan of the rows of the input ``root`` without those that some drop."""
        for reducer in reducers:
            plan = self._reduced_by(plan, root, reducer)
        return plan

    def _reduced_by(self, plan: Plan, root: int, reducer: Reducer) -> Plan:
        number, edge = reducer.number, reducer.edge
        source = self._sources[number]
        right = self.reduced(source.plan, number, reducer.by)
        if reducer.means is Means.BLOOM:
            own, others = ([key.sides[n] for key in edge.keys] for n in (root, number))
            return catalyst.filtered(self._might_contain(own, others, right, source.rows), plan)
        condition = catalyst.conjunction(edge.conditions)
        if reducer.means is Means.JOINED:
            self.made[number] = right
            sides = edge.keys[0].sides
            all_columns = catalyst.wanting_all(sides[root], sides[number], source.columns)
            condition = catalyst.conjunction([condition, all_columns])
        else:
            right = catalyst.projected(edge_columns(edge, source.columns), right)
        return catalyst.semijoin(plan, right, condition)

    def _might_contain(
        self,
        own: Sequence[CatalystExpression],
        others: Sequence[CatalystExpression],
        plan: Plan,
        rows: int,
    ) -> CatalystExpression:
        """Return whether the keys of a row may be among those of another plan."""
        items = max(min(rows, BLOOM_ITEMS), 1)
        bloom = catalyst.bloom_filter_of(catalyst.hashed(others), plan, items, BLOOM_BITS * items)
        value = catalyst.scalar_subquery(self._spark, bloom)
        return catalyst.might_contain(value, catalyst.hashed(own))
