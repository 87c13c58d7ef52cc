"""What all benchmarks share around the runs: command line, progress, tables, JSON files."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

RESULTS: Final = Path("bench/results")

WIDTH: Final = 160
"""Columns of the output where there is no terminal to say."""


def argument_parser(
    name: str, description: str | None, *, turns: int | None = 5
) -> argparse.ArgumentParser:
    """Return a parser of what all benchmarks take: turns, if there are any, and out."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    if turns is not None:
        said = f"counted turns (default: {turns})"
        parser.add_argument("--turns", type=int, default=turns, help=said)
    parser.add_argument("--out", type=Path, default=RESULTS, help="for the files it writes")
    return parser


@contextmanager
def progress(runs: int) -> Iterator[Callable[..., None]]:
    """Show how many of the runs are done.

    To be called after every run, and with the ``case`` that is at its beginning.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=runs)

        def advance(case: str = "") -> None:
            if not case:
                bar.advance(task)
                return
            bar.update(task, description=case)
            if not console.is_terminal:  # where a bar would show only at the end
                console.print(case)

        yield advance


def table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    caption: str | None = None,
    *,
    words: Collection[str] = (),
) -> Table:
    """Return a table of names and numbers; ``words`` are the columns that hold no numbers."""
    shown = Table(title=title, caption=caption)
    for place, column in enumerate(columns):
        left = not place or column in words
        shown.add_column(column, justify="left" if left else "right", no_wrap=not place)
    for row in rows:
        shown.add_row(*row)
    return shown


def show(*shown: Table | str) -> None:
    """Print tables and lines."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for each in shown:
        console.print(each, soft_wrap=isinstance(each, str))


def write(options: argparse.Namespace, name: str, document: Mapping[str, object]) -> Path:
    """Write ``name``.json into the folder that the command line said; return where it is."""
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / f"{name}.json"
    machine = {"python": sys.version.split()[0], "cpu": platform.machine()}
    path.write_text(json.dumps({"machine": machine, **document}, indent=1), encoding="utf-8")
    return path
