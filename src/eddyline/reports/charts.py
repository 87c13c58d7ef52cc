"""Charts as SVG text: shares over the course of something, lying bars, standing columns.

They need nothing but this package, look right on light paper wherever SVG is
shown, and say in words what they show (see :mod:`eddyline.reports.drawing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from eddyline.reports.axes import Axis, Plot, framed
from eddyline.reports.drawing import (
    FONT_SIZE,
    GRID,
    INK,
    LINE,
    NARROW,
    Drawing,
    colour,
    fitted,
    text_width,
    wrapped,
)

_LEGEND_GAP = 14.0  # between the plot and its legend
_SWATCH = 20.0  # width of a legend's sample of colour, with its gap
_EDGE = 4.0  # free at the right edge
_LEGEND_MOST = 0.4  # of the width of the chart at most; a wider legend stands below the plot

_LABEL_MOST = 0.36  # of the width of the chart at most
_NOTE_MOST = 0.34
_BAR_GAP = 10.0
_BAR = 18.0  # thickness of a bar
_BETWEEN = 10.0  # from one label's bars to the next
_BAR_TICKS_ROOM = 44.0
_BAR_SWATCH = 14.0
_LABEL_LINES = 2  # of a label over its bar

_COLUMNS_MOST = 200  # columns; neighbours share one where there are more
_COLUMN_GAP = 0.15  # of a column's width, free between it and the next
_MEDIAN_EDGE = 8.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment worth a vertical line: where, a label of a few letters, and what it means."""

    x: float
    label: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A part of a whole over the bins of an axis: its name and its share in each bin, 0 to 1.

    ``rest`` draws it in grey; ``hint`` is shown on hovering.
    """

    name: str
    shares: Sequence[float]
    rest: bool = False
    hint: str = ""


def share_chart(
    bands: Sequence[Band],
    edges: Sequence[float],
    title: str,
    x_label: str,
    y_label: str = "share",
    *,
    description: str = "",
    marks: Sequence[Mark] = (),
    x_unit: str = "",
    width: float = 680.0,
    height: float = 300.0,
) -> str:
    """Draw how parts make up a whole in each bin of an axis, the first part at the bottom.

    ``edges`` are the ends of the bins in rising order, one more than each band
    has shares. A bin whose shares are all 0 stays blank. Returns an ``<svg>``
    element.
    """
    names = [band.name for band in bands]
    beside = _beside(names, width)
    legend = [wrapped(name, width - _SWATCH - _EDGE) for name in reversed(names)]
    room_below = 0.0 if beside else _LEGEND_GAP + LINE * sum(map(len, legend))
    described = description or _bands_in_words(names, x_label, y_label)
    drawing = Drawing(width, height + room_below, title, described)
    plot = framed(
        drawing,
        Axis(edges[0], edges[-1], x_unit),
        Axis(0.0, 100.0, " %"),
        x_label,
        y_label,
        beside or text_width("100") / 2 + _EDGE,  # the last label of the axis
        room_below,
    )
    at_x = [plot.x.pixel(edge) for edge in edges]
    floor = [0.0] * (len(edges) - 1)
    for place, band in enumerate(bands):
        ceiling = [low + 100 * share for low, share in zip(floor, band.shares, strict=True)]
        # One outline up the steps and back down, as single rectangles would show seams.
        above = _steps(at_x, [plot.y.pixel(min(value, 100.0)) for value in ceiling])
        below = _steps(at_x, [plot.y.pixel(value) for value in floor])
        drawing.area(above + below[::-1], _band_look(place, band), band.hint or band.name)
        floor = ceiling
    _draw_marks(drawing, plot, marks)
    left, at = (plot.right + _LEGEND_GAP, plot.top + 8) if beside else (0.0, height + LINE / 2)
    for (place, band), lines in zip(reversed(list(enumerate(bands))), legend, strict=True):
        drawing.rectangle(left, at - 7, 14, 14, _band_look(place, band))
        for line in lines:
            drawing.text(left + _SWATCH, at + FONT_SIZE / 3, line, hint=band.hint or band.name)
            at += LINE
    return drawing.svg()


def _steps(edges: Sequence[float], heights: Sequence[float]) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for left, right, height in zip(edges, edges[1:], heights, strict=False):
        if points and points[-1][1] == height:
            points.pop()  # the step before goes on
        else:
            points.append((left, height))
        points.append((right, height))
    return points


def _draw_marks(drawing: Drawing, plot: Plot, marks: Sequence[Mark]) -> None:
    """Draw a line for every mark, and its label unless it would cover the one before."""
    free = plot.left - 1
    for mark in sorted(marks, key=lambda mark: mark.x):
        at = plot.x.pixel(mark.x)
        line = [[(at, plot.top - 4), (at, plot.bottom)]]
        drawing.line(line, ("ink", INK), thickness=1.4, dash="4 3", hint=mark.hint or mark.label)
        half = text_width(mark.label, 11) / 2 + 2
        if mark.label and at - half >= free:
            drawing.text(
                at, plot.top - 7, mark.label, anchor="middle", size=11, bold=True, hint=mark.hint
            )
            free = at + half


def _beside(names: Sequence[str], width: float) -> float:
    """Return the width of the legend at the right of the plot; 0.0 where it stands below."""
    room = _LEGEND_GAP + _SWATCH + max(map(text_width, names), default=0.0) + _EDGE
    return 0.0 if width < NARROW or room > width * _LEGEND_MOST else room


def _band_look(place: int, band: Band) -> tuple[str, str]:
    return colour(None if band.rest else place)


def _bands_in_words(names: Sequence[str], x_label: str, y_label: str) -> str:
    return f"{y_label} over {x_label}: {', '.join(names)}."


@dataclass(frozen=True, slots=True)
class BarPart:
    """What one colour of the bars means; ``rest`` draws it in grey."""

    name: str
    rest: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled bar with one value for each part, none negative.

    ``note`` is written at its right, ``hint`` is shown on hovering the label.
    """

    label: str
    values: Sequence[float]
    note: str = ""
    hint: str = ""


