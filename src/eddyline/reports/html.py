"""The report as HTML: a fragment for a notebook, or a page that needs nothing else.

To import this module takes some 60 ms, for jinja2, so it is imported when a page is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined

from eddyline.reports.drawing import COLOURS
from eddyline.reports.figures import PAGE, TILES, Reach, Share
from eddyline.reports.html_pictures import (
    Picture,
    calls_picture,
    data_uri,
    join_pictures,
    orders_picture,
    waits_picture,
)
from eddyline.reports.records import TaskRecord
from eddyline.reports.sections import (
    ADVICE,
    NO_BLOCKS,
    REPORTED,
    WAITS,
    BlockSections,
    ReportSections,
)
from eddyline.reports.tables import Column, Room, TableSection
from eddyline.reports.timeline import Timeline
from eddyline.reports.wording import count, one_line, percent, shortened

_COLOURS = "".join(f"--{name}:light-dark({a},{b});" for name, (a, b) in COLOURS.items())

_TEXT_MOST = 90  # letters of a predicate's text; the rest is shown on hovering
_BINS = 96  # seven pixels each in a picture of the usual width
_NARROW_BINS = 36  # nine each in a narrow one, which may not double the size of a page
_TABLE_BINS = 8


def page(sections: ReportSections) -> str:
    """Return a whole HTML document."""
    return _rendered("page.html.j2", sections, images=False)


def fragment(sections: ReportSections) -> str:
    """Return the report as one element that brings its style along.

    Its pictures are images, which stay in a notebook that is not trusted; in a page they are part
    of it and say more on hovering.
    """
    return _rendered("fragment.html.j2", sections, images=True)


def page_of_several(reports: Sequence[tuple[str, str, ReportSections]]) -> str:
    """Return a whole HTML document of several reports, each under a title with a line about it."""
    fragments = [
        _rendered("fragment.html.j2", sections, images=False, title=title, about=about)
        for title, about, sections in reports
    ]
    return _TEMPLATES.get_template("pages.html.j2").render(fragments=fragments)


def tables_fragment(title: str, tables: Sequence[TableSection], without: str) -> str:
    """Return tables alone as one element; ``without`` is what stands there where there are none."""
    return _TEMPLATES.get_template("tables.html.j2").render(
        title=title, tables=tables, without=without, colours=_COLOURS
    )


def _rendered(
    template: str,
    sections: ReportSections,
    *,
    images: bool,
    title: str = "Routing report",
    about: str = "",
) -> str:
    return _TEMPLATES.get_template(template).render(
        report=sections,
        blocks=[_block_view(block) for block in sections.blocks],
        no_blocks=f"{NO_BLOCKS} {REPORTED}",
        waits_heading=WAITS,
        waits=None if sections.waits is None else waits_picture(sections.waits),
        advice_heading=ADVICE,
        images=images,
        title=title,
        about=about,
        colours=_COLOURS,
    )


@dataclass(frozen=True, slots=True)
class BlockView:
    """The contents of a block's template: texts, tables and pictures.

    The picture of the orders has a table beside it, for those who cannot see it.
    """

    sections: BlockSections
    when: str
    orders: Picture | None = None
    orders_table: TableSection | None = None
    pictures: tuple[Picture, ...] = ()


def _block_view(sections: BlockSections) -> BlockView:
    block, run, record = sections.block, sections.run, sections.block.record
    when = "" if record is None else _when(record)
    if run is None or record is None:
        return BlockView(sections, when)
    join = record.join
    pictures = tuple([calls_picture(block)] if join is None else join_pictures(block, join))
    orders, changes = run.orders, () if run.changes is None else run.changes.changes
    if orders is None:
        return BlockView(sections, when, pictures=pictures)
    picture = orders_picture(block, orders.over(_BINS), orders.over(_NARROW_BINS), changes)
    table = _orders_table(orders.labels, orders.over(_TABLE_BINS))
    return BlockView(sections, when, picture, table, pictures)


def _orders_table(labels: tuple[str, ...], line: Timeline) -> TableSection:
    total = sum(line.rows)
    bins = zip(line.edges[1:], zip(*line.shares, strict=True), strict=True)
    names = tuple(PAGE.order(order, labels) for order in line.orders)
    columns = (
        Column("Order", names, "words"),
        Column("Rows", tuple(count(rows) for rows in line.rows)),
        Column("Share", tuple(Share(rows, total) for rows in line.rows)),
        *(
            Column(
                f"to {PAGE.time(edge)}",
                tuple(f"{share:.0%}" if share else "" for share in shares),
            )
            for edge, shares in bins
        ),
    )
    return TableSection("", columns)


def _when(record: TaskRecord) -> str:
    if not record.orders:
        return ""
    start, end = (
        datetime.fromtimestamp(moment, UTC)
        for moment in (record.orders[0].start, max(piece.end for piece in record.orders))
    )
    until = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{start:%Y-%m-%d %H:%M:%S} to {until}"


def _page_columns(table: TableSection) -> Iterator[Column]:
    """Yield the columns of a table, spelled; a reach takes two, so that its digits are aligned."""
    for column in table.standing(Room.PAGE):
        reached = [cell for cell in column.cells if isinstance(cell, Reach)]
        counts = [Reach(cell.rows) for cell in reached] or column.cells
        yield replace(column, cells=tuple(map(PAGE.figure, counts)))
        if any(cell.of is not None for cell in reached):
            yield Column("of all", tuple(percent(cell.rows, cell.of or 0) for cell in reached))


def _environment() -> Environment:
    templates = Environment(
        loader=PackageLoader("eddyline.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["data_uri"] = data_uri
    templates.filters["one_line"] = one_line
    templates.filters["shortened"] = partial(shortened, limit=_TEXT_MOST)
    templates.filters["page_columns"] = _page_columns
    templates.filters["tile"] = TILES.figure
    templates.filters["sentence"] = TILES.sentence
    return templates


_TEMPLATES = _environment()
