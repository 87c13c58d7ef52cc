"""Charts of lines and of bars in groups, drawn by matplotlib, as SVG text.

The same numbers give the same text: it has no date, and its ids follow from a fixed salt. How
charts look stands in ``chart.mplstyle``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis as MatplotlibAxis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

Points = Sequence[tuple[float, float]]

STYLE: Final = Path(__file__).with_suffix(".mplstyle")

MARKERS: Final = 12
"""Markers of a line, or little more; many more would hide it."""

BARS: Final = 0.8
"""Part of a group's width that its bars take."""

FEW_DECADES: Final = 1000
"""Up to so many times its least value a logarithmic axis has ticks inside of decades."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: what it says, its ends where data do not set them, its scale and unit."""

    label: str = ""
    low: float | None = None
    high: float | None = None
    scale: Literal["linear", "log"] = "linear"
    unit: str = ""

    def set_ticks(self, axis: MatplotlibAxis) -> None:
        """Give an axis, whose ends are set, its ticks."""
        if self.scale == "log":
            low, high = axis.get_view_interval()
            axis.set_major_locator(
                LogLocator(subs=(1, 2, 5) if high <= FEW_DECADES * low else (1,))
            )
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(StrMethodFormatter(f"{{x:,.6g}}{self.unit}"))


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart says beside its data; ``dashed`` names series, ``mark`` what marks mean."""

    title: str
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    dashed: Sequence[str] = ()
    mark: str = ""

    def lines(self, series: Mapping[str, Points], marks: Sequence[float] = ()) -> str:
        """Draw lines by name, and an upright one at each of some places on the x axis."""

        def draw(axes: Axes) -> None:
            axes.set(xscale=self.x.scale, yscale=self.y.scale)
            for name, points in series.items():
                style = "--" if name in self.dashed else "-"
                every = max(1, len(points) // MARKERS)
                axes.plot(*zip(*points, strict=True), linestyle=style, label=name, markevery=every)
            for place in marks:
                label = self.mark if place == marks[0] else None
                axes.axvline(place, color="0.4", linestyle=":", marker="", label=label)
            axes.set_xlim(self.x.low, self.x.high)
            zero = self.y.low is None and self.y.scale == "linear"
            axes.set_ylim(0 if zero else self.y.low, self.y.high)
            self.x.set_ticks(axes.xaxis)

        return self._svg(draw)

    def bars(self, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
        """Draw a bar for each series in each group."""

        def draw(axes: Axes) -> None:
            width = BARS / len(series)
            for number, (name, values) in enumerate(series.items()):
                places = [group + number * width for group in range(len(groups))]
                axes.bar(places, values, 0.9 * width, label=name)
            middle = (BARS - width) / 2
            axes.set_xticks([group + middle for group in range(len(groups))], groups)
            axes.tick_params(axis="x", length=0)
            axes.set_ylim(self.y.low, self.y.high)

        return self._svg(draw)

    def _svg(self, draw: Callable[[Axes], None]) -> str:
        text = io.StringIO()
        with rc_context(fname=STYLE):
            figure = Figure(layout="constrained")
            figure.suptitle(self.title, x=0.01, horizontalalignment="left")
            axes = figure.add_subplot()
            axes.set_title(self.y.label)
            axes.set_xlabel(self.x.label)
            draw(axes)
            self.y.set_ticks(axes.yaxis)
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
            metadata = {"Title": self.title, "Description": self.y.label, "Date": None}
            figure.savefig(text, format="svg", metadata=metadata)
        return text.getvalue()
