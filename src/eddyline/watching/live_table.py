"""A watched query as a table that changes: what has come, and from where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from eddyline.reports.wording import counted
from eddyline.watching.running_aggregates import Estimates

LARGE = 1000
"""From here on digits after the point are left out."""

BAR = 20
"""Signs of a bar of progress."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What is shown of a relation: ``keys`` were asked for where it is looked up.

    ``units`` are how many random units are joined, and of how many, where it is read in these, and
    ``rate`` is its part of what is read now.
    """

    name: str
    rows: int
    ended: bool
    keys: int | None
    units: tuple[int, int] | None = None
    rate: float | None = None


def live_table(
    rows: pa.Table,
    estimates: Estimates | None,
    sources: Sequence[SourceLine],
    *,
    total: int,
    seconds: float,
    state: str,
) -> RenderableType:
    """Return what a person sees: the last ``rows``, or the estimates, and the progress below.

    ``total`` rows have come in so many ``seconds``; ``state`` is a word such as "running".
    """
    above = _estimates(estimates) if estimates is not None else _rows(rows)
    return Group(above, _headline(estimates, total, seconds, state), _sources(sources))


def _rows(rows: pa.Table) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for field in rows.schema:
        table.add_column(field.name, justify=_justified(field.type))
    for row in rows.to_pylist():
        table.add_row(*(Text(_text(value), overflow="ellipsis") for value in row.values()))
    return table


def _estimates(estimates: Estimates) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = estimates.table
    names = shown.column_names
    bounds = {name for name in names if _is_bound(name, names)}
    for name in names:
        if name not in bounds:
            table.add_column(name, justify=_justified(shown.schema.field(name).type))
    for row in shown.to_pylist():
        cells = []
        for name in names:
            if name in bounds:
                continue
            text = _text(row[name])
            if name in estimates.so_far:
                text += " so far"
            elif f"{name}_low" in bounds:
                text += _margin(row[f"{name}_low"], row[f"{name}_high"], exact=estimates.exact)
            cells.append(Text(text))
        table.add_row(*cells)
    return table


def _is_bound(name: str, names: Sequence[str]) -> bool:
    base, mark, end = name.rpartition("_")
    return (
        bool(mark)
        and end in {"low", "high"}
        and {base, f"{base}_low", f"{base}_high"} <= set(names)
    )


def _margin(low: float | None, high: float | None, *, exact: bool) -> str:
    if exact:
        return ""
    if low is None or high is None:
        return " ± ?"
    return f" ± {_text((float(high) - float(low)) / 2)}"


def _headline(estimates: Estimates | None, total: int, seconds: float, state: str) -> Text:
    if estimates is None:
        return Text(f"{counted(total, 'row')} in {seconds:.1f} s, {state}", style="bold")
    if estimates.exact:
        return Text(f"exact, in {seconds:.1f} s", style="bold")
    done = round(estimates.fraction * BAR)
    bar = "█" * done + "░" * (BAR - done)
    level = f"{estimates.confidence:.0%}"
    return Text(
        f"{bar} {estimates.fraction:.0%} in {seconds:.1f} s, {state}; ± holds for {level}",
        style="bold",
    )


def _sources(sources: Sequence[SourceLine]) -> Table:
    table = Table.grid(padding=(0, 2))
    for source in sources:
        mark = Text("✓", style="green") if source.ended else Text("…")
        table.add_row(
            mark, Text(source.name), Text(counted(source.rows, "row")), Text(_how_read(source))
        )
    return table


def _how_read(source: SourceLine) -> str:
    if source.keys is not None:
        return f"{counted(source.keys, 'key')} asked for"
    if source.units is None:
        return ""
    done, of = source.units
    rate = "" if source.rate is None else f", {source.rate:.0%} of what is read now"
    return f"{done} of {counted(of, 'unit')}{rate}"


def _justified(kind: pa.DataType) -> JustifyMethod:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "right" if number else "left"


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < LARGE else f"{value:,.0f}"
    return "".join(sign if sign.isprintable() else " " for sign in str(value))
