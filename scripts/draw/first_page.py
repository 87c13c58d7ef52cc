"""Draws the picture of the first page, plain Spark beside Eddyline, from ``docs/demo.json``.

``make bench ARGS="demo --out docs"`` measures, and writes that file. The picture has no background
and is drawn twice, in the colours of light and of dark pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from eddyline.reports.drawing import COLOURS, INK, Drawing, colour
from eddyline.reports.wording import count, duration, percent

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

MEASURED: Final = DOCS / "demo.json"

LIGHT: Final = DOCS / "pictures" / "demo.svg"
DARK: Final = DOCS / "pictures" / "demo-dark.svg"

SIDES: Final = {"plain Spark": colour(None), "Eddyline": colour(0)}
"""Who is measured, with the look of its bars."""

BUSY: Final = 1.0
"""Load average before measuring, of other work then, from which on the picture says so."""

WIDTH: Final = 360.0
BAR: Final = 26.0
"""Height of a bar."""
STEP: Final = 34.0
"""From one bar to the next."""
NAMES: Final = 84.0
"""Width of the names left of the bars."""
INK_LINE: Final = ("ink", INK)

VALUES: Final = 74.0
"""Width of the values right of the longest bar."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is compared: its name, its values by side, turn by turn, and how they are written."""

    name: str
    values: dict[str, list[float]]
    written: Callable[[float], str]
    verdict: str

    def shown(self, side: str) -> str:
        """Return a side's median as text."""
        return self.written(median(self.values[side]))


def quantities() -> list[Quantity]:
    """Return what was measured: seconds, and the calls of all functions."""
    measured = json.loads(MEASURED.read_text("utf-8"))
    seconds = {side: measured["seconds"][side] for side in SIDES}
    plain, eddy = (measured["calls"][side] for side in SIDES)
    by_turn = [sum(each) for each in zip(*eddy.values(), strict=True)]
    calls = {"plain Spark": [sum(plain.values())], "Eddyline": by_turn}
    paired = zip(*seconds.values(), strict=True)
    times = median(plain_turn / eddy_turn for plain_turn, eddy_turn in paired)
    avoided = 1 - median(by_turn) / sum(plain.values())
    return [
        Quantity("Time", seconds, duration, f"{times:.1f} times as fast"),
        Quantity(
            "Calls of Python functions",
            calls,
            lambda value: count(round(value)),
            f"{percent(avoided, 1)} avoided",
        ),
    ]


def sources() -> list[str]:
    """Return where the figures are from, in lines."""
    measured = json.loads(MEASURED.read_text("utf-8"))
    machine = f"{measured['cores']} cores, PySpark {measured['pyspark']}, {measured['commit']}."
    lines = [
        f"The query of eddyline demo: {measured['flights']:,} flights, five joins,",
        f"four Python functions. Medians of {measured['turns']} alternating turns,",
        "with least and greatest; the factor is of paired turns.",
        machine,
    ]
    if measured["load_before"] >= BUSY:
        lines.append(f"The machine was busy with other work: load {measured['load_before']:.0f}.")
    return lines


def picture() -> str:
    """Return the picture in the colours of light pages."""
    compared = quantities()
    told = (
        f"{each.name}: {', '.join(f'{side} {each.shown(side)}' for side in SIDES)}"
        for each in compared
    )
    description = ". ".join([*told, " ".join(sources())])
    parts = Drawing(WIDTH, 224 + 17 * len(sources()), "Plain Spark beside Eddyline", description)
    top = 0.0
    for each in compared:
        parts.text(0, top + 15, each.name, bold=True)
        parts.text(WIDTH, top + 15, each.verdict, bold=True, anchor="end")
        top += 26
        scale = (WIDTH - NAMES - VALUES) / max(map(max, each.values.values()))
        for side, look in SIDES.items():
            values = each.values[side]
            middle = top + BAR / 2
            parts.text(NAMES - 8, middle + 4.5, side, anchor="end")
            parts.rectangle(NAMES, top, median(values) * scale, BAR, look)
            least, greatest = (NAMES + end(values) * scale for end in (min, max))
            if greatest - least >= 1:
                parts.line([[(least, middle), (greatest, middle)]], INK_LINE, thickness=1.5)
            parts.text(greatest + 7, middle + 4.5, each.shown(side))
            top += STEP
        top += 20
    for line in sources():
        parts.text(0, top + 6, line, size=12, muted=True)
        top += 17
    return without_paper(parts.svg()) + "\n"


def without_paper(svg: str) -> str:
    """Return a drawing without its background."""
    return re.sub(r'<rect class="f-paper"[^>]*/>\n', "", svg)


def darkened(svg: str) -> str:
    """Return a drawing in the colours of dark pages."""
    dark = dict(COLOURS.values())
    return re.sub("#[0-9a-f]{6}", lambda found: dark.get(found[0], found[0]), svg)


def pages() -> dict[Path, str]:
    """Return the pictures as they should be."""
    light = picture()
    return {LIGHT: light, DARK: darkened(light)}
