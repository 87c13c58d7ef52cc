"""Axes of a chart: from values to pixels, where the ticks go and how they are spelled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import ceil, floor, isfinite, log10

from eddyline.reports.drawing import FONT_SIZE, GRID, INK, TITLE_SIZE, Drawing, text_width

_TITLE_ROOM = 62.0  # above the plot: the title and the name of the vertical axis
_TICKS_ROOM = 46.0  # below the plot: tick labels and the name of the horizontal axis
_TICK_GAP = 6.0
_FEW_DECADES = 2  # up to here a logarithmic axis has ticks at 2 and 5 as well
_LINEAR_ROOM = 0.04  # of the axis, so that the highest point does not touch the frame
_LOGARITHMIC_ROOM = 1.25  # the same as a factor, at both ends
_KILO = 10_000.0  # from here on tick labels take a suffix


class Scale(Enum):
    """How an axis spaces its values."""

    LINEAR = auto()
    LOGARITHMIC = auto()


@dataclass(frozen=True, slots=True)
class Axis:
    """What is known of an axis beforehand; ends that are None come from the data.

    A linear axis starts at 0 unless there are negative values, so that heights
    compare; pass ``low`` to zoom in. ``unit`` is added to every tick label. An axis that counts
    has its ticks at ``whole`` numbers only.
    """

    scale: Scale = Scale.LINEAR
    low: float | None = None
    high: float | None = None
    unit: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class FittedAxis:
    """An axis with both ends: values from ``low`` to ``high`` at pixels ``start`` to ``end``."""

    scale: Scale
    low: float
    high: float
    unit: str
    start: float = 0.0
    end: float = 1.0
    whole: bool = False

    def pixel(self, value: float) -> float:
        """Return where a value stands."""
        if self.scale is Scale.LOGARITHMIC:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def shows(self, value: float) -> bool:
        """Whether a value can be drawn: finite, and above zero on a logarithmic axis."""
        return isfinite(value) and (self.scale is Scale.LINEAR or value > 0)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return at most ``most`` round values between the ends, each with its label."""
        if self.scale is Scale.LOGARITHMIC:
            return [(value, _label(value, 0) + self.unit) for value in self._decades(most)]
        step, first, last = self._steps(most)
        decimals = max(0, -floor(log10(step) + 1e-9))
        values = (place * step for place in range(first, last + 1))
        return [(value, _label(value, decimals) + self.unit) for value in values]

    def _steps(self, most: int) -> tuple[float, int, int]:
        """Return the smallest round step with few enough multiples on the axis, and which."""
        power = 10.0 ** floor(log10((self.high - self.low) / most))
        least = 1.0 if self.whole else 0.0
        for step in (max(power * factor, least) for factor in (1, 2, 5, 10, 20)):
            first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
            if last - first < most:
                break
        return step, first, last

    def _decades(self, most: int) -> list[float]:
        low, high = log10(self.low), log10(self.high)
        steps = (1, 2, 5) if high - low <= _FEW_DECADES else (1,)
        decades = range(floor(low), ceil(high) + 1)
        values = [step * 10.0**decade for decade in decades for step in steps]
        margin = 1 + 1e-9
        shown = [value for value in values if self.low / margin <= value <= self.high * margin]
        return shown[:: max(1, ceil(len(shown) / most))]


def fitted(axis: Axis, values: Iterable[float], *, measured: bool) -> FittedAxis:
    """Choose the ends of an axis so that it shows all the values it can.

    An axis of what was ``measured`` includes 0 if it is linear, and leaves room
    beyond the data. Raises ValueError if the ends given by the caller leave
    nothing between them.
    """
    logarithmic = axis.scale is Scale.LOGARITHMIC
    shown = [value for value in values if isfinite(value) and (value > 0 or not logarithmic)]
    if measured and not logarithmic:
        shown.append(0.0)
    low = axis.low if axis.low is not None else min(shown, default=1.0 if logarithmic else 0.0)
    high = axis.high if axis.high is not None else max(shown, default=1.0)
    if logarithmic and low <= 0:
        raise ValueError(f"a logarithmic axis starts above 0, not at {low}; pass another low")
    if low >= high:
        if axis.low is not None and axis.high is not None:
            raise ValueError(f"the axis ends at {high}, which is not above its start at {low}")
        # A single value: make room on the side that the caller left open.
        if axis.high is None:
            high = low * 10 if logarithmic else low + (abs(low) or 1.0)
        else:
            low = high / 10 if logarithmic else high - (abs(high) or 1.0)
    if measured and logarithmic:
        low = low if axis.low is not None else low / _LOGARITHMIC_ROOM
        high = high if axis.high is not None else high * _LOGARITHMIC_ROOM
    elif measured and axis.high is None:
        high += (high - low) * _LINEAR_ROOM
    return FittedAxis(axis.scale, low, high, axis.unit, whole=axis.whole)


@dataclass(frozen=True, slots=True)
class Plot:
    """The rectangle inside the axes of a chart."""

    x: FittedAxis
    y: FittedAxis

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
    x: FittedAxis,
    y: FittedAxis,
    x_label: str,
    y_label: str,
    right_room: float,
) -> Plot:
    """Draw title, grid, ticks and names of both axes; leave ``right_room`` pixels at the right."""
    bottom = drawing.height - _TICKS_ROOM
    y_ticks = y.ticks(max(2, int((bottom - _TITLE_ROOM) / 36)))
    left = max((text_width(label) for _, label in y_ticks), default=0.0) + 2 * _TICK_GAP
    y = _placed(y, bottom, _TITLE_ROOM)
    x = _placed(x, left, drawing.width - right_room)
    plot = Plot(x, y)
    drawing.text(0, 16, drawing.title, size=TITLE_SIZE, bold=True)
    drawing.text(0, _TITLE_ROOM - 25, y_label, muted=True)
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
    drawing.text(middle, drawing.height - 6, x_label, anchor="middle", muted=True)
    return plot


def _placed(axis: FittedAxis, start: float, end: float) -> FittedAxis:
    return replace(axis, start=start, end=end)


def _label(value: float, decimals: int) -> str:
    size = abs(value)
    if size >= _KILO:
        for factor, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
            if size >= factor:
                return f"{value / factor:.6g}{suffix}"
    if decimals:
        return f"{value:.{decimals}f}"
    return f"{value:,.0f}" if size >= 1 or not value else f"{value:.6g}"
