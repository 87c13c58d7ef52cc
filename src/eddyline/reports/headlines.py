"""The totals of a block: as sentences, and as figures to be seen at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eddyline.reports.block_report import BlockReport
from eddyline.reports.figures import Bytes, Count, Figure, Seconds, Share
from eddyline.reports.records import JoinRecord, TaskRecord
from eddyline.reports.wording import (
    compact,
    compacted,
    counted,
    duration,
    one_line,
    percent,
    ratio,
    size,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """What is told at a glance: a name, a figure, and a note about it."""

    name: str
    figure: Figure
    note: str


@dataclass(frozen=True, slots=True)
class Headline:
    """A total of a block, as a sentence, and at a glance where that is possible."""

    sentence: str
    tiles: tuple[Tile, ...] = ()


def headlines(block: BlockReport, record: TaskRecord) -> Iterator[Headline]:
    """Yield what a block did in all, the most important first."""
    yield _rows(record)
    yield from _calls(record)
    yield _time(record)
    if parts := _parts_of_time(record):
        yield Headline(parts)
    if block.layout:
        yield Headline(one_line(block.layout))
    if record.join is not None:
        yield from _evenness(record.join)


def _rows(record: TaskRecord) -> Headline:
    rows_in, rows_out = compact(record.rows_in), compact(record.rows_out)
    tasks = counted(record.tasks, "task")
    if record.join is None:
        kept = Share(record.rows_out, record.rows_in)
        share = percent(record.rows_out, record.rows_in)
        return Headline(
            f"{compacted(record.rows_in, 'row')} in, {rows_out} out ({share}); {tasks}",
            (Tile("Rows kept", kept, f"{rows_out} of {rows_in}"),),
        )
    came = f"{compacted(record.rows_in, 'row')} of {len(record.join.stems)} inputs"
    return Headline(
        f"{came}, {compacted(record.rows_out, 'joined row')} out; {tasks}",
        (Tile("Joined rows", Count(record.rows_out), f"from {came}"),),
    )


def _calls(record: TaskRecord) -> Iterator[Headline]:
    about = "about " * any(function.estimated for function in record.functions)
    possible = about + compact(record.calls_possible)
    if record.calls > record.calls_possible:
        yield Headline(
            f"{compacted(record.calls, 'call')} made; a fixed plan makes {possible}",
            (Tile("Calls made", Count(record.calls), f"{possible} in a fixed plan"),),
        )
    elif record.calls_possible:
        share = percent(record.calls_avoided, record.calls_possible)
        yield Headline(
            f"{compact(record.calls)} of {about}{compacted(record.calls_possible, 'call')} made: "
            f"{share} avoided, worth about {duration(record.seconds_spared)}",
            (
                Tile(
                    "Calls avoided",
                    Share(record.calls_avoided, record.calls_possible),
                    f"{compact(record.calls_avoided)} of {possible}",
                ),
                Tile("Time spared", Seconds(record.seconds_spared, about=True), "at measured cost"),
            ),
        )


def _time(record: TaskRecord) -> Headline:
    routing = duration(record.routing_seconds)
    decisions = compacted(record.decisions, "decision")
    share = percent(record.routing_seconds, record.seconds)
    return Headline(
        f"{duration(record.seconds)} in the block, {routing} of it routing ({share}); {decisions}",
        (
            Tile("Time in the block", Seconds(record.seconds), counted(record.tasks, "task")),
            Tile(
                "Routing", Share(record.routing_seconds, record.seconds), f"{routing}, {decisions}"
            ),
        ),
    )


def _parts_of_time(record: TaskRecord) -> str:
    """Say what the time in a block consists of; empty where only its routing was measured.

    >>> _parts_of_time(TaskRecord(block="b", seconds=4, work_seconds=2, core_seconds=1.5))
    'Where the time went: 2.00 s functions and modules, 1.50 s waiting for a core, 500 ms not accounted for'
    """  # noqa: E501 - a sentence is one line
    if not record.output_seconds and not record.core_seconds:
        return ""
    parts = (
        (record.work_seconds, "functions and modules"),
        (record.routing_seconds, "routing"),
        (record.output_seconds, "putting results together"),
        (record.core_seconds, "waiting for a core"),
        (record.other_seconds, "not accounted for"),
    )
    told = (f"{duration(seconds)} {what}" for seconds, what in parts if seconds)
    return f"Where the time went: {', '.join(told)}"


def _evenness(join: JoinRecord) -> Iterator[Headline]:
    if join.skew is not None:
        times = ratio(join.skew)
        yield Headline(
            f"The largest task had {times} times the rows of the median one",
            (Tile("Largest task", f"{times} x", "the rows of the median one"),),
        )
    if join.spilled_bytes:
        files = counted(join.spilled_files, "file")
        yield Headline(
            f"{size(join.spilled_bytes)} spilled to disk, in {files}",
            (Tile("Spilled to disk", Bytes(join.spilled_bytes), files),),
        )
