"""The report as text for a terminal, a log or a plain ``print``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eddyline.reports.asked_tables import AskedTable
from eddyline.reports.block_report import BlockReport, NumberedPredicate
from eddyline.reports.called_functions import CalledFunction, in_all
from eddyline.reports.fitting_table import FittingTable, plain_table
from eddyline.reports.merging import largest_changes
from eddyline.reports.plain_spark import compared
from eddyline.reports.records import (
    OTHER_ORDERS,
    FunctionRecord,
    JoinRecord,
    TaskRecord,
)
from eddyline.reports.timeline import Timeline, timeline
from eddyline.reports.wording import (
    CALLED_AT_THE_DRIVER,
    LOOKED_UP,
    NO_ACTION,
    NO_BLOCKS,
    NO_ROWS,
    NOTHING,
    change_text,
    compact,
    compacted,
    count,
    counted,
    duration,
    one_line,
    order_name,
    parts_of_time,
    percent,
    ratio,
    size,
)

_TOP_ORDERS = 6
_LISTED_CHANGES = 6
_NARROW = 100  # below this many columns the pictures of shares get shorter
_INDENT = 2
_NARROWER = 60  # below this many the shortest
_WIDE_BINS, _BINS, _FEW_BINS = 40, 24, 12  # signs of a picture of shares


@dataclass(frozen=True, slots=True)
class ReportText:
    """The report as a rich renderable: as wide as the console, coloured only on a terminal."""

    blocks: tuple[BlockReport, ...]
    left: tuple[tuple[str, str], ...]
    called: tuple[CalledFunction, ...] = ()
    asked: tuple[AskedTable, ...] = ()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield headings, sentences and tables, top to bottom."""
        if not self.blocks:
            yield Text(NO_BLOCKS, style="bold")
        yield from _compared(self.blocks)
        for place, block in enumerate(self.blocks, start=1):
            if place > 1:
                yield Text()
            yield Text.assemble(
                (f"Block {place}: {one_line(block.title)}", "bold"),
                (f"  (policy {block.policy}{_seed(block)})", "dim"),
            )
            for part in _block(block, options):
                yield Padding(part, (0, 0, 0, _INDENT))
        if self.asked:
            yield Text()
            yield Text(LOOKED_UP, style="bold")
            yield Padding(_asked(self.asked), (0, 0, 0, _INDENT))
        if self.called:
            yield Text()
            yield Text(CALLED_AT_THE_DRIVER, style="bold")
            yield Padding(_called(self.called), (0, 0, 0, _INDENT))
            if money := in_all(self.called):
                yield Padding(Text(f"Spent in all: {money}"), (0, 0, 0, _INDENT))
        if self.left:
            yield Text()
            yield Text("Left to Spark", style="bold")
            table = plain_table("What", "Why")
            for what, why in self.left:
                table.add_row(_cut(what), Text(one_line(why)))
            yield Padding(table, (0, 0, 0, _INDENT))


def plain(
    blocks: tuple[BlockReport, ...],
    left: tuple[tuple[str, str], ...],
    width: int,
    called: tuple[CalledFunction, ...] = (),
    asked: tuple[AskedTable, ...] = (),
) -> str:
    """Return the report as text without colours, ``width`` columns wide, no line end at its end."""
    out = StringIO()
    # In a notebook rich would show it below the cell and write nothing.
    console = Console(
        file=out, width=width, color_system=None, force_terminal=False, force_jupyter=False
    )
    console.print(ReportText(blocks, left, called, asked))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _compared(blocks: Sequence[BlockReport]) -> Iterator[Text]:
    plain_spark = compared(blocks)
    if plain_spark is not None:
        yield Text(f"{plain_spark}\n", style="bold")


def _block(block: BlockReport, options: ConsoleOptions) -> Iterator[RenderableType]:
    record = block.record
    if record is None or not record.rows_in:
        yield Text(NO_ACTION if record is None else NO_ROWS, style="yellow")
        for position in range(len(block.predicates)):
            yield _cut(f"{position + 1} {block.text_of(position)}")
        return
    narrow = options.max_width < _NARROW
    yield from _totals(record)
    if record.join is not None:
        yield from _join(block, record.join)
        yield Text()
        yield _inputs(block, record.join, narrow=narrow)
    if record.predicates:
        yield Text()
        yield from _predicates(block, record, narrow=narrow)
    if record.functions:
        yield Text()
        yield _functions(record)
        yield from map(Text, _without_calls(record.functions))
    bins = _BINS if options.max_width < _NARROW else _WIDE_BINS
    bins = _FEW_BINS if options.max_width < _NARROWER else bins
    line = timeline(record.orders, record.order_rows, bins=bins, top=_TOP_ORDERS)
    if line.bins:
        yield Text()
        yield _orders(block, line, ascii_only=options.ascii_only)
    if record.changes:
        yield Text()
        yield from _changes(record, line)


