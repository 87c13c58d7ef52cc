"""What sizes decide: whether a claimed region pays, and which input stays in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type, width
from eddyline.blocks.join_block import JoinBlock
from eddyline.catalyst import Plan
from eddyline.expressions import calls_in
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_inputs import Input, inputs_of

WORTH_MOVING: Final = 0.25
"""Part of the bytes of a shuffle that functions must be asked about for it to pay.

What an eddy can save grows with the rows that functions are asked about, what it costs with all
rows that it moves. With predicates of 3 to 5 µs over 9 to 14 % of the bytes three adversarial
queries took 1.1, 1.25 and 1.5 times as long as in Spark; with 25 % and more, and 20 µs, none did.
"""


def pays(spark: SparkSession, claim: JoinClaim, plans: Sequence[Plan]) -> bool:
    """Tell whether a claim is worth what it moves, as far as sizes tell.

    It is if nothing is shuffled, if a function is asked about rows of several inputs (there
    may be any number of them), or if the inputs that functions are asked about are at least
    :data:`WORTH_MOVING` of all bytes.
    """
    inputs, _ = inputs_of(claim, plans)
    catalyst.look_at(source.plan for source in inputs)
    sizes = [catalyst.size_in_bytes(source.plan) for source in inputs]
    asked = claim.inputs_asked_about()
    if possible_drivers(spark, sizes, range(len(sizes))) or any(len(over) > 1 for over in asked):
        return True
    moved = [_moved(source, size) for source, size in zip(inputs, sizes, strict=True)]
    return sum(moved[r] for r in frozenset().union(*asked)) >= WORTH_MOVING * sum(moved)


def _moved(each: Input, size: int) -> int:
    """Return the bytes of an input's rows once they are read, as far as that is known.

    A Parquet file may hold an integer in two bits; a row that moves holds it in eight bytes.
    """
    rows = catalyst.parquet_rows(each.plan)
    if rows is None:
        return size
    columns = (arrow_type(catalyst.data_type(handle), "UTC") for handle in each.handles)
    return rows * sum(map(width, columns))


def driving_input(spark: SparkSession, block: JoinBlock) -> int | None:
    """Return the input that is not broadcast where all others are; None where several are not.

    Where there is a choice, the one with the most predicates that call functions, then the
    largest. A row that stays in place is asked about once in the whole job, wherever that
    is best; one that is broadcast is asked about before it travels, since every worker
    process would ask again.
    """
    possible = possible_drivers(spark, block.sizes, block.scanned)
    graph = block.graph
    asked = Counter(
        mask.bit_length() - 1
        for predicate, mask in zip(graph.predicates, graph.masks, strict=True)
        if calls_in(predicate) and not mask & (mask - 1)
    )
    return max(possible, key=lambda r: (asked[r], block.sizes[r]), default=None)


def possible_drivers(
    spark: SparkSession, sizes: Sequence[int], scanned: Sequence[int]
) -> list[int]:
    """Return the inputs that may stay in place while all others are broadcast."""
    most = catalyst.bytes_of(str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold")))
    return [r for r in scanned if len(sizes) > 1 and sum(sizes) - sizes[r] <= most]
