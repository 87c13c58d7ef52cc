"""Cases in which an input keeps everybody waiting."""

# ruff: noqa: PLR2004 - what a predicate compares with says how much it passes

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.adversarial.case import PARTS, Case, Columns, CostlyFunction

SECONDS = 2.0
"""That an input is late altogether; less where tables are smaller than at size 1."""

Batches = Iterator[pa.RecordBatch]


def late(seconds: float) -> Callable[[Batches], Batches]:
    """Return what lets the rows of a partition through after a time."""
    sleep = time.sleep

    def wait(batches: Batches) -> Batches:
        sleep(seconds)
        yield from batches

    return wait


class LateScan(Case):
    """One table answers only after two seconds, and work that could be done meanwhile waits.

    A hash join starts when its inner side is complete, and the predicate on another table
    stands behind it.
    """

    functions = (CostlyFunction("is_legible", lambda ink: ink < 300, microseconds=60),)

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return letters, the regions of their senders, and a late table of rates."""
        many = self.rows(60_000)
        return {
            "letters": {
                "letter": np.arange(many),
                "region": draw.integers(400, size=many),
                "currency": draw.integers(100, size=many),
                "ink": draw.integers(1000, size=many),
            },
            "regions": {"region": np.arange(400), "zone": np.arange(400) % 10},
            "rates": {"currency": np.arange(100), "rate": draw.integers(1, 50, size=100)},
        }

    def offer_inputs(self, spark: SparkSession) -> None:
        """Make the view of the rates that are late."""
        rates = spark.table("rates")
        # Not over the view of the same name, which it would then contain.
        rates.mapInArrow(late(SECONDS * min(self.size, 1.0)), rates.schema).createOrReplaceTempView(
            "late_rates"
        )


class TricklingInput(Case):
    """A large input comes in trickles, with a pause before each batch.

    The other side has work to do meanwhile: whoever reads one input to its end before the
    other adds the two times up.
    """

    functions = (CostlyFunction("is_understood", lambda words: words < 500, microseconds=120),)

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return answers that trickle in and the questions that they belong to."""
        many = self.rows(300_000)
        questions = self.rows(30_000)
        return {
            "answers": {
                "question": draw.integers(questions, size=many),
                "votes": draw.integers(100, size=many),
            },
            "questions": {
                "question": np.arange(questions),
                "words": draw.integers(1000, size=questions),
                "day": draw.integers(7, size=questions),
            },
        }

    def offer_inputs(self, spark: SparkSession) -> None:
        """Make the view of the answers that trickle in."""
        batches_a_partition = max(self.rows(300_000) / PARTS / 10_000, 1.0)  # as Spark cuts them
        pause = SECONDS * min(self.size, 1.0) / batches_a_partition
        sleep = time.sleep

        def trickle(batches: Batches) -> Batches:
            for batch in batches:
                sleep(pause)
                yield batch

        answers = spark.table("answers")
        answers.mapInArrow(trickle, answers.schema).createOrReplaceTempView("trickling_answers")
