"""Columns standing side by side, as SVG text: how even the parts of something are."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median

from eddyline.reports.axes import Axis, framed
from eddyline.reports.drawing import FONT_SIZE, INK, Drawing, colour, text_width

_MOST = 200  # columns; neighbours share one where there are more
_GAP = 0.15  # of a column's width, free between it and the next
_EDGE = 8.0


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

    Of more than 200 values as many neighbours share a column as need be, at their mean.
    Returns an ``<svg>`` element.
    """
    middle = median(values) if values else 0.0
    step = max(1, ceil(len(values) / _MOST))
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
        text_width(note) + _EDGE * 2,
    )
    for place, value in enumerate(heights):
        first, last = place * step + 1, min((place + 1) * step, len(values))
        left, right = plot.x.pixel(first - 0.5), plot.x.pixel(last + 0.5)
        free = (right - left) * _GAP
        top = plot.y.pixel(value)
        hint = f"{first if first == last else f'{first} to {last}'}: {value:,.6g}"
        at = (left + free / 2, top, right - left - free, plot.bottom - top)
        drawing.rectangle(*at, colour(0), hint)
    level = plot.y.pixel(middle)
    hint = f"{note}: {middle:,.6g}"
    line = [[(plot.left, level), (plot.right, level)]]
    drawing.line(line, ("ink", INK), thickness=1.4, dash="4 3", hint=hint)
    drawing.text(plot.right + _EDGE, level + FONT_SIZE / 3, note, hint=hint)
    return drawing.svg()