def bar_chart(
    bars: Sequence[Bar],
    parts: Sequence[BarPart],
    title: str,
    x_label: str,
    *,
    stacked: bool = True,
    description: str = "",
    x_unit: str = "",
    width: float = 680.0,
) -> str:
    """Draw lying bars from 0, the parts of each end to end, or below each other.

    In a narrow chart labels stand over their bars. Returns an ``<svg>`` element, as high as the
    bars need.
    """
    drawing = Drawing(width, 0.0, title, description or _bars_in_words(bars, parts))
    top = drawing.heading() + 15
    if len(parts) > 1:
        top = _draw_bar_legend(drawing, parts, top - 7) + 9
    narrow = width < NARROW
    labels = [wrapped(bar.label, width, most=_LABEL_LINES) if narrow else [] for bar in bars]
    high = _BAR * (1 if stacked else len(parts))
    starts, bottom = [], top
    for lines in labels:
        starts.append(bottom + len(lines) * LINE)
        bottom = starts[-1] + high + _BETWEEN
    left = 1.0 if narrow else _text_room([bar.label for bar in bars], width * _LABEL_MOST)
    right = width - _text_room([bar.note for bar in bars], width * _NOTE_MOST) - _BAR_GAP
    longest = (sum(bar.values) if stacked else max(bar.values, default=0.0) for bar in bars)
    axis = Axis(0.0, max(longest, default=0.0) or 1.0, x_unit, left, right)
    # No line runs through a label.
    spans = [(y - 4, y + high + 4) for y in starts] if narrow else [(top - 4, bottom)]
    for value, label in axis.ticks(max(2, int((right - left) / 75))):
        at = axis.pixel(value)
        drawing.line([[(at, start), (at, end)] for start, end in spans], ("grid", GRID))
        anchor = "start" if narrow and not value else "middle"
        drawing.text(at, bottom + 16, label, anchor=anchor, muted=True)
    for bar, lines, y in zip(bars, labels, starts, strict=True):
        hint = bar.hint or bar.label
        for place, line in enumerate(lines):
            drawing.text(0, y - 6 - (len(lines) - 1 - place) * LINE, line, hint=hint)
        _draw_bar(drawing, axis, bar, parts, y, stacked=stacked)
        middle = y + high / 2 + FONT_SIZE / 3
        if not narrow:
            shown = fitted(bar.label, left - _BAR_GAP)
            drawing.text(left - _BAR_GAP, middle, shown, anchor="end", hint=hint)
        drawing.text(
            right + _BAR_GAP, middle, fitted(bar.note, width - right - _BAR_GAP), muted=True
        )
    drawing.line([[(left, start), (left, end)] for start, end in spans], ("ink", INK))
    drawing.text((left + right) / 2, bottom + 36, x_label, anchor="middle", muted=True)
    drawing.height = bottom + _BAR_TICKS_ROOM
    return drawing.svg()


