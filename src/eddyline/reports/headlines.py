"""The totals of a block: as sentences, and as figures at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eddyline.reports.block_report import BlockReport
from eddyline.reports.figures import Bytes, Count, Figure, Seconds, Sentence, Share
from eddyline.reports.records import JoinRecord, TaskRecord
from eddyline.reports.wording import brief_count, compact, counted, one_line, ratio


@dataclass(frozen=True, slots=True)
class Tile:
    """A total at a glance: a name, a figure, and a note about it."""

    name: str
    figure: Figure
    note: Sentence


@dataclass(frozen=True, slots=True)
class Headline:
    """A total of a block, as a sentence, and at a glance where that is possible."""

    sentence: Sentence
    tiles: tuple[Tile, ...] = ()


def headlines(block: BlockReport, record: TaskRecord) -> Iterator[Headline]:
    """Yield what a block did in all, the most important first."""
    yield _rows(record)
    yield from _calls(record)
    yield from _told_apart(record)
    yield _time(record)
    yield from _parts_of_time(record)
    if record.policy_failures:
        failed, tasks = compact(record.policy_failures), counted(record.tasks, "task")
        yield Headline(
            f"Policy {one_line(block.policy)} failed in {failed} of {tasks}, "
            f"where the written order went on: {one_line(record.policy_error)}"
        )
    if block.layout:
        yield Headline(one_line(block.layout))
    if record.join is not None:
        yield from _evenness(record.join)


def _rows(record: TaskRecord) -> Headline:
    rows_in, rows_out = compact(record.rows_in), compact(record.rows_out)
    tasks = counted(record.tasks, "task")
    if record.join is None:
        kept = Share(record.rows_out, record.rows_in)
        return Headline(
            (f"{brief_count(record.rows_in, 'row')} in, {rows_out} out (", kept, f"); {tasks}"),
            (Tile("Rows kept", kept, f"{rows_out} of {rows_in}"),),
        )
    came = f"{brief_count(record.rows_in, 'row')} of {len(record.join.stems)} inputs"
    return Headline(
        f"{came}, {brief_count(record.rows_out, 'joined row')} out; {tasks}",
        (Tile("Joined rows", Count(record.rows_out), f"from {came}"),),
    )


def _calls(record: TaskRecord) -> Iterator[Headline]:
    about = "about " * any(function.estimated for function in record.functions)
    possible = about + compact(record.calls_possible)
    if record.calls > record.calls_possible:
        yield Headline(
            f"{brief_count(record.calls, 'call')} made; a fixed plan makes {possible}",
            (Tile("Calls made", Count(record.calls), f"{possible} in a fixed plan"),),
        )
    elif record.calls_possible:
        calls = about + brief_count(record.calls_possible, "call")
        share = Share(record.calls_avoided, record.calls_possible)
        spared = Seconds(record.seconds_spared)
        yield Headline(
            (f"{compact(record.calls)} of {calls} made: ", share, " avoided, worth about ", spared),
            (
                Tile("Calls avoided", share, f"{compact(record.calls_avoided)} of {possible}"),
                Tile("Time spared", Seconds(record.seconds_spared, about=True), "at measured cost"),
            ),
        )


def _told_apart(record: TaskRecord) -> Iterator[Headline]:
    """Yield by which columns rows were told apart."""
    for of in record.told_apart:
        rows, classes = brief_count(of.rows, "row"), counted(of.classes, "class", "classes")
        yield Headline(
            f"{rows} told apart by {one_line(of.column)}, each of {classes} in an order of its own"
        )


def _time(record: TaskRecord) -> Headline:
    seconds, routing = Seconds(record.seconds), Seconds(record.routing_seconds)
    decisions = brief_count(record.decisions, "decision")
    share = Share(record.routing_seconds, record.seconds)
    return Headline(
        (seconds, " in the block, ", routing, " of it routing (", share, f"); {decisions}"),
        (
            Tile("Time in the block", seconds, counted(record.tasks, "task")),
            Tile("Routing", share, (routing, f", {decisions}")),
        ),
    )


def _parts_of_time(record: TaskRecord) -> Iterator[Headline]:
    """Yield what the time in a block consists of; nothing where only its routing was measured."""
    parts = (
        (record.work_seconds, " functions and modules"),
        (record.routing_seconds, " routing"),
        (record.output_seconds, " putting results together"),
        (record.core_seconds, " waiting for a core"),
        (record.answer_seconds, " waiting for answers"),
        (record.other_seconds, " not accounted for"),
    )
    if record.output_seconds or record.core_seconds or record.answer_seconds:
        told: list[Figure] = ["Where the time went"]
        for seconds, what in parts:
            if seconds:
                told += [": " if len(told) == 1 else ", ", Seconds(seconds), what]
        yield Headline(tuple(told))


def _evenness(join: JoinRecord) -> Iterator[Headline]:
    if join.skew is not None:
        times = ratio(join.skew)
        yield Headline(
            f"The largest task had {times} times the rows of the median one",
            (Tile("Largest task", f"{times} x", "the rows of the median one"),),
        )
    if join.spilled_bytes:
        files = counted(join.spilled_files, "file")
        spilled = Bytes(join.spilled_bytes)
        yield Headline(
            (spilled, f" spilled to disk, in {files}"), (Tile("Spilled to disk", spilled, files),)
        )
