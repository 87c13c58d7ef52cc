"""Charts of shares over the course of something, as SVG text.

They need nothing but this package, look right on light paper wherever SVG is
shown, and say in words what they show (see :mod:`eddyline.reports.drawing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.reports.axes import Axis, Plot, framed
from eddyline.reports.drawing import (
    FONT_SIZE,
    INK,
    LINE,
    NARROW,
    Drawing,
    colour,
    text_width,
    wrapped,
)

_LEGEND_GAP = 14.0  # between the plot and its legend
_SWATCH = 20.0  # width of a legend's sample of colour, with its gap
_EDGE = 4.0  # free at the right edge
_LEGEND_MOST = 0.4  # of the width of the chart at most; a wider legend stands below the plot


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
    described = description or _described(names, x_label, y_label)
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
    """Draw a line for every mark, and its label unless it would lie over the one before."""
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
    """Return the room of the legend at the right of the plot; 0.0 where it stands below."""
    room = _LEGEND_GAP + _SWATCH + max(map(text_width, names), default=0.0) + _EDGE
    return 0.0 if width < NARROW or room > width * _LEGEND_MOST else room


def _band_look(place: int, band: Band) -> tuple[str, str]:
    return colour(None if band.rest else place)


def _described(names: Sequence[str], x_label: str, y_label: str) -> str:
    return f"{y_label} over {x_label}: {', '.join(names)}."
