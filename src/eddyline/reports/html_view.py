"""What the templates of the HTML report are filled with, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from eddyline.reports.block_report import BlockReport
from eddyline.reports.html_pictures import (
    Picture,
    calls_picture,
    join_pictures,
    orders_picture,
)
from eddyline.reports.html_tables import (
    Columns,
    change_columns,
    function_columns,
    input_columns,
    order_columns,
    predicate_columns,
)
from eddyline.reports.html_wording import time
from eddyline.reports.merging import largest_changes
from eddyline.reports.records import JoinRecord, TaskRecord
from eddyline.reports.timeline import timeline
from eddyline.reports.wording import (
    NO_ACTION,
    NO_ROWS,
    compact,
    compacted,
    count,
    counted,
    parts_of_time,
    percent,
    ratio,
    size,
)

_BINS = 96  # seven pixels each in a picture of the usual width
_NARROW_BINS = 36  # nine each in a narrow one, which may not double the size of a page
_TABLE_BINS = 8
_TOP_ORDERS = 6
_MARKED_CHANGES = 12  # more lines than that hide the picture


@dataclass(frozen=True, slots=True)
class Tile:
    """What is told at a glance: a name, a figure, and a note about it."""

    name: str
    figure: str
    note: str


@dataclass(frozen=True, slots=True)
class RunView:
    """What is shown of a run; a table that has nothing to say has no columns.

    The orders have a picture too, or neither. ``changes_in_all`` is empty unless more
    changes were noticed than are listed.
    """

    tiles: tuple[Tile, ...]
    inputs: Columns
    predicates: Columns
    orders: Columns
    orders_picture: Picture | None
    changes: Columns
    changes_in_all: str
    pictures: tuple[Picture, ...]
    functions: Columns
    time: str


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block; when it ran, or nothing; and its run, or a note that says why there is none."""

    block: BlockReport
    when: str
    note: str
    run: RunView | None


def block_view(block: BlockReport) -> BlockView:
    """Return what is shown of a block."""
    record = block.record
    if record is None:
        return BlockView(block, "", NO_ACTION, None)
    if not record.rows_in:
        return BlockView(block, _when(record), NO_ROWS, None)
    return BlockView(block, _when(record), "", _run(block, record))


def _run(block: BlockReport, record: TaskRecord) -> RunView:
    join = record.join
    line = timeline(record.orders, record.order_rows, bins=_BINS, top=_TOP_ORDERS)
    changes = largest_changes(record.changes, _MARKED_CHANGES)
    noticed = len(record.changes) + record.changes_dropped
    narrow = timeline(record.orders, record.order_rows, bins=_NARROW_BINS, top=_TOP_ORDERS)
    coarse = timeline(record.orders, record.order_rows, bins=_TABLE_BINS, top=_TOP_ORDERS)
    pictures = [calls_picture(block)] if join is None else join_pictures(block, record, join)
    rows = block.numbered()
    return RunView(
        tiles=tuple(_tiles(record)),
        inputs=input_columns(block, join) if join is not None else (),
        predicates=predicate_columns(rows, joins=join is not None) if rows else (),
        orders=order_columns(block.labels, coarse) if line.bins else (),
        orders_picture=orders_picture(block, line, narrow, changes) if line.bins else None,
        changes=change_columns(changes, line) if noticed else (),
        changes_in_all=count(noticed) if noticed > len(changes) else "",
        pictures=tuple(pictures),
        functions=function_columns(record.functions) if record.functions else (),
        time=parts_of_time(record),
    )


def _when(record: TaskRecord) -> str:
    if not record.orders:
        return ""
    start, end = (
        datetime.fromtimestamp(moment, UTC)
        for moment in (record.orders[0].start, max(piece.end for piece in record.orders))
    )
    until = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{start:%Y-%m-%d %H:%M:%S} to {until}"


def _tiles(record: TaskRecord) -> Iterator[Tile]:
    yield _rows_tile(record)
    yield from _calls_tiles(record)
    tasks = counted(record.tasks, "task")
    yield Tile("Time in the block", time(record.seconds), tasks)
    routing = f"{time(record.routing_seconds)}, {compacted(record.decisions, 'decision')}"
    yield Tile("Routing", percent(record.routing_seconds, record.seconds), routing)
    if record.join is not None:
        yield from _join_tiles(record.join)


def _rows_tile(record: TaskRecord) -> Tile:
    rows_in, rows_out = compact(record.rows_in), compact(record.rows_out)
    if record.join is None:
        kept = percent(record.rows_out, record.rows_in)
        return Tile("Rows kept", kept, f"{rows_out} of {rows_in}")
    return Tile("Joined rows", rows_out, f"of {rows_in} rows of {len(record.join.stems)} inputs")


def _calls_tiles(record: TaskRecord) -> Iterator[Tile]:
    about = "about " * any(function.estimated for function in record.functions)
    possible = about + compact(record.calls_possible)
    if record.calls > record.calls_possible:
        yield Tile("Calls made", compact(record.calls), f"{possible} in a fixed plan")
    elif record.calls_possible:
        avoided = percent(record.calls_avoided, record.calls_possible)
        yield Tile("Calls avoided", avoided, f"{compact(record.calls_avoided)} of {possible}")
        yield Tile("Time spared", f"≈ {time(record.seconds_spared)}", "at the cost measured")


def _join_tiles(join: JoinRecord) -> Iterator[Tile]:
    if join.skew is not None:
        yield Tile("Largest task", f"{ratio(join.skew)} x", "the rows of the median one")
    if join.spilled_bytes:
        files = counted(join.spilled_files, "file")
        yield Tile("Spilled to disk", size(join.spilled_bytes), files)
