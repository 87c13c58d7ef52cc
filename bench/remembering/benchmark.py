"""``python -m bench remembering``: functions whose arguments repeat much, as in life, or never.

300,000 rows (30,000 for functions of 200 µs, so that plain Spark takes some seconds) with 1,000
distinct arguments, arguments by Zipf's law (1.2) or all distinct ones; the functions keep their
core busy for 2, 20 or 200 µs. They stand alone in a filter or in a select list, below a limit,
above a join, in an aggregate, or there are two. The opponents are plain Spark and, by hand, the
same functions behind ``functools.lru_cache``, with a cache a task.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from bench.against_plain import (
    AUTO,
    BY_HAND,
    CORES,
    PLAIN,
    Query,
    Target,
    argument_parser,
    run,
    start,
)
from bench.remembering.arguments import Law, groups, table_of
from bench.remembering.functions import Kind, as_udf

ROWS: Final = 300_000
MICROSECONDS: Final = (2.0, 20.0, 200.0)
SLOW: Final = 200.0
ROWS_IF_SLOW: Final = 30_000
"""Of functions that take so many microseconds: 3 s on each of two cores."""

PLACES: Final = {
    "filter": "SELECT id, x FROM {rows} WHERE f(x) < 10",
    "select list": "SELECT id, f(x) AS value FROM {rows}",
    "select list under a limit": "SELECT id, f(x) AS value FROM {rows} ORDER BY id LIMIT 1000",
    "select list above a join": (
        "SELECT id, kind, f(x) AS value FROM {rows} JOIN groups ON {rows}.grp = groups.grp"
    ),
    "aggregate's argument": "SELECT grp, sum(f(x)) AS value FROM {rows} GROUP BY grp",
    "grouping key": "SELECT f(x) AS value, count(*) AS many FROM {rows} GROUP BY f(x)",
    "two in a filter": "SELECT id FROM {rows} WHERE f(x) < 90 AND g(y) < 10",
    "filter and select list": "SELECT id, g(y) AS value FROM {rows} WHERE f(x) < 50",
}
"""Queries by where the functions stand in them."""

FEW: Final = "1,000 distinct, 20 µs, alone"
NONE_TWICE: Final = "all distinct"
OTHERS: Final = "others"
"""The kinds of cases; the first two have targets."""

TARGETS: Final = (
    Target(PLAIN, FEW, greatest=0.10),
    Target(PLAIN, NONE_TWICE, greatest=1.03),
)


@dataclass(frozen=True, slots=True)
class Case:
    """Functions of one cost and kind, in one place of a query, asked by one law."""

    place: str
    law: Law
    microseconds: float
    kind: Kind = Kind.ROW

    @property
    def name(self) -> str:
        """A case's name tells all about it."""
        kind = "" if self.kind is Kind.ROW else f"{self.kind}, "
        return f"{self.place}, {kind}{self.microseconds:g} µs, {self.law}"

    @property
    def group(self) -> str:
        """The kind of cases that it belongs to."""
        if self.law is Law.DISTINCT:
            return NONE_TWICE
        alone = self.place in {"filter", "select list"}
        few = self.law is Law.UNIFORM and self.microseconds == 20.0  # noqa: PLR2004 - as the target says
        return FEW if alone and few else OTHERS

    def query(self, spark: SparkSession, rows: int, folder: Path) -> Query:
        """Return it for the benchmark's frame, with its tables written below ``folder``."""
        rows = max(rows * ROWS_IF_SLOW // ROWS, 1) if self.microseconds == SLOW else rows
        text = PLACES[self.place].format(rows=table_of(spark, self.law, rows, folder))

        def ask(*, cached: bool) -> DataFrame:
            for salt, name in enumerate("fg"):
                function = as_udf(self.kind, self.microseconds, salt=salt, cached=cached)
                spark.udf.register(name, function)
            return spark.sql(text)

        return Query(
            self.name,
            functools.partial(ask, cached=False),
            group=self.group,
            opponents={BY_HAND: functools.partial(ask, cached=True)},
        )


def cases() -> Iterator[Case]:
    """Return all cases, those alone in a filter and in a select list first."""
    for place in ("filter", "select list"):
        for law in Law:
            for microseconds in MICROSECONDS:
                yield Case(place, law, microseconds)
    for kind in (Kind.PANDAS, Kind.ARROW):
        yield Case("filter", Law.UNIFORM, 20.0, kind)
        yield Case("filter", Law.DISTINCT, 20.0, kind)
    for place in list(PLACES)[2:]:
        yield Case(place, Law.UNIFORM, 20.0)
        yield Case(place, Law.DISTINCT, 20.0)


def main(arguments: Sequence[str]) -> int:
    """Measure the cases that the command line asks for."""
    parser = argument_parser("remembering", __doc__, joins=(AUTO,))
    parser.add_argument("--rows", type=int, default=ROWS, help="of a table (default: %(default)s)")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    options = parser.parse_args(arguments)
    chosen = [case for case in cases() if options.only in case.name]
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name")
    with tempfile.TemporaryDirectory(prefix="eddyline-remembering-") as folder:
        spark = start()
        groups(spark, Path(folder))
        run(
            (case.query(spark, options.rows, Path(folder)) for case in chosen),
            name="remembering",
            title="Functions that are asked again",
            count=len(chosen),
            options=options,
            setting={"cores": CORES, "rows": options.rows},
            targets=TARGETS,
            opponents=1,
        )
        spark.stop()
    return 0