def _draw_bar(
    drawing: Drawing,
    axis: Axis,
    bar: Bar,
    parts: Sequence[BarPart],
    y: float,
    *,
    stacked: bool,
) -> None:
    before = 0.0
    for place, (part, value) in enumerate(zip(parts, bar.values, strict=True)):
        start = axis.pixel(before)
        length = axis.pixel(before + value) - start
        look = colour(None if part.rest else place)
        drawing.rectangle(start, y, length, _BAR, look, f"{bar.label}, {part.name}: {value:,.6g}")
        if stacked:
            before += value
        else:
            y += _BAR


def _draw_bar_legend(drawing: Drawing, parts: Sequence[BarPart], top: float) -> float:
    """Draw the meanings of the colours, in as many lines as needed; return where they end."""
    x = 0.0
    for place, part in enumerate(parts):
        room = _BAR_SWATCH + 6 + text_width(part.name)
        if x and x + room > drawing.width:
            x, top = 0.0, top + LINE
        drawing.rectangle(x, top, _BAR_SWATCH, _BAR_SWATCH, colour(None if part.rest else place))
        drawing.text(x + _BAR_SWATCH + 6, top + 7 + FONT_SIZE / 3, part.name)
        x += room + 2 * _BAR_GAP
    return top + _BAR_SWATCH + 6


def _text_room(texts: Sequence[str], most: float) -> float:
    return min(max((text_width(text) for text in texts), default=0.0) + _BAR_GAP, most)


def _bars_in_words(bars: Sequence[Bar], parts: Sequence[BarPart]) -> str:
    return "; ".join(
        f"{bar.label}: "
        + ", ".join(
            f"{part.name} {value:,.6g}" for part, value in zip(parts, bar.values, strict=True)
        )
        for bar in bars
    )


def column_chart(
    values: Sequence[float],
    title: str,
    x_label: str,
    y_label: str,
    *,
    description: str = "",
    width: float = 680.0,
    height: float = 240.0,
) -> str:
    """Draw a column for each value, in the order given, and a line at their median.

    With more than 200 values, as many neighbours as necessary share a column, at their mean.
    Returns an ``<svg>`` element.
    """
    middle = median(values) if values else 0.0
    step = max(1, ceil(len(values) / _COLUMNS_MOST))
    heights = [
        sum(values[at : at + step]) / len(values[at : at + step])
        for at in range(0, len(values), step)
    ]
    drawing = Drawing(width, height, title, description or f"{y_label} by {x_label}")
    note = "median"
    high = max(len(values), 1) + 0.5
    plot = framed(
        drawing,
        Axis(0.5, high, whole=True),
        Axis(0.0, max(heights, default=0.0) or 1.0),
        x_label,
        y_label,
        text_width(note) + _MEDIAN_EDGE * 2,
    )
    for place, value in enumerate(heights):
        first, last = place * step + 1, min((place + 1) * step, len(values))
        left, right = plot.x.pixel(first - 0.5), plot.x.pixel(last + 0.5)
        free = (right - left) * _COLUMN_GAP
        top = plot.y.pixel(value)
        hint = f"{first if first == last else f'{first} to {last}'}: {value:,.6g}"
        at = (left + free / 2, top, right - left - free, plot.bottom - top)
        drawing.rectangle(*at, colour(0), hint)
    level = plot.y.pixel(middle)
    hint = f"{note}: {middle:,.6g}"
    line = [[(plot.left, level), (plot.right, level)]]
    drawing.line(line, ("ink", INK), thickness=1.4, dash="4 3", hint=hint)
    drawing.text(plot.right + _MEDIAN_EDGE, level + FONT_SIZE / 3, note, hint=hint)
    return drawing.svg()
