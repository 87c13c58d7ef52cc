"""The report as HTML: a fragment for a notebook, or a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from eddyline.reports.bars import Bar, Part, bar_chart
from eddyline.reports.block_report import BlockReport, NumberedPredicate
from eddyline.reports.html_style import STYLE
from eddyline.reports.merging import largest_changes
from eddyline.reports.records import (
    OTHER_ORDERS,
    Change,
    Order,
    TaskRecord,
)
from eddyline.reports.svg import Band, Mark, share_chart
from eddyline.reports.timeline import Timeline, timeline
from eddyline.reports.wording import (
    NO_ACTION,
    NO_BLOCKS,
    NO_ROWS,
    NOTHING,
    change_text,
    compact,
    count,
    duration,
    one_line,
    order_name,
    percent,
    quantity_text,
    shortened,
)

_ARROW = "→"
_BINS = 96  # seven pixels each in a picture of the usual width
_TABLE_BINS = 8
_TOP_ORDERS = 6
_MARKED_CHANGES = 12  # more lines than that hide the picture
_TEXT_MOST = 90  # letters of a predicate's text; the rest is shown on hovering
_BAR_TEXT_MOST = 40
_WIDTH = 900.0
_ORDERS_HEIGHT = 340.0


def page(blocks: Sequence[BlockReport], left: Sequence[tuple[str, str]]) -> str:
    """Return a whole HTML document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Eddyline routing report</title>\n"
        "<style>:root{color-scheme:light dark}"
        "body{margin:0;background:light-dark(#ffffff,#15181c)}</style>\n</head>\n<body>\n"
        f"{fragment(blocks, left)}\n</body>\n</html>\n"
    )


def fragment(blocks: Sequence[BlockReport], left: Sequence[tuple[str, str]]) -> str:
    """Return the report as one element that brings its style along."""
    parts = [_block(place, block) for place, block in enumerate(blocks, start=1)]
    if not blocks:
        parts.append(f"<p>{NO_BLOCKS}</p>")
    if left:
        rows = [[_text(what, _TEXT_MOST), escape(one_line(why))] for what, why in left]
        table = _table(["What", "Why"], rows, words=(0, 1))
        parts.append(f"<section><h2>Left to Spark</h2>{table}</section>")
    body = "\n".join(parts)
    return (
        f'<div class="eddyline">\n<style>{STYLE}</style>\n<h1>Routing report</h1>\n{body}\n</div>'
    )


def _block(place: int, block: BlockReport) -> str:
    seed = "" if block.seed is None else f", seed {block.seed}"
    head = (
        f"<h2>Block {place}: {_text(block.title, _TEXT_MOST)}</h2>"
        f'<p class="sub">Policy {escape(block.policy)}{seed}{_when(block.record)}</p>'
    )
    record = block.record
    if record is None or not record.rows_in:
        texts = "".join(
            f"<li>{_text(block.text_of(position), _TEXT_MOST)}</li>"
            for position in range(len(block.predicates))
        )
        note = NO_ACTION if record is None else NO_ROWS
        return f'<section>{head}<p class="note">{note}</p><ol>{texts}</ol></section>'
    line = timeline(record.orders, record.order_rows, bins=_BINS, top=_TOP_ORDERS)
    changes = largest_changes(record.changes, _MARKED_CHANGES)
    parts = [head, _totals(record), _predicates(block)]
    if line.bins:
        parts += [_orders_picture(block, line, changes), _orders_table(record)]
    parts += [_changes(record, line, changes), _calls_picture(block), _functions(record)]
    return "<section>" + "\n".join(parts) + "</section>"


def _when(record: TaskRecord | None) -> str:
    if record is None or not record.orders:
        return ""
    start, end = (
        datetime.fromtimestamp(moment, UTC)
        for moment in (record.orders[0].start, max(piece.end for piece in record.orders))
    )
    until = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"; ran {start:%Y-%m-%d %H:%M:%S} to {until} UTC"


def _totals(record: TaskRecord) -> str:
    tiles = [
        (
            "Rows kept",
            percent(record.rows_out, record.rows_in),
            f"{compact(record.rows_out)} of {compact(record.rows_in)}",
        ),
        (
            "Calls avoided",
            percent(record.calls_avoided, record.calls_possible),
            f"{compact(record.calls_avoided)} of {compact(record.calls_possible)}",
        ),
        ("Time spared", f"≈ {_time(record.seconds_spared)}", "at the cost measured"),
        (
            "Time in the block",
            _time(record.seconds),
            f"{count(record.tasks)} task{'' if record.tasks == 1 else 's'}",
        ),
        (
            "Routing",
            percent(record.routing_seconds, record.seconds),
            f"{_time(record.routing_seconds)}, {compact(record.decisions)} decisions",
        ),
    ]
    return (
        '<dl class="tiles">'
        + "".join(
            f"<div><dt>{name}</dt><dd><b>{value}</b><span>{note}</span></dd></div>"
            for name, value, note in tiles
        )
        + "</dl>"
    )


def _predicates(block: BlockReport) -> str:
    rows = []
    for row in block.numbered():
        predicate = row.record
        reached = predicate.rows_in > 0
        per_row = predicate.seconds_per_row
        rows.append(
            [
                row.number,
                _text(row.text, _TEXT_MOST),
                count(predicate.rows_in) if reached else "never reached",
                percent(predicate.rows_in, row.within),
                percent(predicate.passed, predicate.rows_in),
                percent(predicate.rejected, predicate.rows_in),
                percent(predicate.null, predicate.rows_in),
                _errors(row),
                NOTHING if per_row is None else _time(per_row),
                _time(predicate.seconds),
            ]
        )
    names = ["#", "Predicate", "Rows seen", "of all", "TRUE", "FALSE", "NULL", "Errors"]
    return "<h3>Predicates</h3>" + _table([*names, "A row", "Time"], rows, words=(1,))


