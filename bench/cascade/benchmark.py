"""``make bench ARGS=cascade``: whether a cascade's guarantee holds, and what its oracle is asked.

Each data set and target is calibrated a hundred times, with other rows drawn each time; the answers
of the oracle are recorded. Then some queries run on Spark, the cascade beside another predicate,
their calls counted. It fails where

- a target is missed in more than five of a hundred runs;
- a run asks, on the average, for more than half of the answers that there would be without cascade;
- a query on Spark makes more calls than one by hand, which labels the same rows, applies the same
  thresholds in a filter of its own, then the other predicate, and asks about what is left.

Beside it stands what the same labels without a proof would do: thresholds at which the labelled
rows, not all, keep the target.
"""

from __future__ import annotations

import argparse
import math
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType
from rich.console import Console
from rich.table import Table

import eddyline
from bench.cascade.data_sets import LabelledRows, generated, texts
from eddyline.cascades.calibration import Calibration, calibrate
from eddyline.cascades.targets import Targets
from eddyline.cascades.thresholds import Thresholds

RUNS: Final = 100
HELD: Final = 0.95
"""Of all runs, in which targets must hold."""

ASKED: Final = 0.5
"""Of the calls without cascade, the most."""

LABELS: Final = 10_000

TARGETS: Final = (
    Targets(0.95, None, 0.05),
    Targets(0.9, None, 0.05),
    Targets(0.95, 0.95, 0.05),
    Targets(0.9, 0.9, 0.05),
)

