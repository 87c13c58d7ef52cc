"""The parts of the HTML report that only join blocks have."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from eddyline.reports.bars import Bar, Part, bar_chart
from eddyline.reports.block_report import BlockReport
from eddyline.reports.columns import column_chart
from eddyline.reports.html_parts import BAR_TEXT_MOST, WIDTH, table, text, time
from eddyline.reports.records import JoinRecord, TaskRecord
from eddyline.reports.wording import compact, count, one_line, ratio, shortened, size

_FEW_TASKS = 2  # whose rows need no picture


def join_tiles(join: JoinRecord) -> Iterator[tuple[str, str, str]]:
    """Yield what is told at a glance: skew, and what was spilled."""
    if join.skew is not None:
        yield "Largest task", f"{ratio(join.skew)} x", "the rows of the median one"
    if join.spilled_bytes:
        files = f"{count(join.spilled_files)} file{'' if join.spilled_files == 1 else 's'}"
        yield "Spilled to disk", size(join.spilled_bytes), files


def inputs_table(block: BlockReport, join: JoinRecord) -> str:
    """Return a table of the inputs and what their SteMs did."""
    labels = block.labels[-len(join.stems) :]
    lettered = labels != join.names
    copied = join.came != join.read
    killed = any(stem.killed for stem in join.stems)
    bounced = any(stem.bounced for stem in join.stems)
    rows = [
        [
            *([escape(label)] * lettered),
            text(stem.relation),
            count(read),
            *([count(came)] * copied),
            count(stem.rows),
            size(stem.bytes),
            count(stem.builds),
            count(stem.probes),
            count(stem.matches),
            ratio(stem.fanout),
            *([count(stem.killed)] * killed),
            *([count(stem.bounced)] * bounced),
            time(stem.seconds),
        ]
        for label, stem, read, came in zip(labels, join.stems, join.read, join.came, strict=True)
    ]
    names = [
        *([""] * lettered),
        "Input",
        "Rows read",
        *(["Came"] * copied),
        "In SteM",
        "Size",
        "Built",
        "Probes",
        "Matches",
        "a probe",
        *(["Killed"] * killed),
        *(["Bounced"] * bounced),
        "Time",
    ]
    note = "In SteM and size: of the task that held the most."
    if copied:
        note += (
            " Came: to a task that joins; without rows that a predicate dropped before, and with "
            "a row again for each task that it was copied to."
        )
    if killed:
        note += " Killed: built, and rejected by a predicate later."
    layout = f'<p class="sub">{escape(one_line(block.layout))}</p>' if block.layout else ""
    whole = table(names, rows, words=(1,) if lettered else (0,))
    return f'<h3>Inputs</h3>{layout}{whole}<p class="sub">{note}</p>'


def steps_picture(block: BlockReport, record: TaskRecord, join: JoinRecord) -> str:
    """Return a picture of how many tuples came to each step, and how many went on."""
    labels = block.labels
    steps = [(each.rows_in, each.passed + each.errors_held) for each in record.predicates]
    steps += [(stem.probes, stem.matches) for stem in join.stems]
    bars = []
    for position, (came, went) in enumerate(steps):
        words = block.text_of(position)
        label = words if labels[position] in words.split() else f"{labels[position]}: {words}"
        bars.append(
            Bar(
                label=shortened(label, BAR_TEXT_MOST),
                values=(came, went),
                note=f"{ratio(went / came)} for one" if came else "none came",
                hint=f"{label}: {compact(came)} in, {compact(went)} out",
            )
        )
    picture = bar_chart(
        bars,
        [Part("tuples that came"), Part("that went on, or matches")],
        "Tuples at each step",
        "tuples",
        stacked=False,
        width=WIDTH,
    )
    return f"<figure>{picture}</figure>"


def skew_picture(join: JoinRecord) -> str:
    """Return a picture of how many rows came to each task; nothing for a few tasks."""
    if len(join.cells) <= _FEW_TASKS:
        return ""
    picture = column_chart(
        join.cells,
        "Rows of each task",
        "tasks, the largest first",
        "rows",
        description=f"The largest task had {ratio(join.skew)} times the rows of the median one.",
        width=WIDTH,
    )
    return f"<figure>{picture}</figure>"
