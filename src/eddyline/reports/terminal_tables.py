"""Tables that fit: on a narrow terminal names stay and figures go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from eddyline.reports.figures import BRIEF, TERMINAL
from eddyline.reports.tables import Room, TableSection
from eddyline.reports.wording import one_line

NAME_ROOM: Final = 22
"""Columns that a name may take before figures do; longer ones get what is left."""

_GAP = 2  # columns between two of the table's


class FittingTable:
    """Names, and figures beside them; where room ends, figures on the right are left out.

    The first figure always stays. A name that is longer than its column is cut.
    """

    def __init__(self, names: Sequence[str], figures: Sequence[str]) -> None:
        """The last column of ``names`` is the one that gives way."""
        self._names = tuple(names)
        self._figures = tuple(figures)
        self._rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str) -> None:
        """Add a row: a text for each name and figure."""
        if len(cells) != len(self._names) + len(self._figures):
            raise ValueError(f"{len(cells)} cells for {len(self._names)} + {len(self._figures)}")
        self._rows.append(tuple(map(one_line, cells)))

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the table as wide as there is room."""
        names = len(self._names)
        shown = names + self._fitting(options.max_width)
        table = plain_table(*self._names)
        for figure in self._figures[: shown - names]:
            table.add_column(figure, justify="right", no_wrap=True)
        for row in self._rows:
            table.add_row(*map(cut, row[:names]), *row[names:shown])
        yield table

    def _fitting(self, width: int) -> int:
        """Return how many figures fit."""
        heads = (*self._names, *self._figures)
        widths = [
            max(map(cell_len, (head, *(row[place] for row in self._rows))))
            for place, head in enumerate(heads)
        ]
        last = len(self._names) - 1
        widths[last] = min(widths[last], NAME_ROOM)
        used = sum(widths[: last + 1]) + _GAP * last
        fitting = 0
        for figure in widths[last + 1 :]:
            used += _GAP + figure
            if used > width and fitting:
                break
            fitting += 1
        return fitting


def terminal_table(section: TableSection, room: Room) -> RenderableType:
    """Return a table of a report: its names, and as many of its figures as fit."""
    columns = section.standing(room)
    heads = [column.name if column.short is None else column.short for column in columns]
    spelling = TERMINAL if room >= Room.WIDE else BRIEF
    rows = zip(*(map(spelling.figure, column.cells) for column in columns), strict=True)
    if any(column.kind == "words" for column in columns):
        sentences = plain_table(*heads)
        for row in rows:
            cells = zip(columns, row, strict=True)
            sentences.add_row(
                *(Text(cell) if column.kind == "words" else cut(cell) for column, cell in cells)
            )
        return sentences
    names = next(place for place, column in enumerate(columns) if column.kind == "figures")
    table = FittingTable(heads[:names], heads[names:])
    for row in rows:
        table.add_row(*row)
    return table


def plain_table(*columns: str) -> Table:
    """Return a table without edges, which would be lines of blanks above and below."""
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim"
    )
    for column in columns:
        table.add_column(column)
    return table


def cut(text: str) -> Text:
    """Return a text that is cut at the width of its column instead of being wrapped."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")
