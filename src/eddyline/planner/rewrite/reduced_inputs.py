"""Reduces the inputs of a join block before their rows go to Python.

A row costs about a microsecond on its way to an eddy; a semijoin that drops it before costs
15 to 20 ns. Only inputs that carry a condition, or were reduced by one that does, reduce here:
they are read for their keys a second time, and whether others drop anything the eddy finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

from eddyline.catalyst import Plan
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_edges import join_edges
from eddyline.planner.claim.native_choice import describe, names_of
from eddyline.planner.claim.reduction import Reductions, sources_of
from eddyline.planner.read.regions import Region
from eddyline.planner.rewrite.reducing import Reducing

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
