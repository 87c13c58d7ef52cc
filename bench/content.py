"""``python -m bench content``: rows of several classes, each with another best order.

Four predicates over rows of four kinds, interleaved; each rejects nine tenths of one kind and one
tenth of the others. The kind is an argument, so the adaptive policy can have rows told apart by it
(content-based routing: Bizarro, Babu, DeWitt and Widom, VLDB 2005). Calls are those of one
``adapt`` over those of one ``adapt`` for each kind: on the virtual clock, where they repeat to the
last one, and on Spark itself.

``without`` are twenty workloads of ``bench predicates`` whose predicates see none of the columns:
four kinds, numbers and texts at random, and the row's number. Their calls and time are over those
with the same policy when it tells no rows apart. Time there is the predicates' on the virtual
clock, and this machine's for all else.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from rich.table import Table

import eddyline
from bench import report
from bench.against_plain import CORES, PLAIN
from bench.predicates.workload import Workload, workloads
from bench.simulation.known_costs import BATCH, VISIT
from bench.turns import Spread, in_turns
from eddyline.engine.filter.content_classes import ToldApart
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.expressions import And, Argument, Call
from eddyline.expressions.vector import Vector
from eddyline.simulation.virtual_clock import VirtualClock

KINDS: Final = 4
ROWS: Final = 200_000
PASSES: Final = 0.9
REJECTS_OF_ITS_KIND: Final = 0.9
MICROSECONDS: Final = 50.0

AT_MOST_OF_APART: Final = 1.10
"""The target for the calls of one ``adapt``, over those of one for each kind."""

AT_MOST_WITHOUT: Final = 1.01
"""The target where no column helps, for calls and for time."""

WITHOUT_ROWS: Final = 40_000

ADAPT, APART = "adapt", "apart"


class MachinesClock(VirtualClock):
    """Goes on by itself, by the processor's time of this process, beside what is advanced."""

    resolution = 1e-7

    def now(self) -> float:
        """Return the time."""
        return super().now() + time.process_time()


@dataclass(slots=True)
class Known:
    """A predicate of known outcomes, by the number of the row, which is its first argument."""

    clock: VirtualClock
    seconds: float
    passes: npt.NDArray[np.bool_]
    calls: int = 0
    vectorized: bool = False

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Look the rows up."""
        self.calls += rows
        self.clock.advance(VISIT + self.seconds * rows)
        return Vector(pa.array(self.passes[columns[0].to_numpy()]))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an eddy did: calls, seconds, rows that passed, and what rows were told apart by.

    So many of the seconds were spent ``looking`` for classes.
    """

    calls: int
    seconds: float
    passed: int
    told_apart: tuple[ToldApart, ...]
    looking: float


def run(
    passes: npt.NDArray[np.bool_],
    microseconds: Sequence[float],
    columns: Sequence[pa.Array],
    clock: VirtualClock,
    *,
    by_content: bool = True,
) -> Outcome:
    """Run predicates (by row) that are given the row's number and these columns, too."""
    rows = passes.shape[1]
    known = [Known(clock, cost * 1e-6, own) for cost, own in zip(microseconds, passes, strict=True)]
    given = [pa.array(np.arange(rows)), *columns]
    arguments = tuple(Argument(number, column.type) for number, column in enumerate(given))
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(i, arguments, pa.bool_()) for i in range(len(known))))),
        known,
        lambda: AdaptivePolicy(by_content=by_content),
        clock,
        np.random.default_rng(0),
    )
    began, passed = clock.now(), 0
    for start in range(0, rows, BATCH):
        batch = [column.slice(start, BATCH) for column in given]
        passed += len(eddy.filter(batch, len(batch[0])).kept)
    calls = sum(one.calls for one in known)
    seconds, looking = clock.now() - began, eddy.eddy.looking_seconds
    return Outcome(calls, seconds, passed, eddy.told_apart, looking)


