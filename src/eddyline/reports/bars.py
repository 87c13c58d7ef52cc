"""Bars lying side by side or stacked, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.reports.axes import Axis
from eddyline.reports.drawing import (
    FONT_SIZE,
    GRID,
    INK,
    TITLE_SIZE,
    Drawing,
    colour,
    text_width,
)
from eddyline.reports.drawing import fitted as fitted_text

_LABEL_MOST = 0.36  # of the width of the chart at most
_NOTE_MOST = 0.34
_GAP = 10.0
_BAR = 18.0  # thickness of a bar
_BETWEEN = 10.0  # from one label's bars to the next
_TICKS_ROOM = 44.0
_SWATCH = 14.0


@dataclass(frozen=True, slots=True)
class Part:
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
    parts: Sequence[Part],
    title: str,
    x_label: str,
    *,
    stacked: bool = True,
    description: str = "",
    x_unit: str = "",
    width: float = 680.0,
) -> str:
    """Draw lying bars from 0, the parts of each end to end, or below each other.

    Returns an ``<svg>`` element, as high as the bars need.
    """
    lanes = 1 if stacked else len(parts)
    group = lanes * _BAR + _BETWEEN
    top = 56.0 if len(parts) > 1 else 34.0
    bottom = top + len(bars) * group
    drawing = Drawing(width, bottom + _TICKS_ROOM, title, description or _described(bars, parts))
    drawing.text(0, 16, title, size=TITLE_SIZE, bold=True)
    if len(parts) > 1:
        _draw_legend(drawing, parts)
    left = _room([bar.label for bar in bars], width * _LABEL_MOST)
    right = width - _room([bar.note for bar in bars], width * _NOTE_MOST) - _GAP
    longest = (sum(bar.values) if stacked else max(bar.values, default=0.0) for bar in bars)
    axis = Axis(0.0, max(longest, default=0.0) or 1.0, x_unit, left, right)
    for value, label in axis.ticks(max(2, int((right - left) / 75))):
        at = axis.pixel(value)
        drawing.line([[(at, top - 4), (at, bottom)]], ("grid", GRID))
        drawing.text(at, bottom + 16, label, anchor="middle", muted=True)
    for place, bar in enumerate(bars):
        y = top + place * group
        _draw_bar(drawing, axis, bar, parts, y, stacked=stacked)
        middle = y + lanes * _BAR / 2 + FONT_SIZE / 3
        shown = fitted_text(bar.label, left - _GAP)
        drawing.text(left - _GAP, middle, shown, anchor="end", hint=bar.hint or bar.label)
        drawing.text(right + _GAP, middle, fitted_text(bar.note, width - right - _GAP), muted=True)
    drawing.line([[(left, top - 4), (left, bottom)]], ("ink", INK))
    drawing.text((left + right) / 2, bottom + 36, x_label, anchor="middle", muted=True)
    return drawing.svg()


def _draw_bar(
    drawing: Drawing,
    axis: Axis,
    bar: Bar,
    parts: Sequence[Part],
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


def _draw_legend(drawing: Drawing, parts: Sequence[Part]) -> None:
    x = 0.0
    for place, part in enumerate(parts):
        drawing.rectangle(x, 27, _SWATCH, _SWATCH, colour(None if part.rest else place))
        drawing.text(x + _SWATCH + 6, 34 + FONT_SIZE / 3, part.name)
        x += _SWATCH + 6 + text_width(part.name) + 2 * _GAP


def _room(texts: Sequence[str], most: float) -> float:
    return min(max((text_width(text) for text in texts), default=0.0) + _GAP, most)


def _described(bars: Sequence[Bar], parts: Sequence[Part]) -> str:
    return "; ".join(
        f"{bar.label}: "
        + ", ".join(
            f"{part.name} {value:,.6g}" for part, value in zip(parts, bar.values, strict=True)
        )
        for bar in bars
    )
