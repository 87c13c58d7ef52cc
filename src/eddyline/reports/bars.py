"""Bars lying side by side or stacked, as SVG text."""

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
    text_width,
    wrapped,
)
from eddyline.reports.drawing import fitted as fitted_text

_LABEL_MOST = 0.36  # of the width of the chart at most
_NOTE_MOST = 0.34
_GAP = 10.0
_BAR = 18.0  # thickness of a bar
_BETWEEN = 10.0  # from one label's bars to the next
_TICKS_ROOM = 44.0
_SWATCH = 14.0
_LABEL_LINES = 2  # of a label over its bar


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
    drawing = Drawing(width, 0.0, title, description or _described(bars, parts))
    top = drawing.heading() + 15
    if len(parts) > 1:
        top = _draw_legend(drawing, parts, top - 7) + 9
    narrow = width < NARROW
    labels = [wrapped(bar.label, width, most=_LABEL_LINES) if narrow else [] for bar in bars]
    high = _BAR * (1 if stacked else len(parts))
    starts, bottom = [], top
    for lines in labels:
        starts.append(bottom + len(lines) * LINE)
        bottom = starts[-1] + high + _BETWEEN
    left = 1.0 if narrow else _room([bar.label for bar in bars], width * _LABEL_MOST)
    right = width - _room([bar.note for bar in bars], width * _NOTE_MOST) - _GAP
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
            shown = fitted_text(bar.label, left - _GAP)
            drawing.text(left - _GAP, middle, shown, anchor="end", hint=hint)
        drawing.text(right + _GAP, middle, fitted_text(bar.note, width - right - _GAP), muted=True)
    drawing.line([[(left, start), (left, end)] for start, end in spans], ("ink", INK))
    drawing.text((left + right) / 2, bottom + 36, x_label, anchor="middle", muted=True)
    drawing.height = bottom + _TICKS_ROOM
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


def _draw_legend(drawing: Drawing, parts: Sequence[BarPart], top: float) -> float:
    """Draw what the colours mean, in as many lines as it needs; return where it ends."""
    x = 0.0
    for place, part in enumerate(parts):
        room = _SWATCH + 6 + text_width(part.name)
        if x and x + room > drawing.width:
            x, top = 0.0, top + LINE
        drawing.rectangle(x, top, _SWATCH, _SWATCH, colour(None if part.rest else place))
        drawing.text(x + _SWATCH + 6, top + 7 + FONT_SIZE / 3, part.name)
        x += room + 2 * _GAP
    return top + _SWATCH + 6


def _room(texts: Sequence[str], most: float) -> float:
    return min(max((text_width(text) for text in texts), default=0.0) + _GAP, most)


def _described(bars: Sequence[Bar], parts: Sequence[BarPart]) -> str:
    return "; ".join(
        f"{bar.label}: "
        + ", ".join(
            f"{part.name} {value:,.6g}" for part, value in zip(parts, bar.values, strict=True)
        )
        for bar in bars
    )