def _errors(row: NumberedPredicate) -> str:
    held, dropped = row.record.errors_held, row.record.errors_dropped
    return count(held) if row.nested or not held else f"{count(held)} ({count(dropped)} dropped)"


def _orders_picture(block: BlockReport, line: Timeline, changes: Sequence[Change]) -> str:
    total = sum(line.rows)
    bands = [
        Band(
            name=f"{_order(order)} ({percent(rows, total)})",
            shares=shares,
            rest=order == OTHER_ORDERS,
            hint=_order_in_words(block, order),
        )
        for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True)
    ]
    factor, unit = _clock(line.seconds)
    marks = [
        Mark(line.busy.at(change.when) * factor, str(place), _units(change_text(change, _ARROW)))
        for place, change in enumerate(changes, start=1)
    ]
    picture = share_chart(
        bands,
        [edge * factor for edge in line.edges],
        "Order of the predicates over the run",
        f"{unit} at work",
        "share of the rows",
        description="Shares of the rows by order: " + ", ".join(band.name for band in bands),
        marks=marks,
        width=_WIDTH,
        height=_ORDERS_HEIGHT,
    )
    caption = (
        "Each colour is one order in which rows met the predicates, numbered as above. "
        "Time counts while a task was inside the block."
    )
    if marks:
        caption += " Dashed lines are the changes noticed, listed below."
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _orders_table(record: TaskRecord) -> str:
    line = timeline(record.orders, record.order_rows, bins=_TABLE_BINS, top=_TOP_ORDERS)
    total = sum(line.rows)
    rows = [
        [_order(order), count(rows), percent(rows, total)]
        + [f"{share:.0%}" if share else "" for share in shares]
        for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True)
    ]
    ends = [f"to {_time(edge)}" for edge in line.edges[1:]]
    table = _table(["Order", "Rows", "Share", *ends], rows, words=(0,))
    return f"<details><summary>The picture as a table</summary>{table}</details>"


def _changes(record: TaskRecord, line: Timeline, changes: Sequence[Change]) -> str:
    seen = len(record.changes) + record.changes_dropped
    if not seen:
        return ""
    rows = [
        [
            str(place),
            _time(line.busy.at(change.when)),
            f"{change.predicate + 1}",
            str(change.quantity),
            _units(quantity_text(change.quantity, change.old)),
            _units(quantity_text(change.quantity, change.new)),
        ]
        for place, change in enumerate(changes, start=1)
    ]
    more = "" if seen == len(changes) else f" (the largest {len(changes)} of {count(seen)})"
    names = ["Mark", "After", "Predicate", "Of its", "From", "To"]
    return f"<h3>Changes noticed{more}</h3>" + _table(names, rows, words=())


def _calls_picture(block: BlockReport) -> str:
    bars = []
    for row in block.numbered():
        seen = row.record.rows_in
        spared = row.within - seen
        bars.append(
            Bar(
                label=f"{row.number}: {shortened(row.text, _BAR_TEXT_MOST)}",
                values=(seen, spared),
                note=f"{percent(spared, row.within)} spared" if seen else "never reached",
                hint=f"{row.number}: {row.text}",
            )
        )
    picture = bar_chart(
        bars,
        [Part("evaluated"), Part("spared", rest=True)],
        "Rows that each predicate was evaluated on",
        "rows",
        width=_WIDTH,
    )
    return f"<figure>{picture}</figure>"


def _functions(record: TaskRecord) -> str:
    if not record.functions:
        return ""
    rows = [
        [
            _text(function.name, _TEXT_MOST),
            count(function.calls),
            count(function.avoided),
            percent(function.avoided, function.calls_possible),
            _time(function.seconds),
            f"≈ {_time(function.seconds_spared)}" if function.calls else NOTHING,
        ]
        for function in record.functions
    ]
    names = ["Function", "Calls made", "Calls avoided", "avoided", "Time", "Time spared"]
    note = (
        '<p class="sub">Avoided: compared with calling every function on every row, as a fixed '
        "plan does. Time spared is that number at the mean cost of the calls made.</p>"
    )
    return f"<h3>User functions</h3>{_table(names, rows, words=(0,))}{note}"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int]) -> str:
    """Return a table from cells of HTML; columns ``words`` are text, the others figures."""
    css = [' class="w"' if column in words else "" for column in range(len(names))]
    head = "".join(
        f'<th scope="col"{look}>{name}</th>' for name, look in zip(names, css, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{look}>{cell}</td>" for cell, look in zip(row, css, strict=True))
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _text(text: str, limit: int) -> str:
    whole, short = one_line(text), shortened(text, limit)
    hint = "" if whole == short else f' title="{escape(whole)}"'
    return f"<span{hint}>{escape(short)}</span>"


def _order(order: Order) -> str:
    return order_name(order, _ARROW)


def _order_in_words(block: BlockReport, order: Order) -> str:
    if order == OTHER_ORDERS:
        return "all orders that were taken more rarely"
    return "; then ".join(
        f"{position + 1}: {shortened(block.text_of(position), _BAR_TEXT_MOST)}"
        for position in order
    )


def _clock(seconds: float) -> tuple[float, str]:
    """Return the unit that a run of this length is best shown in, as a factor and a name."""
    units = ((7200, 1 / 3600, "hours"), (120, 1 / 60, "minutes"), (1, 1.0, "seconds"))
    for least, factor, name in units:
        if seconds >= least:
            return factor, name
    return 1000.0, "milliseconds"


def _time(seconds: float) -> str:
    return _units(duration(seconds))


def _units(text: str) -> str:
    return text.replace(" us", " µs")
