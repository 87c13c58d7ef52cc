"""What every figure is made of, and how it gets onto the screen and the disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table

Advance: TypeAlias = Callable[[], None]
"""Called after every run of an experiment, for the progress bar."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says or what we aim at, beside what came out.

    ``remark`` says what else is to be known, above all why ours differs.
    """

    source: str
    says: str
    ours: str
    holds: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure: its chart as SVG, its numbers as a table and as JSON data, and its claims."""

    title: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    claims: tuple[Claim, ...]
    data: Mapping[str, object]

    def write(self, folder: Path, name: str) -> None:
        """Write ``name``.svg and ``name``.json into a folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(self.svg, encoding="utf-8")
        claims = [
            {
                "source": claim.source,
                "says": claim.says,
                "ours": claim.ours,
                "holds": claim.holds,
                "remark": claim.remark,
            }
            for claim in self.claims
        ]
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
        claims = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 1, 0))
        for column in ("who", "says", "ours", ""):
            claims.add_column(column)
        for claim in self.claims:
            ours = f"{claim.ours}\n{claim.remark}" if claim.remark else claim.ours
            claims.add_row(claim.source, claim.says, ours, "holds" if claim.holds else "DIFFERS")
        console.print(claims)
        console.print()


@dataclass(frozen=True, slots=True)
class Experiment:
    """How a figure is made.

    ``draw`` makes the figure, with less data if its first argument is True;
    ``steps`` says how often it will report progress.
    """

    steps: Callable[[bool], int]
    draw: Callable[[bool, Advance], Figure]
