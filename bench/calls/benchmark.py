"""``python -m bench calls``: thousands of queries by chance, never more calls than plain Spark.

Exits with 1 where a query has other rows, calls a function more often than plain Spark, or is
reported wrongly; each such query is printed, with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import eddyline
from bench.calls.compared import Comparison

QUIET = {
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g",
}
"""Each query is planned and run twice, over some rows: what Spark would compile is not worth it."""

A_SESSION = 250
"""Queries after which progress is told."""


def main(arguments: Sequence[str]) -> int:
    """Compare the queries of a range of seeds."""
    parser = argparse.ArgumentParser(prog="bench calls", description=__doc__)
    parser.add_argument("--queries", type=int, default=5_000, help="how many queries")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    chosen = parser.parse_args(arguments)
    spark = eddyline.session("calls", master="local[2]", config=QUIET)
    counted = tempfile.TemporaryDirectory()
    comparison = Comparison(spark, Path(counted.name))
    kinds: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for done, seed in enumerate(range(chosen.first, chosen.first + chosen.queries), start=1):
        try:
            findings = comparison.findings(seed)
        except Exception as error:  # noqa: BLE001 - the next query is another one
            kinds["failed"] += 1
            print(f"failed: seed {seed}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            continue
        compared[comparison.compared] += 1
        for finding in findings:
            kinds[finding.kind] += 1
            print(finding, flush=True)
        if done % A_SESSION == 0:
            print(f"{done:,} queries: {dict(kinds)}", flush=True)
    for what, number in compared.most_common():
        print(f"{number:,} queries: {what}")
    wrong = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none wrong"
    print(f"{chosen.queries:,} queries from seed {chosen.first} on: {wrong}")
    spark.stop()
    counted.cleanup()
    return 1 if kinds else 0
