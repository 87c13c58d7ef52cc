"""The report as HTML: a fragment for a notebook, or a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from eddyline.reports.bars import Bar, Part, bar_chart
from eddyline.reports.block_report import BlockReport, NumberedPredicate
from eddyline.reports.html_joins import inputs_table, join_tiles, skew_picture, steps_picture
from eddyline.reports.html_parts import BAR_TEXT_MOST, WIDTH, table, text, tiles, time, units
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
        rows = [[text(what), escape(one_line(why))] for what, why in left]
        whole = table(["What", "Why"], rows, words=(0, 1))
        parts.append(f"<section><h2>Left to Spark</h2>{whole}</section>")
    body = "\n".join(parts)
    return (
        f'<div class="eddyline">\n<style>{STYLE}</style>\n<h1>Routing report</h1>\n{body}\n</div>'
    )


def _block(place: int, block: BlockReport) -> str:
    seed = "" if block.seed is None else f", seed {block.seed}"
    head = (
        f"<h2>Block {place}: {text(block.title)}</h2>"
        f'<p class="sub">Policy {escape(block.policy)}{seed}{_when(block.record)}</p>'
    )
    record = block.record
    if record is None or not record.rows_in:
        texts = "".join(
            f"<li>{text(block.text_of(position))}</li>" for position in range(len(block.predicates))
        )
        note = NO_ACTION if record is None else NO_ROWS
        return f'<section>{head}<p class="note">{note}</p><ol>{texts}</ol></section>'
    line = timeline(record.orders, record.order_rows, bins=_BINS, top=_TOP_ORDERS)
    changes = largest_changes(record.changes, _MARKED_CHANGES)
    join = record.join
    parts = [head, _totals(record)]
    if join is not None:
        parts.append(inputs_table(block, join))
    if record.predicates:
        parts.append(_predicates(block, joins=join is not None))
    if line.bins:
        parts += [_orders_picture(block, line, changes), _orders_table(block, record)]
    parts.append(_changes(record, line, changes))
    if join is None:
        parts.append(_calls_picture(block))
    else:
        parts += [steps_picture(block, record, join), skew_picture(join)]
    parts.append(_functions(record))
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
    tasks = f"{count(record.tasks)} task{'' if record.tasks == 1 else 's'}"
    routing = f"{time(record.routing_seconds)}, {compact(record.decisions)} decisions"
    contents = [
        _rows_tile(record),
        *_calls_tiles(record),
        ("Time in the block", time(record.seconds), tasks),
        ("Routing", percent(record.routing_seconds, record.seconds), routing),
    ]
    if record.join is not None:
        contents += join_tiles(record.join)
    return tiles(contents)


def _rows_tile(record: TaskRecord) -> tuple[str, str, str]:
    rows_in, rows_out = compact(record.rows_in), compact(record.rows_out)
    if record.join is None:
        kept = percent(record.rows_out, record.rows_in)
        return "Rows kept", kept, f"{rows_out} of {rows_in}"
    return "Joined rows", rows_out, f"of {rows_in} rows of {len(record.join.stems)} inputs"


def _calls_tiles(record: TaskRecord) -> Iterator[tuple[str, str, str]]:
    possible = compact(record.calls_possible)
    if record.calls > record.calls_possible:
        yield "Calls made", compact(record.calls), f"{possible} in a fixed plan"
    elif record.calls_possible:
        avoided = f"{compact(record.calls_avoided)} of {possible}"
        yield "Calls avoided", percent(record.calls_avoided, record.calls_possible), avoided
        yield "Time spared", f"≈ {time(record.seconds_spared)}", "at the cost measured"


def _predicates(block: BlockReport, *, joins: bool) -> str:
    rows = []
    for row in block.numbered():
        predicate = row.record
        reached = predicate.rows_in > 0
        per_row = predicate.seconds_per_row
        # In a join block a row may come more than once, and what is not TRUE is one thing.
        of_all = [] if joins else [percent(predicate.rows_in, row.within)]
        not_true = [] if joins else [predicate.rejected, predicate.null]
        rows.append(
            [
                row.number,
                text(row.text),
                count(predicate.rows_in) if reached else "never reached",
                *of_all,
                percent(predicate.passed, predicate.rows_in),
                *(percent(part, predicate.rows_in) for part in not_true),
                _errors(row, joins=joins),
                NOTHING if per_row is None else time(per_row),
                time(predicate.seconds),
            ]
        )
    names = ["#", "Predicate", "Tuples seen" if joins else "Rows seen"]
    names += ["TRUE"] if joins else ["of all", "TRUE", "FALSE", "NULL"]
    names += ["Errors", "A tuple" if joins else "A row", "Time"]
    return "<h3>Predicates</h3>" + table(names, rows, words=(1,))


def _errors(row: NumberedPredicate, *, joins: bool) -> str:
    held, dropped = row.record.errors_held, row.record.errors_dropped
    told = held and not row.nested and not joins
    return f"{count(held)} ({count(dropped)} dropped)" if told else count(held)


def _orders_picture(block: BlockReport, line: Timeline, changes: Sequence[Change]) -> str:
    total = sum(line.rows)
    bands = [
        Band(
            name=f"{_order(block, order)} ({percent(rows, total)})",
            shares=shares,
            rest=order == OTHER_ORDERS,
            hint=_order_in_words(block, order),
        )
        for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True)
    ]
    factor, unit = _clock(line.seconds)
    marks = [
        Mark(line.busy.at(change.when) * factor, str(place), units(change_text(change, _ARROW)))
        for place, change in enumerate(changes, start=1)
    ]
    picture = share_chart(
        bands,
        [edge * factor for edge in line.edges],
        f"Order of the {'joins and ' * bool(block.inputs)}predicates over the run",
        f"{unit} at work",
        "share of the rows",
        description="Shares of the rows by order: " + ", ".join(band.name for band in bands),
        marks=marks,
        width=WIDTH,
        height=_ORDERS_HEIGHT,
    )
    if block.inputs:
        caption = (
            "Each colour is one order: the input that a row was read from, and then the "
            "predicates, numbered as above, and the inputs that it was joined with. "
        )
    else:
        caption = "Each colour is one order in which rows met the predicates, numbered as above. "
    caption += "Time counts while a task was inside the block."
    if marks:
        caption += " Dashed lines are the changes noticed, listed below."
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _orders_table(block: BlockReport, record: TaskRecord) -> str:
    line = timeline(record.orders, record.order_rows, bins=_TABLE_BINS, top=_TOP_ORDERS)
    total = sum(line.rows)
    rows = [
        [escape(_order(block, order)), count(rows), percent(rows, total)]
        + [f"{share:.0%}" if share else "" for share in shares]
        for order, rows, shares in zip(line.orders, line.rows, line.shares, strict=True)
    ]
    ends = [f"to {time(edge)}" for edge in line.edges[1:]]
    whole = table(["Order", "Rows", "Share", *ends], rows, words=(0,))
    return f"<details><summary>The picture as a table</summary>{whole}</details>"


def _changes(record: TaskRecord, line: Timeline, changes: Sequence[Change]) -> str:
    seen = len(record.changes) + record.changes_dropped
    if not seen:
        return ""
    rows = [
        [
            str(place),
            time(line.busy.at(change.when)),
            f"{change.predicate + 1}",
            str(change.quantity),
            units(quantity_text(change.quantity, change.old)),
            units(quantity_text(change.quantity, change.new)),
        ]
        for place, change in enumerate(changes, start=1)
    ]
    more = "" if seen == len(changes) else f" (the largest {len(changes)} of {count(seen)})"
    names = ["Mark", "After", "Predicate", "Of its", "From", "To"]
    return f"<h3>Changes noticed{more}</h3>" + table(names, rows, words=())


def _calls_picture(block: BlockReport) -> str:
    bars = []
    for row in block.numbered():
        seen = row.record.rows_in
        spared = row.within - seen
        bars.append(
            Bar(
                label=f"{row.number}: {shortened(row.text, BAR_TEXT_MOST)}",
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
        width=WIDTH,
    )
    return f"<figure>{picture}</figure>"


def _functions(record: TaskRecord) -> str:
    if not record.functions:
        return ""
    rows = [
        [
            text(function.name),
            count(function.calls),
            count(function.avoided),
            percent(function.avoided, function.calls_possible),
            time(function.seconds),
            f"≈ {time(function.seconds_spared)}" if function.calls else NOTHING,
        ]
        for function in record.functions
    ]
    names = ["Function", "Calls made", "Calls avoided", "avoided", "Time", "Time spared"]
    note = "Avoided: compared with calling every function on every row, as a fixed plan does. "
    if record.join is not None:
        note = (
            "Avoided: compared with calling functions over one input on each of its rows, as a "
            "fixed plan does. Of functions over several inputs no plan's number is known, so none "
            "is said to be avoided. "
        )
    note += "Time spared is that number at the mean cost of the calls made."
    return f'<h3>User functions</h3>{table(names, rows, words=(0,))}<p class="sub">{note}</p>'


def _order(block: BlockReport, order: Order) -> str:
    return order_name(order, _ARROW, block.labels)


def _order_in_words(block: BlockReport, order: Order) -> str:
    if order == OTHER_ORDERS:
        return "all orders that were taken more rarely"
    labels = block.labels
    return "; then ".join(
        f"{labels[position]}: {shortened(block.text_of(position), BAR_TEXT_MOST)}"
        for position in order
    )


def _clock(seconds: float) -> tuple[float, str]:
    """Return the unit that a run of this length is best shown in, as a factor and a name."""
    units = ((7200, 1 / 3600, "hours"), (120, 1 / 60, "minutes"), (1, 1.0, "seconds"))
    for least, factor, name in units:
        if seconds >= least:
            return factor, name
    return 1000.0, "milliseconds"
