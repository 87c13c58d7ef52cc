"""Puts what reduces an input into its plan: semijoins and Bloom filters.

They stand in the plan below the functions that are asked about it. In the query above Spark would
push a Python predicate below a semijoin again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_edges import join_edges
from eddyline.planner.claim.native_choice import describe, names_of
from eddyline.planner.claim.reduction import (
    BLOOM_BITS,
    BLOOM_ITEMS,
    Means,
    Reducer,
    Reductions,
    Source,
    edge_columns,
    sources_of,
)
from eddyline.planner.read.regions import Region


class Reducing:
    """Makes reduced plans of the inputs of one region; equal parts are the same plan."""

    def __init__(self, spark: SparkSession, sources: Sequence[Source]) -> None:
        """``sources`` are the region's inputs, by number."""
        self._spark = spark
        self._sources = sources
        self.made: dict[int, Plan] = {}  # the inputs that reduce and are joined above as they are

    def reduced(self, plan: Plan, root: int, reducers: Sequence[Reducer]) -> Plan:
        """Return a plan of the rows of the input ``root`` without those that ``reducers`` drop."""
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


WORTH_REDUCING: Final = 100_000
"""Rows from which on an input is reduced: on their way to Python they take 0.1 s.

To read the keys of a small table once more and to broadcast them takes as long.
"""


def reduced_inputs(
    spark: SparkSession, region: Region, claim: JoinClaim, inputs: Sequence[Plan]
) -> tuple[list[Plan], list[str]]:
    """Return the inputs of a claimed region, reduced where that pays, and in words by what."""
    sources = sources_of(claim, inputs)
    edges = join_edges(region)
    names = names_of(sources)
    reductions = Reductions(spark, edges, sources, joined_above=False)
    plans = list(inputs)
    notes: list[str] = []
    for root, source in enumerate(sources):
        if root in claim.looked_up or (source.known_rows or 0) < WORTH_REDUCING:
            continue
        reduction = reductions.of(root)
        if reduction.reducers:
            reducing = Reducing(spark, sources)
            plans[root] = reducing.reduced(inputs[root], root, reduction.reducers)
            notes += describe(reduction, names)
    return plans, notes
