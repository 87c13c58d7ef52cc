"""``python -m bench growth``: how time grows with terms and relations.

Filters of 2 to 1,000 terms in the engine (what the eddy takes beyond the calls) and on Spark
(over plain Spark), joins of 20 to 60 relations in the engine. Each run is that of a new eddy
that knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median
from typing import Final

import eddyline
from bench import report
from bench.chart import Axis, Chart
from bench.engine_joins import many_relations
from bench.growth import on_spark, terms
from bench.turns import Turns, in_turns

CONNECTIVES: Final = ("AND", "OR")
TERMS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
TERMS_ON_SPARK: Final = (2, 10, 100, 300, 1000)
RELATIONS: Final = (20, 30, 40, 60)
ROWS_OF_RELATIONS: Final = (1, 1000)

LINEAR: Final = 1.0
"""Target: time beyond the calls, a term, of 1,000 terms over that of 100."""

AGAINST_PLAIN: Final = 1.2
"""Target: 100 cheap conjuncts over 10,000 rows, over plain Spark."""


Curves = dict[str, dict[int, list[float]]]
"""Seconds or visits of each turn, by curve and size."""


def main(arguments: Sequence[str]) -> int:
    """Measure, print the curves and write them."""
    parser = report.argument_parser("bench growth", __doc__)
    parser.add_argument("--policy", default="adaptive", help="of the engine's filters")
    parser.add_argument("--without-spark", action="store_true", help="only the engine")
    options = parser.parse_args(arguments)
    steps = options.turns * (
        len(CONNECTIVES) * len(TERMS)
        + len(many_relations.SHAPES) * len(RELATIONS) * len(ROWS_OF_RELATIONS)
    )
    if not options.without_spark:
        steps += 2 * (options.turns + 1) * len(CONNECTIVES) * len(TERMS_ON_SPARK)
    with report.progress(steps) as advance:
        filters = _filters(options.policy, options.turns, advance)
        joins = _joins(options.turns, advance)
        spark = {} if options.without_spark else _on_spark(options.turns, advance)
    _show_filters(filters, options.policy)
    _show_joins(joins)
    if spark:
        _show_spark(spark)
    report.write(options, "growth", {"filters": filters, "joins": joins, "spark": spark})
    (options.out / "growth.svg").write_text(_chart(filters), encoding="utf-8")
    return 0


def _filters(policy: str, turns: int, advance: Callable[[], None]) -> Curves:
    terms.warm()
    curves: Curves = {}
    for connective in CONNECTIVES:
        for count in TERMS:
            run = partial(terms.beyond, connective, count, policy)
            runs = in_turns({"": run}, turns, uncounted=0, progress=advance)[""]
            curves.setdefault(connective, {})[count] = [run.seconds for run in runs]
            curves.setdefault(f"{connective}, visits", {})[count] = [run.visits for run in runs]
    return curves


def _joins(turns: int, advance: Callable[[], None]) -> Curves:
    many_relations.start("chain", 3)
    return {
        f"{shape}, {rows} rows each": {
            count: in_turns(
                {"": partial(many_relations.start, shape, count, rows)},
                turns,
                uncounted=0,
                progress=advance,
            )[""]
            for count in RELATIONS
        }
        for shape in many_relations.SHAPES
        for rows in ROWS_OF_RELATIONS
    }


def _on_spark(turns: int, advance: Callable[[], None]) -> Curves:
    session = eddyline.session("eddyline-bench", master="local[2]")
    curves: Curves = {}
    for connective in CONNECTIVES:
        for count in TERMS_ON_SPARK:
            measured = on_spark.measure(session, connective, count, turns, advance)
            for who, seconds in measured.seconds.items():
                curves.setdefault(f"{connective}, {who}", {})[count] = list(seconds)
    session.stop()
    return curves


def _show_filters(curves: Curves, policy: str) -> None:
    def cells(connective: str, count: int) -> tuple[str, str, str]:
        seconds = median(curves[connective][count])
        visits = median(curves[f"{connective}, visits"][count])
        return f"{1e3 * seconds:.1f}", f"{1e3 * seconds / count:.3f}", f"{visits:.0f}"

    def verdict(connective: str) -> str:
        each = {n: median(curves[connective][n]) / n for n in (100, 1000)}
        ratio = each[1000] / each[100]
        return (
            f"{connective}: a term of 1,000 takes {ratio:.2f} times what one of 100 takes "
            f"(target {LINEAR}: {'met' if ratio <= LINEAR else 'missed'})"
        )

    title = f"Beyond the calls, {terms.ROWS} rows, {policy}: ms, and visits"
    columns = (name for connective in CONNECTIVES for name in (connective, "a term", "visits"))
    _show(title, columns, TERMS, cells)
    report.show(*map(verdict, CONNECTIVES))


def _show_joins(curves: Curves) -> None:
    rows = (
        (str(count), *(f"{1e3 * median(curve[count]):.0f}" for curve in curves.values()))
        for count in RELATIONS
    )
    title = "Joins, from the query to the last row: ms"
    report.show(report.table(title, ("relations", *curves), rows))


def _show_spark(curves: Curves) -> None:
    def cells(connective: str, count: int) -> tuple[str, str, str]:
        both = Turns({who: curves[f"{connective}, {who}"][count] for who in ("plain", "adapted")})
        ratio = both.ratio("adapted", "plain")
        return f"{both.median('plain'):.2f}", f"{both.median('adapted'):.2f}", str(ratio)

    title = f"On Spark, {on_spark.ROWS} rows: adapt and count over plain Spark's count"
    columns = (name for c in CONNECTIVES for name in (f"{c}, plain s", "adapted s", "ratio"))
    _show(title, columns, TERMS_ON_SPARK, cells)
    report.show(f"target, 100 terms of AND: {AGAINST_PLAIN}")


def _show(
    title: str,
    columns: Iterable[str],
    counts: Sequence[int],
    cells: Callable[[str, int], Sequence[str]],
) -> None:
    rows = (
        (str(count), *(cell for connective in CONNECTIVES for cell in cells(connective, count)))
        for count in counts
    )
    report.show(report.table(title, ("terms", *columns), rows))


def _chart(curves: Curves) -> str:
    chart = Chart(
        f"Filters of 2 to 1,000 terms over {terms.ROWS} rows: time beyond the calls",
        Axis("terms", scale="log"),
        Axis("milliseconds", scale="log"),
    )
    return chart.lines({c: [(n, 1e3 * median(curves[c][n])) for n in TERMS] for c in CONNECTIVES})