def _seed(block: BlockReport) -> str:
    return "" if block.seed is None else f", seed {block.seed}"


def _totals(record: TaskRecord) -> Iterator[Text]:
    tasks = f"{record.tasks:,} task{'' if record.tasks == 1 else 's'}"
    rows_out = compact(record.rows_out)
    if record.join is None:
        kept = percent(record.rows_out, record.rows_in)
        yield Text(f"{compacted(record.rows_in, 'row')} in, {rows_out} out ({kept}); {tasks}")
    else:
        inputs = len(record.join.stems)
        yield Text(
            f"{compacted(record.rows_in, 'row')} of {inputs} inputs, "
            f"{compacted(record.rows_out, 'joined row')} out; {tasks}"
        )
    if record.calls > record.calls_possible:
        yield Text(
            f"{compacted(record.calls, 'call')} made, where a fixed plan makes "
            f"{compact(record.calls_possible)}"
        )
    elif record.calls_possible:
        avoided = percent(record.calls_avoided, record.calls_possible)
        about = "about " * any(function.estimated for function in record.functions)
        yield Text(
            f"{compact(record.calls)} of {about}{compacted(record.calls_possible, 'call')} made: "
            f"{avoided} avoided, worth about {duration(record.seconds_spared)}"
        )
    routing = percent(record.routing_seconds, record.seconds)
    yield Text(
        f"{duration(record.seconds)} in the block, {duration(record.routing_seconds)} of it "
        f"routing ({routing}); {compacted(record.decisions, 'decision')}"
    )
    if parts := parts_of_time(record):
        yield Text(parts)


def _join(block: BlockReport, join: JoinRecord) -> Iterator[Text]:
    if block.layout:
        yield Text(one_line(block.layout))
    if join.skew is not None:
        yield Text(f"The largest task had {ratio(join.skew)} times the rows of the median one")
    if join.spilled_bytes:
        files = f"{join.spilled_files:,} file{'' if join.spilled_files == 1 else 's'}"
        yield Text(f"{size(join.spilled_bytes)} spilled to disk, in {files}")


def _inputs(block: BlockReport, join: JoinRecord, *, narrow: bool) -> FittingTable:
    """Return a table of the inputs and what their SteMs did; rare events where there are any."""
    labels = block.labels[-len(join.stems) :]
    lettered = labels != join.names
    copied = join.came != join.read
    killed = any(stem.killed for stem in join.stems)
    bounced = any(stem.bounced for stem in join.stems)
    names = [
        "Rows",
        *(["Came"] * (copied and not narrow)),
        "In SteM",
        "Size",
        *(["Built"] * (not narrow)),
        "Probes",
        *(["Matches"] * (not narrow)),
        "Each",
        *(["Killed"] * (killed and not narrow)),
        *(["Bounced"] * (bounced and not narrow)),
        "Time",
    ]
    table = FittingTable([*([""] * lettered), "Input"], names)
    for label, stem, read, came in zip(labels, join.stems, join.read, join.came, strict=True):
        cells = {
            "Rows": compact(read),
            "Came": compact(came),
            "In SteM": compact(stem.rows),
            "Size": size(stem.bytes),
            "Built": compact(stem.builds),
            "Probes": compact(stem.probes),
            "Matches": compact(stem.matches),
            "Each": ratio(stem.fanout),
            "Killed": compact(stem.killed),
            "Bounced": compact(stem.bounced),
            "Time": duration(stem.seconds),
        }
        head = [label] * lettered
        table.add_row(*head, stem.relation, *(cells[name] for name in names))
    return table


def _predicates(
    block: BlockReport, record: TaskRecord, *, narrow: bool
) -> Iterator[RenderableType]:
    rows = block.numbered()
    nulls = any(row.record.null for row in rows)
    errors = any(row.record.errors_held for row in rows)
    names = ["Seen", "TRUE", *(["NULL"] * nulls), *(["Errors"] * errors), "A row", "Time"]
    table = FittingTable(["#", "Predicate"], names)
    for row in rows:
        predicate = row.record
        cells = [
            _seen(row, narrow=narrow) if record.join is None else compact(predicate.rows_in),
            percent(predicate.passed, predicate.rows_in),
            *([percent(predicate.null, predicate.rows_in)] * nulls),
            *([compact(predicate.errors_held)] * errors),
            NOTHING if predicate.seconds_per_row is None else duration(predicate.seconds_per_row),
            duration(predicate.seconds),
        ]
        if not predicate.rows_in:
            cells[0] = "never" if narrow else "never reached"
        table.add_row(row.number, row.text, *cells)
    yield table
    if errors and record.join is None:
        raised = sum(predicate.errors_held for predicate in record.predicates)
        dropped = sum(predicate.errors_dropped for predicate in record.predicates)
        yield Text(
            f"{counted(raised, 'row')} raised an error; {count(dropped)} of them "
            "were decided by another predicate"
        )