Answer = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: both shares, and the calls of the oracle."""

    recall: float
    precision: float
    asked: int

    def holds(self, targets: Targets) -> bool:
        """Whether the targets are met."""
        return self.recall >= (targets.recall or 0) and self.precision >= (targets.precision or 0)


def outcome(rows: LabelledRows, answer: Answer, asked: int) -> Outcome:
    """Return what an answer is worth."""
    right = int((answer & rows.accepted).sum())
    return Outcome(
        right / max(1, int(rows.accepted.sum())), right / max(1, int(answer.sum())), asked
    )


def verdicts(rows: LabelledRows, thresholds: Thresholds) -> tuple[Answer, Answer]:
    """Return which rows are accepted, and about which the oracle is asked."""
    accepted = rows.scores > thresholds.high
    dropped = (rows.scores < thresholds.low) & ~accepted
    return accepted, ~accepted & ~dropped


def calibrated(
    rows: LabelledRows, targets: Targets, random: np.random.Generator
) -> tuple[Calibration, npt.NDArray[np.int_]]:
    """Return a calibration, and the rows that were labelled."""
    order = random.permutation(len(rows))

    def label(start: int, stop: int) -> list[tuple[float | None, bool]]:
        return [(float(rows.scores[n]), bool(rows.accepted[n])) for n in order[start:stop]]

    drawn = min(LABELS, len(rows))
    found = calibrate(rows.name, targets, len(rows), drawn, LABELS, label)
    return found, order[: found.labels]


def with_proof(rows: LabelledRows, found: Calibration, labelled: npt.NDArray[np.int_]) -> Outcome:
    """Return what becomes of the rows; what was labelled is known."""
    answer, asked = verdicts(rows, found.thresholds)
    asked[labelled] = True
    answer[asked] = rows.accepted[asked]
    return outcome(rows, answer, int(asked.sum()))


def without_proof(rows: LabelledRows, targets: Targets, labelled: npt.NDArray[np.int_]) -> Outcome:
    """Return the same with the thresholds at which the labelled rows keep the targets."""
    scores, accepted = rows.scores[labelled], rows.accepted[labelled]
    low, high = -math.inf, math.inf
    if targets.recall is not None and accepted.any():
        found = np.sort(np.nan_to_num(scores[accepted], nan=math.inf))
        low = float(found[math.floor((1 - targets.recall) * len(found))])
    if targets.precision is not None:
        kept = int((accepted & ~(scores < low)).sum())
        false = math.floor(kept * (1 - targets.precision) / targets.precision)
        rejected = np.sort(scores[~accepted & ~np.isnan(scores)])[::-1]
        high = float(rejected[false]) if false < len(rejected) else -math.inf
    return with_proof(rows, Calibration("", targets, Thresholds(low, high)), labelled)


def simulated(rows: LabelledRows, targets: Targets, runs: int, table: Table) -> list[str]:
    """Run the statistics; add a row to the table, and return what was missed."""
    random = np.random.default_rng(0)
    proven, unproven, labels = list[Outcome](), list[Outcome](), list[int]()
    for _ in range(runs):
        found, labelled = calibrated(rows, targets, random)
        proven.append(with_proof(rows, found, labelled))
        unproven.append(without_proof(rows, targets, labelled))
        labels.append(found.labels)
    held = sum(one.holds(targets) for one in proven)
    asked = float(np.mean([one.asked for one in proven])) / len(rows)
    table.add_row(
        rows.name,
        _wanted(targets),
        f"{held} of {runs}",
        f"{np.mean([one.recall for one in proven]):.3f}",
        f"{np.mean([one.precision for one in proven]):.3f}",
        f"{np.mean(labels) / len(rows):.1%}",
        f"{asked:.1%}",
        f"{sum(one.holds(targets) for one in unproven)} of {runs}",
        f"{np.mean([one.asked for one in unproven]) / len(rows):.1%}",
    )
    missed = []
    if held < HELD * runs:
        missed.append(f"{rows.name}, {targets}: held in {held} of {runs} runs")
    if asked > ASKED:
        missed.append(f"{rows.name}, {targets}: {asked:.1%} of the rows asked about")
    return missed


def _wanted(targets: Targets) -> str:
    shares = (targets.recall, targets.precision)
    return " / ".join("-" if share is None else f"{share:g}" for share in shares)


class Recorded:
    """An oracle that answers from a record, and counts."""

    def __init__(self, rows: LabelledRows) -> None:
        """Take the record."""
        self._answers = dict(zip(rows.values, rows.accepted.tolist(), strict=True))
        self._lock = threading.Lock()
        self.asked: list[str] = []

    def __call__(self, value: str) -> bool:
        """Return what was recorded."""
        with self._lock:
            self.asked.append(value)
        return bool(self._answers[value])


def on_spark(
    spark: SparkSession, rows: LabelledRows, targets: Targets, runs: int, table: Table
) -> list[str]:
    """Run queries; add a row to the table, and return what was missed."""
    scores = dict(zip(rows.values, rows.scores.tolist(), strict=True))
    keys = [(n, value) for n, value in enumerate(rows.values)]
    frame = spark.createDataFrame(keys, "n int, value string").repartition(4).cache()
    known = spark.sparkContext.broadcast(scores)
    other = F.udf(lambda value: zlib.crc32(value.encode()) % 3 > 0, BooleanType())
    passing = np.array([zlib.crc32(value.encode()) % 3 > 0 for value in rows.values])
    held, asked, by_hand, without = 0, list[int](), list[int](), int(passing.sum())
    missed = []
    for run in range(runs):
        oracle = Recorded(rows)
        cascade = eddyline.cascade(
            eddyline.concurrent(oracle, returns="boolean", max_in_flight=64, batch=None),
            proxy=lambda value: known.value[value],
            recall=targets.recall,
            precision=targets.precision,
            delta=targets.delta,
            seed=run,
        )
        fast = eddyline.adapt(frame.where(other("value") & cascade("value")))
        labels = len(oracle.asked)
        kept = [row.n for row in fast.select("n").collect()]
        (found,) = eddyline.explain(fast).cascades
        answer = np.zeros(len(rows), bool)
        answer[kept] = True
        right = int((answer & rows.accepted).sum())
        recall = right / int((rows.accepted & passing).sum())
        held += Outcome(recall, right / max(1, len(kept)), 0).holds(targets)
        _, undecided = verdicts(rows, found.thresholds)
        asked.append(len(oracle.asked))
        by_hand.append(labels + int((undecided & passing).sum()))
        if asked[-1] > by_hand[-1]:
            missed.append(f"{rows.name} on Spark: {asked[-1]} calls, {by_hand[-1]} by hand")
    frame.unpersist()
    known.destroy()
    share = float(np.mean(asked)) / without
    table.add_row(
        rows.name,
        _wanted(targets),
        f"{held} of {runs}",
        f"{without:,}",
        f"{np.mean(by_hand):,.0f}",
        f"{np.mean(asked):,.0f}",
        f"{share:.1%}",
    )
    if share > ASKED:
        missed.append(f"{rows.name} on Spark, {targets}: {share:.1%} of the calls without cascade")
    return missed


def main(arguments: Sequence[str]) -> int:
    """Print two tables, and what was missed; 1 where something was."""
    parser = argparse.ArgumentParser(prog="bench cascade", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--queries", type=int, default=5, help="on Spark, for each target")
    chosen = parser.parse_args(arguments)
    console = Console(width=120)
    missed: list[str] = []
    table = Table(
        "Rows", "Recall / precision", "Held", "Recall", "Precision", "Labels", "Asked",
        "Unproven: held", "Asked", title=f"{chosen.runs} calibrations each",
    )  # fmt: skip
    for rows in (texts(), generated()):
        console.print(
            f"{rows.name}: {len(rows):,} rows, {rows.accepted.mean():.1%} accepted", highlight=False
        )
        for targets in TARGETS:
            missed += simulated(rows, targets, chosen.runs, table)
    console.print(table)
    spark = eddyline.session("cascade", master="local[2]")
    table = Table(
        "Rows", "Recall / precision", "Held", "Calls without", "By hand", "Cascade", "Of without",
        title=f"{chosen.queries} queries on Spark each, beside a predicate that two thirds pass",
    )  # fmt: skip
    for rows in (texts(), generated()):
        for targets in (TARGETS[0], TARGETS[3]):
            missed += on_spark(spark, rows, targets, chosen.queries, table)
    spark.stop()
    console.print(table)
    for line in missed:
        console.print(f"missed: {line}", highlight=False)
    return 1 if missed else 0
