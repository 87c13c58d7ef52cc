"""A chart of bars in groups, in the look of :mod:`eddyline.reports.svg`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.reports.axes import Axis, FittedAxis, Scale, fitted
from eddyline.reports.drawing import FONT_SIZE, GRID, INK, Drawing, colour, text_width

TOP = 62.0  # pixels above the bars: the title and the name of the axis
BOTTOM = 30.0  # below them: the names of the groups
GAP = 6.0  # between an axis and its labels
LEGEND = 30.0  # from the bars to the names of the series
SWATCH = 14.0
GROUP_SHARE = 0.8  # of a group's width that its bars take


def bar_chart(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    title: str,
    y_label: str,
    *,
    unit: str = "",
    high: float | None = None,
    width: float = 760.0,
    height: float = 360.0,
) -> str:
    """Draw a bar for each series (name -> a value a group) in each group, as SVG text."""
    drawing = Drawing(width, height, title, f"{y_label} by {', '.join(groups)}: {list(series)}.")
    values = [value for bars in series.values() for value in bars]
    free = fitted(Axis(high=high, unit=unit), values, measured=True)
    bottom = height - BOTTOM
    y = FittedAxis(Scale.LINEAR, free.low, free.high, unit, bottom, TOP)
    ticks = y.ticks(max(2, int((bottom - TOP) / 36)))
    left = max(text_width(label) for _, label in ticks) + 2 * GAP
    right = width - LEGEND - SWATCH - max(text_width(name) for name in series)
    drawing.text(0, 16, title, size=15.0, bold=True)
    drawing.text(0, TOP - 25, y_label, muted=True)
    for value, label in ticks:
        at = y.pixel(value)
        drawing.line([[(left, at), (right, at)]], ("grid", GRID))
        drawing.text(left - GAP, at + FONT_SIZE / 3, label, anchor="end", muted=True)
    step = (right - left) / len(groups)
    bar = step * GROUP_SHARE / len(series)
    for group, name in enumerate(groups):
        start = left + step * (group + (1 - GROUP_SHARE) / 2)
        for place, (of, bars) in enumerate(series.items()):
            top = y.pixel(bars[group])
            hint = f"{of}: {bars[group]:.3g}{unit}"
            drawing.rectangle(start + bar * place, top, bar - 1, bottom - top, colour(place), hint)
        drawing.text(left + step * (group + 0.5), bottom + 20, name, anchor="middle", muted=True)
    drawing.line([[(left, bottom), (right, bottom)]], ("ink", INK))
    for place, name in enumerate(series):
        at = TOP + 8 + 19 * place
        drawing.rectangle(right + GAP + 4, at - 7, SWATCH, SWATCH, colour(place))
        drawing.text(right + LEGEND, at + FONT_SIZE / 3, name)
    return drawing.svg()
