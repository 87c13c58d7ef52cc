"""``python -m bench sinks``: what it takes to write the results of 20,000 rules as files.

The rules of ``bench rules``. An event is a result of about one rule, or, with ``--width 31.6``, of
one in a thousand. Results go nowhere, to files by micro-batch, and, if asked for, by query.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.standing.rules import RULE, Setup, make_rules, write_events, written
from bench.turns import Spread, in_turns
from eddyline.standing.sinks import ParquetSink
from eddyline.standing.standing_queries import StandingQueries


def seconds(setup: Setup, *, to_files: bool, by_query: bool = False) -> float:
    """Return the mean seconds of a micro-batch, the first left out."""
    with (
        tempfile.TemporaryDirectory() as state,
        tempfile.TemporaryDirectory() as out,
        StandingQueries(setup.spark, streams={"events": setup.stream()}, state=state) as them,
    ):
        them.add_many(RULE, setup.rules)
        files = ParquetSink(out, by_query)
        sink = files if to_files else lambda results, _: written(results)
        them.start(sink, availableNow=True)
        them.await_termination()
        took = [row["seconds"] for row in them.batches().orderBy("batch").collect()]
    return float(np.mean(took[1:]))


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="sinks", description=__doc__)
    parser.add_argument("--rules", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--width", type=float, default=7, help="of a range among 1,000")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--by-query", action="store_true", help="also files by query: minutes")
    options = parser.parse_args(arguments)
    spark = start()
    with tempfile.TemporaryDirectory() as directory:
        write_events(Path(directory), options.rows)
        setup = Setup(
            spark, Path(directory), make_rules(options.rules, options.width), options.rows
        )
        contestants = {
            "nowhere": partial(seconds, setup, to_files=False),
            "files by micro-batch": partial(seconds, setup, to_files=True),
        }
        took = in_turns(contestants, options.turns)
        if options.by_query:
            took["files by query, once"] = [seconds(setup, to_files=True, by_query=True)]
    title = f"{options.rules:,} rules, ranges of {options.width:g}, {options.rows:,} events"
    table = Table(title=title)
    for heading in ("", "s a micro-batch", "over nowhere"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, each in took.items():
        spread = Spread.of(each)
        ratio = Spread.of(mine / none for mine, none in zip(each, took["nowhere"], strict=False))
        told = f"{spread.median:.2f} ({spread.least:.2f}-{spread.greatest:.2f})"
        table.add_row(name, told, str(ratio))
    report.show(table)
    return 0
