"""Adding up the records of many tasks in bounded memory.

Counts and times add. Slices of time are laid on a grid whose width is a power
of two and whose cells start at multiples of it, and the width doubles when too
many cells are in use. Since every cell of a grid lies in one cell of the next
wider grid, the outcome depends on the slices alone, not on the order or the
tree in which tasks were merged: :func:`merge` is commutative and associative.
(Sums of floats may differ in their last bit, and where a slice has seen more
than :data:`MAX_ORDERS_A_SLICE` orders, which of the rare ones keep their name.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import floor, isfinite, log

from eddyline.reports.records import (
    OTHER_ORDERS,
    Change,
    FunctionRecord,
    JoinRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
    ToldApartRecord,
)

# A picture of a run is some 600 pixels wide: 200 slices, 3 pixels each, lose nothing to the eye.
# Merging a task into a full record takes about 0.2 ms, and a full record pickles to some 40 kB.
MAX_SLICES = 200

# The report shows six orders; the others are kept apart so that the six are the right ones.
MAX_ORDERS_A_SLICE = 16

# For more changes than this many people read the picture, not the list.
MAX_CHANGES = 100

# Tasks whose rows are kept apart, the largest ones; with more the median is too high.
MAX_CELLS = 10_000

# The narrowest grid, about a millisecond: shorter stretches hold no whole batch.
FINEST_SLICE_SECONDS = 2.0**-10


def merge(left: TaskRecord, right: TaskRecord) -> TaskRecord:
    """Add up two records of one block.

    Raises ValueError if the records are not of the same block.
    """
    if left.block != right.block:
        raise ValueError(
            f"records of two blocks cannot be merged: {left.block!r} and {right.block!r}"
        )
    return compacted(
        TaskRecord(
            block=left.block,
            tasks=left.tasks + right.tasks,
            rows_in=left.rows_in + right.rows_in,
            rows_out=left.rows_out + right.rows_out,
            seconds=left.seconds + right.seconds,
            work_seconds=left.work_seconds + right.work_seconds,
            routing_seconds=left.routing_seconds + right.routing_seconds,
            decisions=left.decisions + right.decisions,
            predicates=_merged_predicates(left.predicates, right.predicates),
            functions=_merged_functions(left.functions, right.functions),
            orders=left.orders + right.orders,
            changes=left.changes + right.changes,
            changes_dropped=left.changes_dropped + right.changes_dropped,
            slice_seconds=max(left.slice_seconds, right.slice_seconds),
            worker=left.worker if left.worker == right.worker else None,
            action=max(left.action, right.action),
            output_seconds=left.output_seconds + right.output_seconds,
            core_seconds=left.core_seconds + right.core_seconds,
            answer_seconds=left.answer_seconds + right.answer_seconds,
            join=_merged_joins(left.join, right.join),
            explored=left.explored + right.explored,
            policy_failures=left.policy_failures + right.policy_failures,
            policy_error=min(filter(None, (left.policy_error, right.policy_error)), default=""),
            told_apart=_merged_told_apart(left.told_apart + right.told_apart),
        )
    )


def merge_by_block(
    left: Mapping[str, TaskRecord], right: Mapping[str, TaskRecord]
) -> dict[str, TaskRecord]:
    """Add up the records of several blocks, keyed by the identity of the block."""
    merged = dict(left)
    for block, record in right.items():
        merged[block] = merge(merged[block], record) if block in merged else record
    return merged


def compacted(record: TaskRecord) -> TaskRecord:
    """Return the record with no more slices, orders a slice and changes than the limits.

    Neighbouring slices are joined, rare orders become :data:`OTHER_ORDERS`, and
    the largest changes are kept. No total changes.
    """
    orders, slice_seconds = _on_grid(record.orders, record.slice_seconds)
    changes = _largest(record.changes)
    return replace(
        record,
        orders=orders,
        slice_seconds=slice_seconds,
        changes=changes,
        changes_dropped=record.changes_dropped + len(record.changes) - len(changes),
    )


def _merged_predicates(
    left: tuple[PredicateRecord, ...], right: tuple[PredicateRecord, ...]
) -> tuple[PredicateRecord, ...]:
    if [one.text for one in left] != [one.text for one in right]:
        raise ValueError("the records of one block name different predicates")
    return tuple(
        PredicateRecord(
            text=one.text,
            rows_in=one.rows_in + two.rows_in,
            passed=one.passed + two.passed,
            rejected=one.rejected + two.rejected,
            null=one.null + two.null,
            errors_held=one.errors_held + two.errors_held,
            errors_dropped=one.errors_dropped + two.errors_dropped,
            seconds=one.seconds + two.seconds,
            first_rows=one.first_rows + two.first_rows,
            first_seconds=one.first_seconds + two.first_seconds,
            # A task that has not routed an OR names no terms of it.
            nested=_merged_predicates(one.nested, two.nested)
            if one.nested and two.nested
            else one.nested or two.nested,
        )
        for one, two in zip(left, right, strict=True)
    )


def _merged_joins(left: JoinRecord | None, right: JoinRecord | None) -> JoinRecord | None:
    if left is None or right is None:
        return left or right
    cells = sorted((*left.cells, *right.cells), reverse=True)
    return JoinRecord(
        stems=tuple(
            SteMRecord(
                relation=one.relation,
                rows=max(one.rows, two.rows),
                bytes=max(one.bytes, two.bytes),
                builds=one.builds + two.builds,
                probes=one.probes + two.probes,
                matches=one.matches + two.matches,
                bounced=one.bounced + two.bounced,
                killed=one.killed + two.killed,
                seconds=one.seconds + two.seconds,
            )
            for one, two in zip(left.stems, right.stems, strict=True)
        ),
        read=tuple(one + two for one, two in zip(left.read, right.read, strict=True)),
        came=tuple(one + two for one, two in zip(left.came, right.came, strict=True)),
        cells=tuple(cells[:MAX_CELLS]),
        spilled_bytes=left.spilled_bytes + right.spilled_bytes,
        spilled_files=left.spilled_files + right.spilled_files,
        late=left.late or right.late,
    )


def _merged_functions(
    left: tuple[FunctionRecord, ...], right: tuple[FunctionRecord, ...]
) -> tuple[FunctionRecord, ...]:
    # By position: two different lambdas of one block have the same name.
    if [one.name for one in left] != [one.name for one in right]:
        raise ValueError("the records of one block name different functions")
    return tuple(
        FunctionRecord(
            name=one.name,
            calls=one.calls + two.calls,
            calls_possible=one.calls_possible + two.calls_possible,
            seconds=one.seconds + two.seconds,
            remembered=one.remembered + two.remembered,
            shared=one.shared + two.shared,
            distinct=max(one.distinct, two.distinct),
            memory_bytes=max(one.memory_bytes, two.memory_bytes),
            lookup_seconds=one.lookup_seconds + two.lookup_seconds,
            joined_calls=one.joined_calls + two.joined_calls,
            joined_places=max(one.joined_places, two.joined_places),
            estimated=one.estimated or two.estimated,
        )
        for one, two in zip(left, right, strict=True)
    )


def _merged_told_apart(records: tuple[ToldApartRecord, ...]) -> tuple[ToldApartRecord, ...]:
    by_column: dict[str, ToldApartRecord] = {}
    for record in records:
        before = by_column.get(record.column, record)
        by_column[record.column] = replace(
            record,
            classes=max(before.classes, record.classes),
            rows=record.rows + (0 if before is record else before.rows),
        )
    return tuple(by_column[column] for column in sorted(by_column))


def _on_grid(slices: tuple[OrderSlice, ...], width: float) -> tuple[tuple[OrderSlice, ...], float]:
    if not width and len(slices) <= MAX_SLICES:
        by_time = sorted(slices, key=lambda piece: (piece.start, piece.end, piece.shares))
        return tuple(_with_few_orders(piece) for piece in by_time), width
    width = max(width, FINEST_SLICE_SECONDS)
    while True:
        cells: dict[int, list[OrderSlice]] = {}
        for piece in slices:
            # By its start, so that a joined slice, which starts where its first
            # part does, falls into the same cell as its parts on every wider grid.
            cells.setdefault(floor(piece.start / width), []).append(piece)
        if len(cells) <= MAX_SLICES:
            return tuple(_with_few_orders(_joined(cells[cell])) for cell in sorted(cells)), width
        width *= 2


def _joined(pieces: list[OrderSlice]) -> OrderSlice:
    if len(pieces) == 1:
        return pieces[0]
    rows: Counter[Order] = Counter()
    for piece in pieces:
        for order, number in piece.shares:
            rows[order] += number
    return OrderSlice(
        start=min(piece.start for piece in pieces),
        end=max(piece.end for piece in pieces),
        rows=sum(piece.rows for piece in pieces),
        shares=_by_rows(rows.items()),
    )


def _with_few_orders(piece: OrderSlice) -> OrderSlice:
    if len(piece.shares) <= MAX_ORDERS_A_SLICE:
        return piece
    named = _by_rows(share for share in piece.shares if share[0] != OTHER_ORDERS)
    kept = named[: MAX_ORDERS_A_SLICE - 1]
    other = sum(rows for _, rows in piece.shares) - sum(rows for _, rows in kept)
    return replace(piece, shares=(*kept, (OTHER_ORDERS, other)))


def _by_rows(shares: Iterable[tuple[Order, int]]) -> tuple[tuple[Order, int], ...]:
    return tuple(sorted(shares, key=lambda share: (-share[1], share[0])))


def _largest(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    if len(changes) > MAX_CHANGES:
        changes = largest_changes(changes, MAX_CHANGES)
    return tuple(sorted(changes, key=_by_time))


def largest_changes(changes: Iterable[Change], number: int) -> tuple[Change, ...]:
    """Return at most ``number`` of the changes, those by the largest factor, in order of time."""
    ranked = sorted(changes, key=lambda change: (-_magnitude(change), _by_time(change)))
    return tuple(sorted(ranked[:number], key=_by_time))


def _magnitude(change: Change) -> float:
    if change.old == change.new:
        return 0.0
    ratio = change.new / change.old if change.old else float("inf")
    # From or to nothing, or out of all bounds, is as large as a change can be.
    return abs(log(ratio)) if ratio > 0 and isfinite(ratio) else float("inf")


def _by_time(change: Change) -> tuple[float, int, str, float, float]:
    return (change.when, change.predicate, change.quantity, change.old, change.new)
