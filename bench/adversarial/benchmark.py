"""``python -m bench adversarial``: queries on which a fixed order of joins or predicates hurts.

The opponents are plain Spark; the best plan by hand, in ``sql/by_hand``, with the same functions
in other places; and plain Spark on analyzed tables with its cost-based optimizer and Bloom filters.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench.adversarial.analyzed import AnalyzedTables
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
from bench.adversarial.star_of_flights import StarOfFlights
from bench.against_plain import (
    ANALYZED,
    BY_HAND,
    CORES,
    PLAIN,
    Query,
    Target,
    argument_parser,
    run,
    start,
)

COSTLY = "costly predicates"
CHEAP = "cheap or none"
FLIGHTS = "five tables of flights"
"""The kinds of cases: what an eddy can save, what it has to leave alone, and real tables."""

TARGETS = (
    Target(PLAIN, COSTLY, geometric_mean=0.25),
    Target(BY_HAND, COSTLY, geometric_mean=1.10, greatest=1.35),
    Target(PLAIN, CHEAP, greatest=1.05),
    Target(BY_HAND, FLIGHTS, greatest=1.25),
)

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
    StarOfFlights,
)


def group_of(case: Case) -> str:
    """Return the kind of a case."""
    if isinstance(case, StarOfFlights):
        return FLIGHTS
    return COSTLY if case.asks_much else CHEAP


def queries(
    spark: SparkSession, cases: Sequence[type[Case]], folder: Path, size: float
) -> Iterator[Query]:
    """Return the cases one by one, each when its tables have been written below ``folder``."""
    analyzed = AnalyzedTables(spark)
    for kind in cases:
        case = kind(size)
        into = folder / kind.__name__
        case.create(spark, into)
        analyzed.add({name: into / name for name in case.tables}, kind.__name__, into)
        yield Query(
            case.name(),
            functools.partial(case.query, spark),
            note=case.why(),
            group=group_of(case),
            opponents={
                BY_HAND: functools.partial(case.by_hand, spark),
                ANALYZED: functools.partial(case.query, analyzed.session),
            },
        )


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
            targets=TARGETS,
            opponents=2,
        )
        spark.stop()
    return 0
