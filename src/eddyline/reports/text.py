"""The report as text for a terminal, a log or a plain ``print``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eddyline.reports.figures import TERMINAL
from eddyline.reports.quota_waits import QuotaWaits
from eddyline.reports.records import OTHER_ORDERS
from eddyline.reports.sections import (
    ADVICE,
    NO_BLOCKS,
    REPORTED,
    WAITS,
    BlockSections,
    ChangesSection,
    OrdersSection,
    ReportSections,
)
from eddyline.reports.tables import Room, TableSection
from eddyline.reports.terminal_tables import cut, plain_table, terminal_table
from eddyline.reports.wording import one_line, percent

_LISTED_CHANGES = 6
_INDENT = 2
_WIDE = 100  # columns, from which on all that terminals show has room
_NARROW = 60  # columns, below which pictures of shares are the shortest
_WIDE_BINS, _BINS, _FEW_BINS = 40, 24, 12  # signs of a picture of shares


@dataclass(frozen=True, slots=True)
class ReportText:
    """The report as a rich renderable: as wide as the console, coloured only on a terminal."""

    sections: ReportSections

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield headings, sentences and tables, top to bottom."""
        sections = self.sections
        if not sections.blocks:
            yield Text(NO_BLOCKS, style="bold")
            yield Text(REPORTED)
        if sections.compared:
            yield Text(f"{sections.compared}\n", style="bold")
        for place, block in enumerate(sections.blocks, start=1):
            if place > 1:
                yield Text()
            yield _title(place, block)
            for part in _block(block, options):
                yield _indented(part)
        yield from _beside(sections, options)
        if sections.advice:
            yield Text()
            yield Text(ADVICE, style="bold")
            for sentence in sections.advice:
                yield _indented(Text(sentence))


@dataclass(frozen=True, slots=True)
class TablesText:
    """Tables alone as a rich renderable, each under its heading."""

    tables: Sequence[TableSection]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield headings and tables, top to bottom."""
        for place, table in enumerate(self.tables):
            if place:
                yield Text()
            yield Text(table.heading, style="bold")
            for part in _table(table, _room(options)):
                yield _indented(part)


def plain(sections: ReportSections, width: int) -> str:
    """Return the report as text without colours, ``width`` columns wide, no line end at its end."""
    return _plain(ReportText(sections), width)


def plain_tables(tables: Sequence[TableSection], width: int) -> str:
    """Return tables in the same way; empty where there are none."""
    return _plain(TablesText(tables), width)


def _plain(shown: RenderableType, width: int) -> str:
    out = StringIO()
    # In a notebook rich would show it below the cell and write nothing.
    console = Console(
        file=out, width=width, color_system=None, force_terminal=False, force_jupyter=False
    )
    console.print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _title(place: int, sections: BlockSections) -> Text:
    block = sections.block
    seed = "" if block.seed is None else f", seed {block.seed}"
    return Text.assemble(
        (f"Block {place}: {one_line(block.title)}", "bold"),
        (f"  (policy {one_line(block.policy)}{seed})", "dim"),
    )


def _block(sections: BlockSections, options: ConsoleOptions) -> Iterator[RenderableType]:
    block, run = sections.block, sections.run
    if run is None:
        yield Text(sections.note, style="yellow")
        for position in range(len(block.predicates)):
            yield cut(f"{position + 1} {block.text_of(position)}")
        return
    for headline in run.headlines:
        yield Text(TERMINAL.sentence(headline.sentence))
    for table in (run.inputs, run.predicates, run.functions, run.measured):
        if table is not None:
            yield Text()
            yield from _table(table, _room(options))
    if run.orders is not None:
        yield Text()
        yield _orders(run.orders, options)
    if run.changes is not None:
        yield Text()
        yield from _changes(run.changes)


def _beside(sections: ReportSections, options: ConsoleOptions) -> Iterator[RenderableType]:
    for table in sections.beside:
        yield Text()
        yield Text(table.heading, style="bold")
        for part in _table(table, _room(options)):
            yield _indented(part)
    if sections.waits is not None:
        yield Text()
        yield Text(WAITS, style="bold")
        yield _indented(_waits(sections.waits, options))


def _room(options: ConsoleOptions) -> Room:
    return Room.WIDE if options.max_width >= _WIDE else Room.NARROW


def _table(section: TableSection, room: Room) -> Iterator[RenderableType]:
    yield terminal_table(section, room)
    for sentence in (*section.notes, *section.in_words):
        yield Text(sentence)


def _orders(section: OrdersSection, options: ConsoleOptions) -> Table:
    line = section.over(_bins(options))
    seconds = TERMINAL.time(line.seconds)
    brief = line.bins < _BINS
    table = plain_table("Order")
    table.add_column("Rows", justify="right", no_wrap=True)
    table.add_column(f"Over {seconds}" if brief else f"Share over {seconds} of work", no_wrap=True)
    total = sum(line.rows)
    for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True):
        style = "dim" if order == OTHER_ORDERS else "cyan"
        picture = Text(_sparkline(shares, ascii_only=options.ascii_only), style=style)
        name = TERMINAL.order(order, section.labels)
        table.add_row(cut(name), percent(rows, total), picture)
    return table


def _waits(waits: QuotaWaits, options: ConsoleOptions) -> Table:
    bins = _bins(options)
    seconds = TERMINAL.time(waits.end - waits.start)
    table = plain_table("For")
    table.add_column("Waited", justify="right", no_wrap=True)
    table.add_column(f"Over {seconds}", no_wrap=True)
    for lane, (name, waited) in enumerate(zip(waits.names, waits.seconds, strict=True)):
        picture = _sparkline(waits.shares(lane, bins), ascii_only=options.ascii_only)
        table.add_row(cut(name), TERMINAL.time(waited), Text(picture, style="yellow"))
    return table


def _bins(options: ConsoleOptions) -> int:
    if options.max_width >= _WIDE:
        return _WIDE_BINS
    return _FEW_BINS if options.max_width < _NARROW else _BINS


def _sparkline(shares: Sequence[float], *, ascii_only: bool) -> str:
    ramp = " .:-=+*#%" if ascii_only else " ▁▂▃▄▅▆▇█"
    steps = len(ramp) - 1
    # The smallest share is visible: only one of exactly 0 is left blank.
    return "".join(ramp[max(1, round(share * steps))] if share else " " for share in shares)


def _changes(section: ChangesSection) -> Iterator[Text]:
    listed = section.largest(_LISTED_CHANGES)
    yield Text(listed.heading + ":" * (len(listed.changes) < listed.noticed))
    for after, change in zip(listed.after, listed.changes, strict=True):
        yield Text(f"  at {TERMINAL.figure(after)}: {TERMINAL.change(change)}")


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, _INDENT))
