"""Lanes as SVG text: when something went on, over the course of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.reports.axes import Axis
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
)

_LABEL_MOST = 0.3  # of the width of the chart at most
_WIDE_FONTS = 1.2  # how much wider than estimated a short text may be
_GAP = 10.0
_THICKNESS = 18.0  # of a lane
_TICKS_ROOM = 44.0
_THINNEST = 1.0  # pixels of a stretch, however short it is


@dataclass(frozen=True, slots=True)
class ChartLane:
    """A name, and the stretches in which something went on, in the unit of the axis.

    ``note`` is written at its right, ``hint`` is what the stretches are, for hovering.
    """

    label: str
    stretches: Sequence[tuple[float, float]]
    note: str = ""
    hint: str = ""


def lane_chart(
    lanes: Sequence[ChartLane],
    end: float,
    title: str,
    x_label: str,
    *,
    description: str = "",
    width: float = 680.0,
) -> str:
    """Draw a lane for each of several things, from 0 to ``end``, with its stretches in colour.

    In a narrow chart labels stand over their lanes, and notes behind them. Returns an ``<svg>``
    element, as high as the lanes need.
    """
    drawing = Drawing(width, 0.0, title, description or _in_words(lanes, x_label))
    top = drawing.heading() + 15
    narrow = width < NARROW
    above = LINE if narrow else 0.0
    step = above + _THICKNESS + _GAP
    bottom = top + step * len(lanes)
    left, right = 1.0, width - _GAP
    if not narrow:
        left = _room([lane.label for lane in lanes], width)
        right = width - _room([lane.note for lane in lanes], width) - _GAP
    axis = Axis(0.0, end, start=left, end=right)
    for value, label in axis.ticks(max(2, int((right - left) / 75))):
        at = axis.pixel(value)
        drawing.line([[(at, bottom), (at, bottom + 4)]], ("grid", GRID))
        anchor = "start" if narrow and not value else "middle"
        drawing.text(at, bottom + 18, label, anchor=anchor, muted=True)
    for place, lane in enumerate(lanes):
        y = top + place * step + above
        middle = y + _THICKNESS / 2 + FONT_SIZE / 3
        if narrow:
            text = f"{lane.label}: {lane.note}" if lane.note else lane.label
            drawing.text(0, y - 6, fitted(text, width), hint=text)
        else:
            label = fitted(lane.label, left - _GAP)
            drawing.text(left - _GAP, middle, label, anchor="end", hint=lane.label)
            drawing.text(right + _GAP, middle, fitted(lane.note, width - right - _GAP), muted=True)
        drawing.rectangle(left, y, right - left, _THICKNESS, ("grid", GRID), lane.label)
        for began, ended in lane.stretches:
            start = axis.pixel(max(began, 0.0))
            long = max(axis.pixel(min(ended, end)) - start, _THINNEST)
            hint = f"{lane.hint}: {began:,.4g} to {ended:,.4g}"
            drawing.rectangle(start, y, long, _THICKNESS, colour(1), hint)
    drawing.line([[(left, bottom), (right, bottom)]], ("ink", INK))
    drawing.text((left + right) / 2, bottom + 38, x_label, anchor="middle", muted=True)
    drawing.height = bottom + _TICKS_ROOM
    return drawing.svg()


def _room(texts: Sequence[str], width: float) -> float:
    most = max(map(text_width, texts), default=0.0)
    return min(most * _WIDE_FONTS + _GAP, width * _LABEL_MOST)


def _in_words(lanes: Sequence[ChartLane], x_label: str) -> str:
    return "; ".join(
        f"{lane.label}: "
        + (", ".join(f"{began:,.4g} to {ended:,.4g}" for began, ended in lane.stretches) or "never")
        + f" {x_label}"
        for lane in lanes
    )
