"""What every figure is made of, and how it gets onto the screen and the disk.

What a figure says is data, in ``texts``: the title, the axes, the table and the claims.
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
from bench.figures.claims import Claim, Judged, Measured, Repeats

TEXTS: Final[Mapping[str, Any]] = {
    name: texts
    for path in sorted(Path(__file__).with_name("texts").glob("*.toml"))
    for name, texts in tomllib.loads(path.read_text(encoding="utf-8")).items()
}
"""What each figure says, by name, and the ``bounds`` of several."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How much is run: less data if ``quick``. ``advance`` is called after every run.

    ``new_world`` makes where sources take their time, for figures about these. ``seed`` is added
    to the seeds of data and of chance; what is timed does not heed it.
    """

    quick: bool = False
    advance: Callable[[], None] = lambda: None
    new_world: Callable[[], World] = VirtualWorld
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a figure's runs.

    ``measured`` is what titles and claims name; ``rows`` are those of the table, by name.
    ``turns`` is what was measured in each turn, for those that are timed.
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
    turns: Sequence[Measured] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure: its chart as SVG, its numbers as a table and as JSON data, and its claims.

    ``size`` says how much was run, ``repeats`` how often, and ``warning`` why claims say less than
    they would.
    """

    title: str
    paper: str
    size: str
    repeats: str
    warning: str
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    claims: Sequence[Judged]
    data: Mapping[str, object]

    def write(self, folder: Path, name: str) -> None:
        """Write ``name``.svg and ``name``.json into a folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(self.svg, encoding="utf-8")
        document = {**self.summary, "data": dict(self.data)}
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")

    @property
    def summary(self) -> dict[str, object]:
        """What was run, the table, and what came of the claims, for JSON."""
        claims = [{**dataclasses.asdict(claim), "verdict": claim.verdict} for claim in self.claims]
        return {
            "title": self.title,
            "paper": self.paper,
            "size": self.size,
            "repeats": self.repeats,
            "warning": self.warning,
            "table": [list(self.columns), *map(list, self.rows)],
            "claims": claims,
        }

    def show(self, console: Console) -> None:
        """Print the numbers and the claims."""
        console.print(f"{self.title} ({self.paper})", style="bold", soft_wrap=True)
        runs = f"{self.size}; {self.repeats}" if self.repeats else self.size
        console.print(runs, soft_wrap=True)
        numbers = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for place, column in enumerate(self.columns):
            numbers.add_column(column, justify="right" if place else "left", no_wrap=True)
        for row in self.rows:
            numbers.add_row(*row)
        console.print(numbers)
        if self.warning:
            console.print(self.warning, style="yellow", soft_wrap=True)
        claims = Table("who", "says", "ours", "", box=box.SIMPLE_HEAD, padding=(0, 1, 1, 0))
        for claim in self.claims:
            ours = f"{claim.ours}\n{claim.remark}" if claim.remark else claim.ours
            verdict = claim.verdict if claim.holds else claim.verdict.replace("differs", "DIFFERS")
            claims.add_row(claim.source, claim.says, ours, verdict)
        console.print(claims)
        console.print()


def drawn(
    name: str, outcome: Outcome, repeats: Repeats | None = None, *, quick: bool = False
) -> Figure:
    """Return a figure: its texts, and what its runs gave; ``quick`` are those that may say less."""
    texts: Mapping[str, Any] = TEXTS[name]
    bounds = {**TEXTS["bounds"], **texts.get("bounds", {})}
    measured = {**bounds, **outcome.measured}
    if repeats is None and outcome.turns:
        repeats = Repeats("turns", outcome.turns)
    if repeats is not None:
        every = [{**bounds, **outcome.measured, **each} for each in repeats.measured]
        repeats = Repeats(repeats.of, every)
    title = texts["title"].format_map(measured)
    x, y = (Axis(**texts.get(axis, {})) for axis in "xy")
    chart = Chart(title, x, y, texts.get("dashed", ()), texts.get("mark", ""))
    columns, cells = texts["columns"], texts["cells"]
    if isinstance(columns, str):
        columns = [columns.format(point) for point in outcome.points]
    if isinstance(cells, str):
        cells = [cells] * len(columns)
    less = texts.get("quick") if quick else None
    return Figure(
        title,
        texts["paper"],
        texts["size"].format_map(measured),
        "" if repeats is None else repeats.name,
        f"With --quick: {less}. What is claimed may come out otherwise." if less else "",
        chart.bars(columns, outcome.bars)
        if outcome.bars
        else chart.lines(outcome.lines, outcome.marks),
        (texts["corner"], *columns),
        [
            (row, *(cell.format(value) for cell, value in zip(cells, values, strict=True)))
            for row, values in outcome.rows.items()
        ],
        [Claim(**claim).judged(measured, repeats) for claim in texts["claims"]],
        outcome.data,
    )
