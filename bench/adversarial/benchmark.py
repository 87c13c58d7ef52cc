"""Queries on which a fixed order of joins or predicates hurts, against plain Spark."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench.adversarial.arrival import LateScan, TricklingInput
from bench.adversarial.case import Case
from bench.adversarial.costly_orders import (
    ModelAndBadFromOrder,
    ModelAndMisleadingFileSize,
    ModelInExpandingMiddle,
    ModelOverStar,
    ModelOverTriangle,
    SkewedKeys,
)
from bench.adversarial.orders import (
    BadFromOrder,
    ChainWithExpandingMiddle,
    MisleadingFileSize,
    StarWithSelectiveDimension,
    Triangle,
)
from bench.adversarial.placement import (
    BestPlaceChanges,
    CorrelatedPredicates,
    PredicateAfterJoins,
    PredicateBeforeJoins,
    PredicateBetweenJoins,
    PredicateOverTwoTables,
    SelectivitiesSwap,
)
from bench.against_plain import CORES, Query, argument_parser, run, start

COSTLY = "costly predicates"
CHEAP = "cheap or none"
"""The kinds of cases: what an eddy can save, and what it has to leave alone."""

CASES: tuple[type[Case], ...] = (
    ModelAndBadFromOrder,
    ModelInExpandingMiddle,
    ModelOverStar,
    ModelOverTriangle,
    ModelAndMisleadingFileSize,
    SkewedKeys,
    PredicateBeforeJoins,
    PredicateBetweenJoins,
    PredicateAfterJoins,
    BestPlaceChanges,
    PredicateOverTwoTables,
    CorrelatedPredicates,
    SelectivitiesSwap,
    LateScan,
    TricklingInput,
    BadFromOrder,
    ChainWithExpandingMiddle,
    StarWithSelectiveDimension,
    Triangle,
    MisleadingFileSize,
)


def queries(
    spark: SparkSession, cases: Sequence[type[Case]], folder: Path, size: float
) -> Iterator[Query]:
    """Return the cases one by one, each when its tables have been written below ``folder``."""
    for kind in cases:
        case = kind(size)
        case.create(spark, folder / kind.__name__)
        group = COSTLY if case.asks_much else CHEAP
        yield Query(case.name(), functools.partial(case.query, spark), note=case.why(), group=group)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the cases that the command line asks for."""
    parser = argument_parser("adversarial", __doc__)
    parser.add_argument(
        "--size",
        type=float,
        default=1.0,
        help="of the tables; 1, the default, keeps plain Spark busy for 2 to 10 seconds",
    )
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    options = parser.parse_args(arguments)
    cases = [kind for kind in CASES if options.only in kind.name()]
    if not cases:
        parser.error(f"no case has {options.only!r} in its name")
    with tempfile.TemporaryDirectory(prefix="eddyline-adversarial-") as folder:
        spark = start()
        run(
            queries(spark, cases, Path(folder), options.size),
            name="adversarial",
            title="Adversarial queries",
            count=len(cases),
            options=options,
            setting={"cores": CORES, "size": options.size},
        )
        spark.stop()
    return 0
