"""Avnur and Hellerstein (2000), Figures 4 to 6, on Spark itself: two Python functions in a filter.

Real time, small sizes. What a policy decides is told by its calls, times the delay of each: that
is free of what Spark takes, and of the machine.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.turns import in_turns

ROWS: Final = 5_000
QUICK_ROWS: Final = 1_000
CORES: Final = 2
TURNS: Final = 5

UNIT: Final = 20e-6
"""Seconds of a delay unit: a call is to take far longer than what Spark does around it."""

COSTS: Final = (1.0, 5.0, 9.0)
SELECTIVITIES: Final = (0.1, 0.5, 0.9)

FIRST, SECOND = "s1 before s2", "s2 before s1"
POLICIES: Final = ("naive", "lottery", "adaptive")
UNBUFFERED: Final = {"spark.buffer.size": "256"}
"""Bytes that Spark and its workers gather: by default rows that come slowly wait for 64 KB."""

WHOLE: Final = 1 << 20
"""Numbers that decide whether a row passes are below this."""

NONCE = itertools.count(1)
"""Nanoseconds that functions of a run take longer, so that nothing is known of them from before."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run: delay units of all calls, seconds, and the share of rows that met s1 first."""

    units: float
    seconds: float
    first: float
    passed: tuple[int, int]


@functools.cache
def session() -> SparkSession:
    """Return the session of all figures on Spark."""
    return eddyline.session("eddyline-figures", master=f"local[{CORES}]", config=UNBUFFERED)


@functools.cache
def table(rows: int) -> DataFrame:
    """Return rows with a number at random for each function, in the JVM's memory."""
    numbers = (f"xxhash64(id, {i}) & {WHOLE - 1} AS u{i}" for i in range(2))
    return session().range(rows, numPartitions=CORES).selectExpr("id", *numbers).localCheckpoint()


def delayed(seconds: float, selectivity: float) -> Callable[[int], bool]:
    """Return a predicate that spins for so long, and lets so many of the numbers pass."""
    bound, clock = selectivity * WHOLE, time.perf_counter

    def spinning(number):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - as users write it
        end = clock() + seconds
        while clock() < end:
            pass
        return number < bound

    return spinning


