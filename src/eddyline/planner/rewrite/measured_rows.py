"""Large inputs that are read only when the rows that they are joined with have been measured.

Nobody knows beforehand how many rows functions and reductions leave. Where a large input waits for
these in the next join, Spark would shuffle both, as its estimates are of what they began with, and
find out too late that the one side could have been broadcast: both shuffles begin together.

So the rows that are left are shuffled first, by the keys of the join, as the join would do it
anyway. The large input is semijoined with a row of what comes out: it cannot begin before. When
that stage is over, adaptive execution plans the rest anew, by the rows and bytes that it measured:

* few are broadcast, and the large input streams past without a shuffle;
* many are joined as they would have been, already shuffled;
* where there are none, nothing of the large input is read.

Both uses of the shuffled rows are one stage (``ReusedExchange``), so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark import SparkContext

from eddyline import catalyst
from eddyline.blocks.filter_block import FilterBlock
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.host.per_context import PerContext
from eddyline.planner.read.chains import Tree

_heard: Final = PerContext(catalyst.MeasuredStages)


def measured_first(
    context: SparkContext, stage: str, rows: Plan, large: Plan, conditions: Sequence[Tree]
) -> tuple[Plan, Plan] | None:
    """Return the two sides of an inner join, of which the second waits for the first.

    The ``stage`` is what :func:`measured_for` knows it by.

    None where no equality among the ``conditions`` relates them, or rows have a column of a type
    that has no hash.
    """
    keys = keys_of(rows, large, conditions)
    columns = catalyst.outputs(rows)
    if not keys or any('"map"' in catalyst.data_type(column) for column in columns):
        return None
    shuffled = catalyst.shuffled_by(keys, rows)
    _heard.of(context).name(shuffled, stage)
    measured = catalyst.all_columns_of(shuffled, columns)
    return measured, catalyst.if_any(large, catalyst.a_row_of_each_partition(measured))


def stage_name(block: FilterBlock, place: int) -> str:
    """Return the name of the stage for which an input of ``measured_for`` waits."""
    return f"{block.identity}/{place}"


def measured_for(
    context: SparkContext, block: FilterBlock, action: int
) -> tuple[tuple[str, catalyst.MeasuredStage], ...]:
    """Return what inputs have waited for in an action that is over, with their names."""
    if not block.measured_for or action < 0:
        return ()
    stages = {stage.name: stage for stage in _heard.of(context).of(action)}
    named = (
        (name, stages.get(stage_name(block, place)))
        for place, name in enumerate(block.measured_for)
    )
    return tuple((name, stage) for name, stage in named if stage is not None)


def keys_of(rows: Plan, large: Plan, conditions: Sequence[Tree]) -> list[CatalystExpression]:
    """Return what ``rows`` have for the equalities by which they are joined with another plan."""
    own, others = (frozenset(catalyst.output_numbers(plan)) for plan in (rows, large))
    keys = []
    for conjunct in conditions:
        if conjunct.name != "EqualTo":
            continue
        for key, other in (conjunct.children, conjunct.children[::-1]):
            used, met = ({number for number, _ in side.attributes()} for side in (key, other))
            if used and met and used <= own and met <= others:
                keys.append(key.handle)
                break
    return keys
