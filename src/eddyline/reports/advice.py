"""What a person who knows the system would say of a run: what it cost, and what would spare it.

Each sentence rests on counts of the run alone, and names what a user can change; nothing is decided
by it. Predicates and memories that took less than a tenth of a second are not mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.records import FunctionRecord, JoinRecord
from eddyline.reports.wording import count, duration, size

NOTEWORTHY: Final = 0.1
"""Seconds below which nobody would change anything."""

MANY_ROWS: Final = 10_000
"""Rows from which on it says something that none was dropped."""

MANY_KEYS: Final = 20
"""Keys from which on several in one call would be worth it."""

TOGETHER: Final = 100
"""Keys in a call, for an example."""

RARELY: Final = 0.01
"""Share of rows below which a memory hardly ever has an answer."""

OFTEN: Final = 0.1
"""Share of requests that failed from which on a service seems to be asked too fast."""


def advice(
    blocks: Sequence[BlockReport],
    called: Sequence[CalledFunction] = (),
    asked: Sequence[AskedTable] = (),
) -> tuple[str, ...]:
    """Return sentences, each of them once, in the order of what they are about."""
    said = (
        *(sentence for block in blocks for sentence in _of_block(block)),
        *(sentence for function in called for sentence in _of_calls(function)),
        *(sentence for table in asked for sentence in _of_keys(table)),
    )
    return tuple(dict.fromkeys(said))


def _of_block(block: BlockReport) -> Iterator[str]:
    record = block.record
    if record is None:
        return
    for position, predicate in enumerate(record.predicates):
        kept_all = predicate.passed == predicate.rows_in >= MANY_ROWS
        if kept_all and predicate.seconds >= NOTEWORTHY:
            yield (
                f"{block.text_of(position)} dropped none of {count(predicate.rows_in)} rows, in "
                f"{duration(predicate.seconds)}: the query may not need it."
            )
    for function in record.functions:
        yield from _of_memory(function)
    if record.join is not None:
        yield from _of_room(record.join)


def _of_memory(function: FunctionRecord) -> Iterator[str]:
    again, rows = function.remembered, function.calls + function.remembered
    if function.lookup_seconds >= NOTEWORTHY and again < RARELY * rows:
        yield (
            f"{function.name} hardly ever got the same arguments again ({count(again)} of "
            f"{count(rows)} rows), and its memory took {duration(function.lookup_seconds)}: "
            "@eddyline.forgetful leaves it out."
        )


def _of_room(join: JoinRecord) -> Iterator[str]:
    if join.spilled_bytes:
        yield (
            f"The join wrote {size(join.spilled_bytes)} to disk: with a larger memory= it "
            "would write less."
        )


def _of_calls(function: CalledFunction) -> Iterator[str]:
    calls = function.calls - function.failures
    if function.together == 1 and function.values >= MANY_KEYS and calls >= function.values:
        yield (
            f"{function.name} got one value a call, {count(function.values)} in all: where it can "
            f"take a list, batch={TOGETHER} makes that {_in_batches(function.values)}."
        )


def _of_keys(table: AskedTable) -> Iterator[str]:
    answered = table.requests - table.failures
    if table.together == 1 and table.keys >= MANY_KEYS and answered >= table.keys:
        yield (
            f"{table.name} was asked for one key a call, {count(table.keys)} in all: where its "
            f"source can take several, keys_per_call={TOGETHER} makes that "
            f"{_in_batches(table.keys)}."
        )
    if table.requests >= MANY_KEYS and table.failures >= OFTEN * table.requests:
        yield (
            f"{count(table.failures)} of {count(table.requests)} requests to {table.name} failed "
            "and were made again: a lower rate= or max_in_flight= may be what it can take."
        )


def _in_batches(values: int) -> str:
    calls = -(-values // TOGETHER)
    return "1 call" if calls == 1 else f"{count(calls)} calls"
