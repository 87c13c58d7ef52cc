"""What plain Spark would have called, beside what was called: counted, estimated, or a bound.

Plain Spark calls a function on every row that reaches its filter. Below the joins, and where there
are none, these rows are counted; where a filter over other functions stands below, it is estimated
how many rows pass that. It makes more calls where a value is passed on that plain Spark computes
again, or where rows were dropped before on which it calls functions. A function over several inputs
stands above the joins of these, where Spark calls it on every row that they make, before any other
such predicate has rejected that row. Nobody has counted these rows: they are estimated from those
that came out and from the share that each of these predicates has passed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import TaskRecord
from eddyline.reports.wording import compact, duration


@dataclass(frozen=True, slots=True)
class PlainSpark:
    """Calls made in all blocks, those that plain Spark makes for the same, and the difference.

    ``estimated`` where some of these were not counted, ``least`` where at least so many are made:
    where rows were dropped before they came to a block, on which plain Spark calls functions too,
    where nothing tells how many rows the joins have, where Spark, which joins by a key that a
    predicate is about, also asks it of the other side, and where no row has come to a block.
    ``seconds_less`` is at the mean cost of the calls made, summed over tasks, and never measured.
    """

    calls: int
    plain_calls: int
    seconds_less: float
    estimated: bool
    least: bool

    def __str__(self) -> str:
        """Return the comparison as a sentence.

        >>> str(PlainSpark(39_283, 210_000, 1.746, estimated=False, least=False))
        'Compared with plain Spark: 39,283 calls instead of 210k, about 1.75 s less'
        >>> str(PlainSpark(54, 18, 0.0, estimated=True, least=True))
        'Compared with plain Spark: 54 calls instead of at least about 18'
        """
        hedges = "at least " * self.least + "about " * self.estimated
        told = f"{compact(self.calls)} calls instead of {hedges}{compact(self.plain_calls)}"
        less = f", about {duration(self.seconds_less)} less" if self.seconds_less else ""
        return f"Compared with plain Spark: {told}{less}"


def compared(blocks: Collection[BlockReport]) -> PlainSpark | None:
    """Compare all blocks that ran with plain Spark; None where no function could be called."""
    ran = [(block, block.record) for block in blocks if block.record is not None]
    functions = [function for _, record in ran for function in record.functions]
    if not any(function.calls_possible for function in functions):
        return None
    unreached = len(ran) < len(blocks)  # plain Spark may call functions before it drops the rows
    return PlainSpark(
        sum(function.calls for function in functions),
        sum(function.calls_possible for function in functions),
        sum(function.seconds_spared for function in functions),
        any(function.estimated for function in functions),
        unreached
        or any(
            block.reduced
            or any(f.joined_calls and not f.estimated for f in record.functions)
            or (block.inputs and not any(f.estimated for f in record.functions))
            for block, record in ran
        ),
    )


def with_plain_calls(record: TaskRecord) -> TaskRecord:
    """Return a record whose possible calls are those of plain Spark, also above the joins."""
    rows = joined_rows(record)
    if rows is None:
        return record
    functions = tuple(
        replace(
            function,
            calls_possible=function.calls_possible
            - function.joined_calls
            + max(rows * function.joined_places, function.joined_calls),
            estimated=True,
        )
        if function.joined_places
        else function
        for function in record.functions
    )
    return replace(record, functions=functions)


def joined_rows(record: TaskRecord) -> int | None:
    """Estimate the rows of the joins that predicates over several inputs have not yet rejected.

    None where these have passed no row, so that nothing tells, and where there are none.
    """
    join = record.join
    if join is None or not record.rows_out:
        return None
    share = 1.0
    for position in join.late:
        predicate = record.predicates[position] if position < len(record.predicates) else None
        if predicate is not None and predicate.rows_in:
            share *= (predicate.passed + predicate.errors_held) / predicate.rows_in
    return round(record.rows_out / share) if share else None
