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
    Drawing,
    colour,
    text_width,
)
from eddyline.reports.drawing import fitted as fitted_text

_LEGEND_GAP = 14.0  # between the plot and its legend
_SWATCH = 20.0  # width of a legend's sample of colour, with its gap
_LEGEND_LINE = 19.0
_EDGE = 4.0  # free at the right edge
_LEGEND_MOST = 0.4  # of the width of the chart at most


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
    drawing = Drawing(width, height, title, description or _described(names, x_label, y_label))
    plot = framed(
        drawing,
        Axis(edges[0], edges[-1], x_unit),
        Axis(0.0, 100.0, " %"),
        x_label,
        y_label,
        _legend_room(names, width),
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
    left = plot.right + _LEGEND_GAP
    for line, (place, band) in enumerate(reversed(list(enumerate(bands)))):
        at = plot.top + 8 + line * _LEGEND_LINE
        drawing.rectangle(left, at - 7, 14, 14, _band_look(place, band))
        _legend_text(drawing, left + _SWATCH, at, band.name, band.hint)
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


def _legend_room(names: Sequence[str], width: float) -> float:
    widest = max((text_width(name) for name in names), default=0.0)
    return min(_LEGEND_GAP + _SWATCH + widest + _EDGE, width * _LEGEND_MOST)


def _legend_text(drawing: Drawing, x: float, middle: float, name: str, hint: str = "") -> None:
    shown = fitted_text(name, drawing.width - x)
    drawing.text(x, middle + FONT_SIZE / 3, shown, hint=hint or (name if shown != name else ""))


def _band_look(place: int, band: Band) -> tuple[str, str]:
    return colour(None if band.rest else place)


def _described(names: Sequence[str], x_label: str, y_label: str) -> str:
    return f"{y_label} over {x_label}: {', '.join(names)}."
