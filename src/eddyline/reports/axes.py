"""Axes of a chart: from values to pixels, where the ticks go and how they are spelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, log10

from eddyline.reports.drawing import FONT_SIZE, GRID, INK, Drawing, text_width

_NAME_ROOM = 43.0  # below the title: the name of the vertical axis, and labels over the plot
_TICKS_ROOM = 46.0  # below the plot: tick labels and the name of the horizontal axis
_TICK_GAP = 6.0
_KILO = 10_000.0  # from here on tick labels take a suffix


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from ``low`` to ``high`` at pixels ``start`` to ``end``.

    ``unit`` is added to every tick label. An axis that counts has its ticks at ``whole`` numbers
    only. Raises ValueError if the ends leave nothing between them.
    """

    low: float
    high: float
    unit: str = ""
    start: float = 0.0
    end: float = 1.0
    whole: bool = False

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(
                f"the axis ends at {self.high}, which is not above its start at {self.low}"
            )

    def pixel(self, value: float) -> float:
        """Return where a value stands."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return at most ``most`` round values between the ends, each with its label."""
        step, first, last = self._steps(most)
        decimals = max(0, -floor(log10(step) + 1e-9))
        values = (place * step for place in range(first, last + 1))
        return [(value, _label(value, decimals) + self.unit) for value in values]

    def _steps(self, most: int) -> tuple[float, int, int]:
        """Return the smallest round step with few enough multiples on the axis, and their range."""
        power = 10.0 ** floor(log10((self.high - self.low) / most))
        least = 1.0 if self.whole else 0.0
        for step in (max(power * factor, least) for factor in (1, 2, 5, 10, 20)):
            first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
            if last - first < most:
                break
        return step, first, last


@dataclass(frozen=True, slots=True)
class Plot:
    """The rectangle inside the axes of a chart."""

    x: Axis
    y: Axis

    @property
    def left(self) -> float:
        """Pixel of the left edge."""
        return self.x.start

    @property
    def right(self) -> float:
        """Pixel of the right edge."""
        return self.x.end

    @property
    def top(self) -> float:
        """Pixel of the upper edge."""
        return self.y.end

    @property
    def bottom(self) -> float:
        """Pixel of the lower edge."""
        return self.y.start


def framed(
    drawing: Drawing,
    x: Axis,
    y: Axis,
    x_label: str,
    y_label: str,
    right_room: float,
    bottom_room: float = 0.0,
) -> Plot:
    """Draw title, grid, ticks and names of both axes; leave pixels free at the right and below."""
    top = drawing.heading() + _NAME_ROOM
    bottom = drawing.height - _TICKS_ROOM - bottom_room
    y_ticks = y.ticks(max(2, int((bottom - top) / 36)))
    left = max((text_width(label) for _, label in y_ticks), default=0.0) + 2 * _TICK_GAP
    y = replace(y, start=bottom, end=top)
    x = replace(x, start=left, end=drawing.width - right_room)
    plot = Plot(x, y)
    drawing.text(0, top - 25, y_label, muted=True)
    for value, label in y_ticks:
        at = y.pixel(value)
        drawing.line([[(plot.left, at), (plot.right, at)]], ("grid", GRID))
        drawing.text(left - _TICK_GAP, at + FONT_SIZE / 3, label, anchor="end", muted=True)
    x_ticks = x.ticks(max(2, int((plot.right - plot.left) / 75)))
    for value, label in x_ticks:
        at = x.pixel(value)
        drawing.line([[(at, bottom), (at, bottom + 4)]], ("ink", INK))
        drawing.text(at, bottom + 18, label, anchor="middle", muted=True)
    drawing.line([[(plot.left, bottom), (plot.right, bottom)]], ("ink", INK))
    middle = (plot.left + plot.right) / 2
    drawing.text(middle, bottom + 40, x_label, anchor="middle", muted=True)
    return plot


def _label(value: float, decimals: int) -> str:
    size = abs(value)
    if size >= _KILO:
        for factor, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
            if size >= factor:
                return f"{value / factor:.6g}{suffix}"
    return f"{value:,.{decimals}f}"