def _seen(row: NumberedPredicate, *, narrow: bool) -> str:
    share = percent(row.record.rows_in, row.within)
    return share if narrow else f"{compact(row.record.rows_in)} ({share})"


def remembered_text(function: FunctionRecord) -> str:
    """Return what was remembered of a function, in a sentence."""
    rows = compacted(function.remembered, "row")
    return (
        f"{one_line(function.name)}: {rows} had arguments of before; "
        f"{compact(function.distinct)} are remembered, in {size(function.memory_bytes)}"
    )


def _without_calls(functions: Sequence[FunctionRecord]) -> Iterator[str]:
    """Return how many rows each function gave values for without a call, in sentences."""
    for each in functions:
        if each.remembered:
            yield remembered_text(each)
        if each.shared:
            rows = compacted(each.shared, "row")
            yield f"{one_line(each.name)}: {rows} shared a call that was made for another"


def _functions(record: TaskRecord) -> FittingTable:
    table = FittingTable(["Function"], ["Calls made", "Avoided", "", "Spared"])
    for function in record.functions:
        table.add_row(
            function.name,
            compact(function.calls),
            compact(function.avoided),
            percent(function.avoided, function.calls_possible),
            f"~{duration(function.seconds_spared)}" if function.calls else NOTHING,
        )
    return table


def _called(functions: Sequence[CalledFunction]) -> FittingTable:
    failed = any(function.failures for function in functions)
    money = any(function.unit for function in functions)
    names = ("Values", "Calls", *(["Failed"] * failed), "A call", *(["Spent"] * money))
    table = FittingTable(["Function"], names)
    for each in functions:
        table.add_row(
            each.name,
            compact(each.values),
            compact(each.calls),
            *([compact(each.failures)] * failed),
            duration(each.seconds / each.calls) if each.calls else NOTHING,
            *([each.money or NOTHING] * money),
        )
    return table


def _asked(tables: Sequence[AskedTable]) -> FittingTable:
    """Return what lookup tables were asked for, by whichever source."""
    several = any(len(each.by_source) > 1 for each in tables)
    strange = any(each.unmatched for each in tables)
    names = (
        *("Keys", "Requests", "Failed"),
        *(["Unmatched rows"] * strange),
        "At a time",
        *(["Keys by source"] * several),
    )
    table = FittingTable(["Table"], names)
    for each in tables:
        unmatched = [each.unmatched] * strange
        figures = (each.keys, each.requests, each.failures, *unmatched, each.at_a_time)
        table.add_row(each.name, *map(compact, figures), *([each.shares] * several))
    return table


def _orders(block: BlockReport, line: Timeline, *, ascii_only: bool) -> Table:
    table = plain_table("Order")
    table.add_column("Rows", justify="right", no_wrap=True)
    share = "Over" if line.bins < _BINS else "Share over"
    of_work = "" if line.bins < _BINS else " of work"
    table.add_column(f"{share} {duration(line.seconds)}{of_work}", no_wrap=True)
    total = sum(line.rows)
    for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True):
        style = "dim" if order == OTHER_ORDERS else "cyan"
        picture = Text(_sparkline(shares, ascii_only=ascii_only), style=style)
        table.add_row(_cut(order_name(order, labels=block.labels)), percent(rows, total), picture)
    return table


def _sparkline(shares: Sequence[float], *, ascii_only: bool) -> str:
    ramp = " .:-=+*#%" if ascii_only else " ▁▂▃▄▅▆▇█"
    steps = len(ramp) - 1
    # Whatever is there at all is seen: only a share of exactly 0 is left blank.
    return "".join(ramp[max(1, round(share * steps))] if share else " " for share in shares)


def _changes(record: TaskRecord, line: Timeline) -> Iterator[Text]:
    seen = len(record.changes) + record.changes_dropped
    listed = largest_changes(record.changes, _LISTED_CHANGES)
    heading = f"{seen:,} change{'' if seen == 1 else 's'} noticed"
    yield Text(heading + ("" if seen == len(listed) else f", the largest {len(listed)}:"))
    for change in listed:
        yield Text(f"  at {duration(line.busy.at(change.when))}: {change_text(change)}")


def _cut(text: str) -> Text:
    """Return a text that is cut at the width of its column instead of being wrapped."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")
