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

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.chains import Tree


def measured_first(rows: Plan, large: Plan, conditions: Sequence[Tree]) -> tuple[Plan, Plan] | None:
    """Return the two sides of an inner join, of which the second waits for the first.

    None where no equality among the ``conditions`` relates them, or rows have a column of a type
    that has no hash.
    """
    keys = keys_of(rows, large, conditions)
    columns = catalyst.outputs(rows)
    if not keys or any('"map"' in catalyst.data_type(column) for column in columns):
        return None
    measured = catalyst.all_columns_of(catalyst.shuffled_by(keys, rows), columns)
    return measured, catalyst.if_any(large, catalyst.a_row_of_each_partition(measured))


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
