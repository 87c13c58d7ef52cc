"""``python -m bench growth``: how time grows with terms and relations.

Filters of 2 to 1,000 terms in the engine (what the eddy takes beyond the calls) and on Spark
(over plain Spark), joins of 20 to 60 relations in the engine. Each run is that of a new eddy
that knows nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import eddyline
from bench.engine_joins import many_relations
from bench.growth import on_spark, terms
from eddyline.reports.axes import Axis, Scale
from eddyline.reports.svg import Series, line_chart

CONNECTIVES: Final = ("AND", "OR")
TERMS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
TERMS_ON_SPARK: Final = (2, 10, 100, 300, 1000)
RELATIONS: Final = (20, 30, 40, 60)
ROWS_OF_RELATIONS: Final = (1, 1000)

LINEAR: Final = 1.0
"""Target: time beyond the calls, a term, of 1,000 terms over that of 100."""

AGAINST_PLAIN: Final = 1.2
"""Target: 100 cheap conjuncts over 10,000 rows, over plain Spark."""


def main(arguments: Sequence[str]) -> int:
    """Measure, print the curves and write them."""
    parser = argparse.ArgumentParser(prog="python -m bench growth", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="counted turns (default: 5)")
    parser.add_argument("--policy", default="adaptive", help="of the engine's filters")
    parser.add_argument("--without-spark", action="store_true", help="only the engine")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="for the files")
    options = parser.parse_args(arguments)
    console = Console()
    steps = options.turns * (
        len(CONNECTIVES) * len(TERMS)
        + len(many_relations.SHAPES) * len(RELATIONS) * len(ROWS_OF_RELATIONS)
    )
    if not options.without_spark:
        steps += 2 * (options.turns + 1) * len(CONNECTIVES) * len(TERMS_ON_SPARK)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("growth", total=steps)

        def advance() -> None:
            bar.advance(task)

        filters = _filters(options.policy, options.turns, advance)
        joins = _joins(options.turns, advance)
        spark = {} if options.without_spark else _on_spark(options.turns, advance)
    _show_filters(console, filters, options.policy)
    _show_joins(console, joins)
    if spark:
        _show_spark(console, spark)
    options.out.mkdir(parents=True, exist_ok=True)
    results = {"filters": filters, "joins": joins, "spark": spark}
    (options.out / "growth.json").write_text(json.dumps(results, indent=1))
    (options.out / "growth.svg").write_text(_chart(filters), encoding="utf-8")
    return 0


Curves = dict[str, dict[int, list[float]]]
"""Seconds or ratios of each turn, by curve and size."""


def _filters(policy: str, turns: int, advance: on_spark.Progress) -> Curves:
    terms.warm()
    curves: Curves = {}
    for connective in CONNECTIVES:
        curves[connective] = {}
        for count in TERMS:
            runs = []
            for _ in range(turns):
                runs.append(terms.beyond(connective, count, policy))
                advance()
            curves[connective][count] = [run.seconds for run in runs]
            curves.setdefault(f"{connective}, visits", {})[count] = [run.visits for run in runs]
    return curves


def _joins(turns: int, advance: on_spark.Progress) -> Curves:
    curves: Curves = {}
    many_relations.start("chain", 3)
    for shape in many_relations.SHAPES:
        for rows in ROWS_OF_RELATIONS:
            curve = curves[f"{shape}, {rows} rows each"] = {}
            for count in RELATIONS:
                curve[count] = []
                for _ in range(turns):
                    curve[count].append(many_relations.start(shape, count, rows))
                    advance()
    return curves


def _on_spark(turns: int, advance: on_spark.Progress) -> Curves:
    session = eddyline.session("eddyline-bench", master="local[2]")
    curves: Curves = {}
    for connective in CONNECTIVES:
        for count in TERMS_ON_SPARK:
            measured = on_spark.measure(session, connective, count, turns, advance)
            for who, seconds in measured.seconds.items():
                curves.setdefault(f"{connective}, {who}", {})[count] = list(seconds)
    session.stop()
    return curves


def _show_filters(console: Console, curves: Curves, policy: str) -> None:
    table = Table("terms", title=f"Beyond the calls, {terms.ROWS} rows, {policy}: ms, and visits")
    for connective in CONNECTIVES:
        for column in (connective, "a term", "visits"):
            table.add_column(column, justify="right")
    for count in TERMS:
        cells = []
        for connective in CONNECTIVES:
            seconds = statistics.median(curves[connective][count])
            visits = statistics.median(curves[f"{connective}, visits"][count])
            cells += [f"{1e3 * seconds:.1f}", f"{1e3 * seconds / count:.3f}", f"{visits:.0f}"]
        table.add_row(str(count), *cells)
    console.print(table)
    for connective in CONNECTIVES:
        each = {n: statistics.median(curves[connective][n]) / n for n in (100, 1000)}
        ratio = each[1000] / each[100]
        verdict = "met" if ratio <= LINEAR else "missed"
        console.print(
            f"{connective}: a term of 1,000 takes {ratio:.2f} times what one of 100 takes "
            f"(target {LINEAR}: {verdict})"
        )


def _show_joins(console: Console, curves: Curves) -> None:
    table = Table("relations", title="Joins, from the query to the last row: ms")
    for name in curves:
        table.add_column(name, justify="right")
    for count in RELATIONS:
        medians = (1e3 * statistics.median(curve[count]) for curve in curves.values())
        table.add_row(str(count), *(f"{median:.0f}" for median in medians))
    console.print(table)


def _show_spark(console: Console, curves: Curves) -> None:
    title = f"On Spark, {on_spark.ROWS} rows: adapt and count over plain Spark's count"
    table = Table("terms", title=title)
    for connective in CONNECTIVES:
        for column in (f"{connective}, plain s", "adapted s", "ratio"):
            table.add_column(column, justify="right")
    for count in TERMS_ON_SPARK:
        cells = []
        for connective in CONNECTIVES:
            plain, adapted = (curves[f"{connective}, {who}"][count] for who in ("plain", "adapted"))
            ratios = [own / other for own, other in zip(adapted, plain, strict=True)]
            cells += [
                f"{statistics.median(plain):.2f}",
                f"{statistics.median(adapted):.2f}",
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})",
            ]
        table.add_row(str(count), *cells)
    console.print(table)
    console.print(f"target, 100 terms of AND: {AGAINST_PLAIN}")


def _chart(curves: Curves) -> str:
    return line_chart(
        [
            Series(c, [(n, 1e3 * statistics.median(curves[c][n])) for n in TERMS])
            for c in CONNECTIVES
        ],
        f"Filters of 2 to 1,000 terms over {terms.ROWS} rows: time beyond the calls",
        "terms",
        "milliseconds",
        x_axis=Axis(Scale.LOGARITHMIC),
        y_axis=Axis(Scale.LOGARITHMIC),
    )
