"""What every figure is made of, and how it gets onto the screen and the disk.

What a figure says is data, in ``figures.toml``: the title, the axes, the table and the claims.
What it shows is the :class:`Outcome` of its runs.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from bench.access_methods.world import VirtualWorld, World
from bench.chart import Axis, Chart, Points
from bench.figures.claims import Claim, Judged, Measured

TEXTS: Final = tomllib.loads(Path(__file__).with_name("figures.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Setting:
    """How much is run: less data if ``quick``. ``advance`` is called after every run.

    ``new_world`` makes where sources take their time, for figures about these.
    """

    quick: bool = False
    advance: Callable[[], None] = lambda: None
    new_world: Callable[[], World] = VirtualWorld


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a figure's runs.

    ``measured`` is what titles and claims name; ``rows`` are those of the table, by name.
    ``points`` are its columns where the texts only say how to write them, and the groups of
    bars. ``lines`` or ``bars`` are what is drawn, ``data`` is what is written as JSON.
    """

    measured: Measured
    rows: Mapping[str, Sequence[object]]
    data: Mapping[str, object]
    points: Sequence[object] = ()
    lines: Mapping[str, Points] = field(default_factory=dict)
    bars: Mapping[str, Sequence[float]] = field(default_factory=dict)
    marks: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure: its chart as SVG, its numbers as a table and as JSON data, and its claims."""

    title: str
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    claims: Sequence[Judged]
    data: Mapping[str, object]

    def write(self, folder: Path, name: str) -> None:
        """Write ``name``.svg and ``name``.json into a folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(self.svg, encoding="utf-8")
        claims = [dataclasses.asdict(claim) for claim in self.claims]
        document = {"title": self.title, "claims": claims, "data": dict(self.data)}
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")

    def show(self, console: Console) -> None:
        """Print the numbers and the claims."""
        console.print(self.title, style="bold", soft_wrap=True)
        numbers = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for place, column in enumerate(self.columns):
            numbers.add_column(column, justify="right" if place else "left", no_wrap=True)
        for row in self.rows:
            numbers.add_row(*row)
        console.print(numbers)
        claims = Table("who", "says", "ours", "", box=box.SIMPLE_HEAD, padding=(0, 1, 1, 0))
        for claim in self.claims:
            ours = f"{claim.ours}\n{claim.remark}" if claim.remark else claim.ours
            claims.add_row(claim.source, claim.says, ours, "holds" if claim.holds else "DIFFERS")
        console.print(claims)
        console.print()


def drawn(name: str, outcome: Outcome) -> Figure:
    """Return a figure: its texts, and what its runs gave."""
    texts: Mapping[str, Any] = TEXTS[name]
    measured = {**TEXTS["bounds"], **texts.get("bounds", {}), **outcome.measured}
    title = texts["title"].format_map(measured)
    x, y = (Axis(**texts.get(axis, {})) for axis in "xy")
    chart = Chart(title, x, y, texts.get("dashed", ()), texts.get("mark", ""))
    columns, cells = texts["columns"], texts["cells"]
    if isinstance(columns, str):
        columns = [columns.format(point) for point in outcome.points]
    if isinstance(cells, str):
        cells = [cells] * len(columns)
    return Figure(
        f"{title} ({texts['paper']})",
        chart.bars(columns, outcome.bars)
        if outcome.bars
        else chart.lines(outcome.lines, outcome.marks),
        (texts["corner"], *columns),
        [
            (row, *(cell.format(value) for cell, value in zip(cells, values, strict=True)))
            for row, values in outcome.rows.items()
        ],
        [Claim(**claim).judged(measured) for claim in texts["claims"]],
        outcome.data,
    )
