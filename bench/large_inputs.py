"""``python -m bench large-inputs``: large tables that few rows, or many, are joined with.

Events are reduced by the users of some countries, asked about by a function, and joined with tables
that are too large to broadcast. ``after``: these wait until the events that are left have been
measured; ``before``: they do not, and Spark shuffles them in any case. Each query as it is over
files, and over analyzed tables of a catalog with Spark's cost-based optimizer.
"""

# ruff: noqa: PLR2004 - what a function compares with says how much it passes

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import eddyline
from bench import report
from bench.adversarial.analyzed import AnalyzedTables
from bench.adversarial.case import CostlyFunction
from bench.against_plain import CORES, start
from bench.answers import require_same_rows
from bench.turns import take_turns
from eddyline.planner.claim import native_choice

QUERIES: Final[Mapping[str, str]] = {
    "few left, one large table": """
        SELECT e.account, a0, a1, a2, age FROM events e JOIN users u ON e.user = u.user
        JOIN accounts a ON e.account = a.account WHERE country = 3 AND is_seldom(score)""",
    "few left, two large tables": """
        SELECT e.account, a0, a1, age, p0, p1 FROM events e
        JOIN accounts a ON e.account = a.account JOIN products p ON e.product = p.product
        JOIN users u ON e.user = u.user WHERE country = 3 AND is_seldom(score)""",
    "many left, one large table": """
        SELECT count(*), sum(a0 % 7), sum(a1 % 5), sum(age) FROM events e
        JOIN users u ON e.user = u.user JOIN accounts a ON e.account = a.account
        WHERE country < 60 AND is_common(score)""",
    "many left, two large tables": """
        SELECT count(*), sum(a0 % 7), sum(p1 % 5), sum(age) FROM events e
        JOIN accounts a ON e.account = a.account JOIN products p ON e.product = p.product
        JOIN users u ON e.user = u.user WHERE country < 60 AND is_common(score)""",
    "none left": """
        SELECT e.account, a0, a1, a2, age FROM events e JOIN users u ON e.user = u.user
        JOIN accounts a ON e.account = a.account WHERE country = 777 AND is_seldom(score)""",
}

FUNCTIONS: Final = (
    CostlyFunction("is_seldom", lambda score: score % 10 == 0, microseconds=5),
    CostlyFunction("is_common", lambda score: score >= 50, microseconds=5),
)

NEVER: Final = 1 << 62


def tables(size: float) -> dict[str, dict[str, npt.NDArray[np.int64]]]:
    """Return the columns of each table; at size 1 2 million events and two times 48 MB."""
    draw = np.random.default_rng(0)
    events, large, users = int(2_000_000 * size), int(1_500_000 * size), int(50_000 * size)

    def noise(prefix: str) -> dict[str, npt.NDArray[np.int64]]:
        return {f"{prefix}{n}": draw.integers(2**62, size=large) for n in range(3)}

    return {
        "events": {
            "user": draw.integers(users, size=events),
            "account": draw.integers(large, size=events),
            "product": draw.integers(large, size=events),
            "score": draw.integers(1000, size=events),
        },
        "accounts": {"account": np.arange(large), **noise("a")},
        "products": {"product": np.arange(large), **noise("p")},
        "users": {
            "user": np.arange(users),
            "country": draw.integers(200, size=users),
            "age": draw.integers(100, size=users),
        },
    }


def write(folder: Path, size: float) -> dict[str, Path]:
    """Write the tables as Parquet files, one for each core; return their folders."""
    paths = {}
    for name, columns in tables(size).items():
        paths[name] = folder / name
        paths[name].mkdir()
        table = pa.table(columns)
        step = -(-len(table) // CORES)
        for part in range(CORES):
            path = paths[name] / f"{part}.parquet"
            pq.write_table(table.slice(part * step, step), path, use_dictionary=False)
    return paths


def contestants(
    spark: SparkSession, sql: str, *, plainly: bool
) -> dict[str, Callable[[], pa.Table]]:
    """Return Eddyline where large inputs wait, and where they do not, and maybe plain Spark."""
    worth = native_choice.WORTH_WAITING

    def adapted(at_least: int) -> pa.Table:
        native_choice.WORTH_WAITING = at_least  # type: ignore[misc]
        try:
            return eddyline.adapt(spark.sql(sql)).toArrow()
        finally:
            native_choice.WORTH_WAITING = worth  # type: ignore[misc]

    def plain() -> pa.Table:
        return spark.sql(sql).toArrow()

    both: dict[str, Callable[[], pa.Table]] = {
        "before": partial(adapted, NEVER),
        "after": partial(adapted, worth),
    }
    return {"plain": plain, **both} if plainly else both


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the queries that the command line asks for."""
    parser = report.argument_parser("bench large-inputs", __doc__)
    parser.add_argument("--uncounted", type=int, default=1, help="turns before those that count")
    parser.add_argument("--size", type=float, default=1.0, help="of the tables (default: 1)")
    parser.add_argument("--plain", action="store_true", help="plain Spark takes its turns, too")
    parser.add_argument("--only", default="", help="only queries whose name contains this")
    options = parser.parse_args(arguments)
    rows: list[list[str]] = []
    ran: tuple[str, ...] = ()
    written: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="eddyline-large-inputs-") as folder:
        spark = start()
        paths = write(Path(folder), options.size)
        for name, path in paths.items():
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
        analyzed = AnalyzedTables(spark)
        analyzed.add(paths, "analyzed", Path(folder))
        for function in FUNCTIONS:
            for session in (spark, analyzed.session):
                session.udf.register(function.name, function.busy(), "boolean")
        for of, session in (("files", spark), ("analyzed", analyzed.session)):
            for name, sql in QUERIES.items():
                if options.only not in name:
                    continue
                taken = take_turns(
                    contestants(session, sql, plainly=options.plain),
                    turns=options.turns,
                    uncounted=options.uncounted,
                    require_same=partial(require_same_rows, order_by=()),
                )
                seconds = [f"{taken.median(who):.2f}" for who in taken.seconds]
                over = [str(taken.ratio("after", who)) for who in taken.seconds if who != "after"]
                rows.append([f"{name}, {of}", f"{len(taken.answer):,}", *seconds, *over])
                ran = tuple(taken.seconds)
                written.append({"query": name, "of": of, "seconds": dict(taken.seconds)})
                path = report.write(options, "large_inputs", {"results": written})
        spark.stop()
    others = [who for who in ran if who != "after"]
    columns = ("query", "rows", *(f"{who}, s" for who in ran), *(f"after / {o}" for o in others))
    report.show(report.table("Large inputs", columns, rows), f"written: {path}")
    return 0