def kinds(
    rows: int, draw: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the kind of each row, and what each predicate says of it."""
    kind = np.arange(rows) % KINDS
    drawn = draw.random((KINDS, rows))
    bounds = np.where(kind == np.arange(KINDS)[:, None], 1.0 - REJECTS_OF_ITS_KIND, PASSES)
    return kind, drawn < bounds


def on_the_virtual_clock() -> dict[str, int]:
    """Return the calls of one eddy for all kinds, with and without classes, and of one for each."""
    kind, passes = kinds(ROWS, np.random.default_rng(0))
    costs = (MICROSECONDS,) * KINDS
    column = pa.array(kind)

    def apart(number: int) -> Outcome:
        own = kind == number
        return run(passes[:, own], costs, [column.filter(pa.array(own))], VirtualClock())

    return {
        ADAPT: run(passes, costs, [column], VirtualClock()).calls,
        "adapt without classes": run(
            passes, costs, [column], VirtualClock(), by_content=False
        ).calls,
        APART: sum(apart(number).calls for number in range(KINDS)),
    }


def without() -> list[Workload]:
    """Return twenty workloads: 2 and 4 predicates of 5 and 50 microseconds, and 8 of 50."""
    wanted = [*((n, cost) for n in (2, 4) for cost in (5.0, 50.0)), (8, 50.0)]
    return [
        dataclasses.replace(workload, rows=WITHOUT_ROWS)
        for workload in workloads(1.0)
        if not workload.asleep
        and len(set(workload.costs)) == 1
        and (len(workload.costs), workload.costs[0]) in wanted
    ]


def useless(rows: int) -> list[pa.Array]:
    """Return columns that say nothing of what predicates do."""
    draw = np.random.default_rng(1)
    texts = np.array(["Berlin", "Lima", "Oslo", "Quito", "Rome"])
    return [
        pa.array(draw.integers(0, 4, rows)),
        pa.array(draw.random(rows)),
        pa.array(texts[draw.integers(0, 5, rows)]),
    ]


@dataclass(frozen=True, slots=True)
class Without:
    """What telling rows apart costs where no column helps, over what is without."""

    calls: float
    seconds: Spread
    looking: float
    told_apart: int

    @classmethod
    def of(cls, workload: Workload, turns: int, tick: Callable[[], None]) -> Without:
        """Measure a workload."""
        passes, columns = workload.outcomes(), useless(workload.rows)

        def turn(clock: type[VirtualClock], *, by_content: bool) -> Outcome:
            return run(passes, workload.costs, columns, clock(), by_content=by_content)

        with_, plain = (turn(VirtualClock, by_content=by) for by in (True, False))
        if with_.passed != plain.passed:
            raise AssertionError(f"{plain.passed} rows became {with_.passed}")
        taken = in_turns(
            {
                "with": lambda: turn(MachinesClock, by_content=True),
                "plain": lambda: turn(MachinesClock, by_content=False),
            },
            turns,
            progress=tick,
        )
        both = zip(taken["with"], taken["plain"], strict=True)
        ratios = [one.seconds / other.seconds for one, other in both]
        looking = [one.looking / one.seconds for one in taken["with"]]
        return cls(
            with_.calls / plain.calls,
            Spread.of(ratios),
            statistics.median(looking),
            sum(told.rows for told in with_.told_apart),
        )


def functions(microseconds: float) -> list[Callable[[int, int], bool]]:
    """Return the predicates as a user would write them, of the kind of a row and a number."""

    def predicate(own: int) -> Callable[[int, int], bool]:
        seconds, clock = microseconds * 1e-6, time.perf_counter

        def spinning(kind: int, number: int) -> bool:
            end = clock() + seconds
            while clock() < end:
                pass
            share = 1.0 - REJECTS_OF_ITS_KIND if kind == own else PASSES
            return number < share * (1 << 20)

        return spinning

    return [predicate(own) for own in range(KINDS)]


def table_of(spark: SparkSession, rows: int, kind: int | None = None) -> DataFrame:
    """Return rows of all kinds in turn, or those of one, with a number at random a predicate.

    Were those of one kind filtered from all, Spark would know the kind, and ask each predicate
    twice: of the column and of the constant.
    """
    numbers = (f"xxhash64(id, {i}) & 1048575 AS u{i}" for i in range(KINDS))
    frame = spark.range(rows, numPartitions=CORES)
    if kind is not None:
        frame = spark.range(kind, rows, KINDS, numPartitions=CORES).toDF("id")
    return frame.selectExpr("id", f"id % {KINDS} AS kind", *numbers).localCheckpoint()


def filtered(frame: DataFrame, microseconds: float) -> DataFrame:
    """Return the query."""
    for number, function in enumerate(functions(microseconds)):
        frame = frame.filter(F.udf(function, "boolean")(F.col("kind"), F.col(f"u{number}")))
    return frame


@dataclass(frozen=True, slots=True)
class OnSpark:
    """A run on Spark: seconds, calls (0 where nobody counts), and the rows that passed."""

    seconds: float
    calls: int
    passed: tuple[int, int]
    told_apart: Sequence[Mapping[str, object]] = ()


def on_spark(spark: SparkSession, rows: int, turns: int) -> dict[str, list[OnSpark]]:
    """Let one ``adapt`` and one for each kind take turns; plain Spark says once what is right.

    The functions of each run cost another nanosecond, so that nothing is known of them from before.
    """
    nanoseconds = itertools.count()
    frame = table_of(spark, rows)
    of_kinds = [table_of(spark, rows, kind) for kind in range(KINDS)]

    def counted(query: DataFrame) -> tuple[int, int]:
        one = query.agg(F.count("*"), F.sum("id")).first()
        return (0, 0) if one is None else (int(one[0]), int(one[1] or 0))

    def adapted(query: DataFrame) -> OnSpark:
        microseconds = MICROSECONDS + 1e-3 * next(nanoseconds)
        fast = eddyline.adapt(filtered(query, microseconds))
        began = time.perf_counter()
        passed = counted(fast)
        seconds = time.perf_counter() - began
        done = eddyline.report(fast).to_dict()["blocks"][0]["run"]
        return OnSpark(seconds, done["calls"], passed, done["told_apart"])

    def plain() -> OnSpark:
        query = filtered(frame, MICROSECONDS)
        began = time.perf_counter()
        passed = counted(query)
        return OnSpark(time.perf_counter() - began, 0, passed)

    def apart() -> OnSpark:
        parts = [adapted(one) for one in of_kinds]
        return OnSpark(
            sum(part.seconds for part in parts),
            sum(part.calls for part in parts),
            (sum(part.passed[0] for part in parts), sum(part.passed[1] for part in parts)),
        )

    taken = in_turns({ADAPT: lambda: adapted(frame), APART: apart}, turns)
    taken[PLAIN] = [plain()] * turns
    if len({run.passed for runs in taken.values() for run in runs}) > 1:
        raise AssertionError("the answers differ")
    return taken


def main(arguments: Sequence[str]) -> int:
    """Measure all three, write the file, print the tables."""
    parser = report.argument_parser("bench content", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"on Spark (default: {ROWS:,})")
    parser.add_argument("--only", default="", help="clock, without or spark (default: all)")
    options = parser.parse_args(arguments)
    document: dict[str, object] = {"turns": options.turns}
    shown = []
    if options.only in ("", "clock"):
        calls = on_the_virtual_clock()
        document["clock"] = calls
        shown.append(
            report.table(
                f"{ROWS:,} rows, virtual clock",
                ("", "calls", "of one for each kind"),
                [(name, f"{n:,}", f"{n / calls[APART]:.3f}") for name, n in calls.items()],
                caption=f"target for adapt: {AT_MOST_OF_APART}",
            )
        )
    if options.only in ("", "without"):
        chosen = without()
        with report.progress(2 * len(chosen) * (options.turns + 1)) as advance:
            results = {one.name: Without.of(one, options.turns, advance) for one in chosen}
        document["without"] = {name: dataclasses.asdict(one) for name, one in results.items()}
        shown.append(
            report.table(
                "no column helps: with classes looked for, over without",
                ("workload", "calls", "time", "of it looking", "rows told apart"),
                [
                    (
                        name,
                        f"{one.calls:.4f}",
                        _fine(one.seconds),
                        f"{100 * one.looking:.2f} %",
                        f"{one.told_apart:,}",
                    )
                    for name, one in results.items()
                ],
                caption=f"targets: {AT_MOST_WITHOUT} each",
            )
        )
    if options.only in ("", "spark"):
        spark = eddyline.session("eddyline-bench", master=f"local[{CORES}]")
        taken = on_spark(spark, options.rows, options.turns)
        spark.stop()
        document["spark"] = {
            name: [dataclasses.asdict(one) for one in runs] for name, runs in taken.items()
        }
        shown.append(_of_spark(taken, options.rows))
    path = report.write(options, "content", document)
    report.show(*shown, f"written: {path}")
    return 0


def _of_spark(taken: Mapping[str, Sequence[OnSpark]], rows: int) -> Table:
    apart = taken[APART]

    def ratio(name: str, of: Callable[[OnSpark], float]) -> str:
        both = zip(taken[name], apart, strict=True)
        return str(Spread.of(of(one) / of(other) for one, other in both))

    return report.table(
        f"{rows:,} rows on Spark, over one adapt for each kind: median (least-greatest)",
        ("", "calls", "time"),
        [
            (name, ratio(name, lambda one: one.calls), ratio(name, lambda one: one.seconds))
            for name in taken
        ],
        caption=f"target for the calls of adapt: {AT_MOST_OF_APART}; plain Spark ran once",
    )


def _fine(spread: Spread) -> str:
    return f"{spread.median:.4f} ({spread.least:.4f}-{spread.greatest:.4f})"