def run(contestant: str, rows: int, costs: Sequence[float], selectivities: Sequence[float]) -> Ran:
    """Run the query with a policy, or in a static order."""
    nonce = next(NONCE) * 1e-9
    frame = table(rows)
    both = [
        F.udf(delayed(cost * UNIT + nonce, share), "boolean")(F.col(f"u{i}"))
        for i, (cost, share) in enumerate(zip(costs, selectivities, strict=True))
    ]
    written = (1, 0) if contestant == SECOND else (0, 1)
    for number in written:
        frame = frame.filter(both[number])
    policy = "static" if contestant in (FIRST, SECOND) else contestant
    fast = eddyline.adapt(frame, policy=policy, remember=False)
    began = time.perf_counter()
    one = fast.agg(F.count("*"), F.sum("id")).first()
    seconds = time.perf_counter() - began
    done = eddyline.report(fast).to_dict()["blocks"][0]["run"]
    calls = {n: done["predicates"][place]["rows_in"] for place, n in enumerate(written)}
    first = sum(o["rows"] for o in done["orders"] if o["order"][:1] == [written.index(0)])
    return Ran(
        sum(costs[n] * count for n, count in calls.items()),
        seconds,
        first / rows,
        (0, 0) if one is None else (int(one[0]), int(one[1] or 0)),
    )


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs of each contestant by point, turn by turn."""

    points: Sequence[float]
    rows: int
    runs: Mapping[float, Mapping[str, Sequence[Ran]]]

    @property
    def turns(self) -> int:
        """How many turns there are."""
        return len(self.runs[self.points[0]][FIRST])

    def numbers(self, contestant: str, of: Callable[[Ran], float], turn: int | None) -> Numbers:
        """Return a number of a contestant by point, in one turn or the median of all."""
        return Numbers(
            statistics.median(map(of, self.runs[point][contestant]))
            if turn is None
            else of(self.runs[point][contestant][turn])
            for point in self.points
        )

    def over_better(
        self, contestant: str, turn: int | None = None, of: Callable[[Ran], float] | None = None
    ) -> Numbers:
        """Return delay units, or other numbers, over those of the better order, by point."""
        of = of or (lambda ran: ran.units)
        orders = [self.numbers(order, of, turn) for order in (FIRST, SECOND)]
        own = self.numbers(contestant, of, turn)
        return Numbers(mine / min(both) for mine, *both in zip(own, *orders, strict=True))

    def claimed(self, turn: int | None = None) -> dict[str, object]:
        """Return what claims are about."""
        naive, lottery = (
            self.numbers(name, lambda ran: ran.first, turn) for name in ("naive", "lottery")
        )
        adaptive = self.numbers("adaptive", lambda ran: ran.first, turn)
        own = {name: self.over_better(name, turn) for name in (*POLICIES, FIRST, SECOND)}
        ways = {
            f"{name}_way": Numbers(
                (mine - 1) / (max(first, second) - 1)
                for mine, first, second in zip(own[name], own[FIRST], own[SECOND], strict=True)
                if max(first, second) > UNEQUAL
            )
            for name in POLICIES
        }
        return {
            **{name: own[name] for name in POLICIES},
            **ways,
            "worse": Numbers(map(max, own[FIRST], own[SECOND])),
            "adaptive_seconds": self.over_better("adaptive", turn, lambda ran: ran.seconds),
            "naive_first": naive,
            "lottery_first": lottery,
            "adaptive_first": adaptive,
        }

    def outcome(self) -> Outcome:
        """Return units over the better order as a table, and thousands of them as lines."""
        names = (FIRST, SECOND, *POLICIES)
        return Outcome(
            {"rows": self.rows, "unit": UNIT * 1e6, **self.claimed()},
            turns=[self.claimed(turn) for turn in range(self.turns)],
            rows={name: [100 * (x - 1) for x in self.over_better(name)] for name in names},
            points=self.points,
            lines={
                name: [
                    (x, units / 1000)
                    for x, units in zip(
                        self.points, self.numbers(name, lambda ran: ran.units, None), strict=True
                    )
                ]
                for name in names
            },
            data=self.data,
        )

    @property
    def data(self) -> dict[str, object]:
        """Everything, for JSON."""
        return {
            str(point): {
                name: {
                    "units": [ran.units for ran in runs],
                    "seconds": [ran.seconds for ran in runs],
                    "first": [ran.first for ran in runs],
                }
                for name, runs in by_name.items()
            }
            for point, by_name in self.runs.items()
        }


UNEQUAL: Final = 1.02
"""Where the worse order takes fewer times the better one's units than this, no order is worse."""


def sweep(
    points: Sequence[float],
    case: Callable[[float], tuple[Sequence[float], Sequence[float]]],
    setting: Setting,
) -> Sweep:
    """Let all contestants take turns at every point."""
    rows = QUICK_ROWS if setting.quick else ROWS
    runs = {}
    for point in points:
        costs, selectivities = case(point)
        contestants = {
            name: functools.partial(run, name, rows, costs, selectivities)
            for name in (FIRST, SECOND, *POLICIES)
        }
        runs[point] = in_turns(contestants, 1 if setting.quick else TURNS, progress=setting.advance)
        if len({ran.passed for of_one in runs[point].values() for ran in of_one}) > 1:
            raise AssertionError("the answers differ")
    return Sweep(points, rows, runs)


@functools.cache
def _over_selectivities(setting: Setting) -> Sweep:
    return sweep(SELECTIVITIES, lambda share: ((5.0, 5.0), (share, 0.5)), setting)


def spark_varied_cost(setting: Setting) -> Outcome:
    """Figure 4: s1 costs 1 to 9 units, s2 costs 5, both pass 50 %."""
    return sweep(COSTS, lambda cost: ((cost, 5.0), (0.5, 0.5)), setting).outcome()


def spark_varied_selectivity(setting: Setting) -> Outcome:
    """Figure 5: s1 passes 10 to 90 %, s2 passes 50 %, both cost 5 units."""
    return _over_selectivities(setting).outcome()


def spark_tuple_flow(setting: Setting) -> Outcome:
    """Figure 6: which way the rows of Figure 5 went."""
    result = _over_selectivities(setting)
    shares = {
        name: [100 * share for share in result.numbers(name, lambda ran: ran.first, None)]
        for name in POLICIES
    }
    return Outcome(
        {"rows": result.rows, "unit": UNIT * 1e6, **result.claimed()},
        turns=[result.claimed(turn) for turn in range(result.turns)],
        rows=shares,
        points=result.points,
        lines={
            name: list(zip(result.points, values, strict=True)) for name, values in shares.items()
        },
        data=result.data,
    )
