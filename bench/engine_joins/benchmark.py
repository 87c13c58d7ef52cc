"""Joins in the engine, against DuckDB with its join ordering on and off, and Polars.

All on one thread, on the same Arrow tables (DuckDB and Polars hold them in their own form
before the clock starts), all results as Arrow. A query that DuckDB does not finish within
a limit counts as that limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when Polars is imported

import duckdb
import polars as pl
from rich.console import Console
from rich.table import Table

from bench.engine_joins import twenty
from bench.engine_joins.workload import Workload, chain, star, two_tables
from bench.measure import Turns, take_turns

LIMIT = 10.0
"""Seconds after which a query of DuckDB's is given up."""

EDDY, DUCKDB, UNORDERED, POLARS = "Eddyline", "DuckDB", "DuckDB, as written", "Polars"

TARGETS = {"int64": 1.0, "strings": 1.5, "two columns": 1.5}


class Duck:
    """DuckDB on one thread with the tables of a workload."""

    def __init__(self, workload: Workload) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        for name, table in workload.tables.items():
            self._connection.register("given", table)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")
            self._connection.unregister("given")

    def run(self, sql: str, *, ordered: bool) -> int | None:
        """Return the number of rows; None where the limit was reached."""
        disabled = "" if ordered else "join_order"
        self._connection.execute(f"SET disabled_optimizers = '{disabled}'")
        timer = threading.Timer(LIMIT, self._connection.interrupt)
        timer.start()
        try:
            return len(self._connection.sql(sql).to_arrow_table())
        except duckdb.InterruptException:
            return None
        finally:
            timer.cancel()


def measure_two(workload: Workload, turns: int) -> Turns:
    """Measure a join of two tables."""
    duck = Duck(workload)
    order = workload.orders["as written"]
    sql = workload.sql(order)
    left, right = (pl.from_arrow(workload.tables[name]) for name in order)
    names = [name for (_, name), _ in workload.equal]
    rows: dict[str, int | None] = {}

    def with_polars() -> None:
        joined = left.join(right, on=names).select("v", "w")  # type: ignore[union-attr,arg-type]
        rows[POLARS] = len(joined.to_arrow())

    def with_eddy() -> None:
        rows[EDDY] = sum(len(outputs[0]) for outputs in workload.run(order))

    def with_duck() -> None:
        rows[DUCKDB] = duck.run(sql, ordered=True)

    contestants: Mapping[str, Callable[[], object]] = {
        EDDY: with_eddy,
        DUCKDB: with_duck,
        POLARS: with_polars,
    }
    taken = take_turns(contestants, turns=turns)
    _require_equal(workload, rows)
    return taken


def measure_orders(workload: Workload, turns: int) -> Mapping[str, Turns]:
    """Measure a join of several tables in each of its written orders."""
    duck = Duck(workload)
    measured = {}
    for name, order in workload.orders.items():
        rows: dict[str, int | None] = {}
        sql = workload.sql(order)

        def with_eddy(order: tuple[str, ...] = order) -> None:
            rows[EDDY] = sum(len(outputs[0]) for outputs in workload.run(order))  # noqa: B023 - of this turn

        def with_duck(sql: str = sql, *, ordered: bool) -> None:
            rows[DUCKDB if ordered else UNORDERED] = duck.run(sql, ordered=ordered)  # noqa: B023 - of this turn

        contestants: Mapping[str, Callable[[], object]] = {
            EDDY: with_eddy,
            DUCKDB: lambda: with_duck(ordered=True),
            UNORDERED: lambda: with_duck(ordered=False),
        }
        measured[name] = take_turns(contestants, turns=turns)
        _require_equal(workload, rows)
    return measured


def _require_equal(workload: Workload, rows: Mapping[str, int | None]) -> None:
    if len({count for count in rows.values() if count is not None}) > 1:
        raise AssertionError(f"{workload.name}: the contestants disagree: {rows}")


def main() -> int:
    """Measure and print which targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine_joins", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="counted turns (default: 7)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the largest tables")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="for the JSON file")
    options = parser.parse_args()
    console = Console()
    results: dict[str, object] = {}
    table = Table("join", "Eddyline", "over DuckDB", "target", "over Polars", title="Two tables")
    for kind, target in TARGETS.items():
        workload = two_tables(kind, options.rows)
        turns = measure_two(workload, options.turns)
        results[workload.name] = dict(turns.seconds)
        seconds = f"{turns.median(EDDY):.2f} s"
        over = (str(turns.ratio(EDDY, DUCKDB)), f"{target}", str(turns.ratio(EDDY, POLARS)))
        table.add_row(workload.name, seconds, *over)
    console.print(table)
    for workload in (star(options.rows), chain(options.rows // 2)):
        table = Table("FROM", "Eddyline", "DuckDB", "DuckDB, as written", "over DuckDB (2.0)")
        table.title = workload.name
        measured = measure_orders(workload, options.turns)
        for name, turns in measured.items():
            medians = [f"{turns.median(who):.3f} s" for who in (EDDY, DUCKDB, UNORDERED)]
            table.add_row(name, *medians, str(turns.ratio(EDDY, DUCKDB)))
        ours = [turns.median(EDDY) for turns in measured.values()]
        worst = max(turns.median(UNORDERED) for turns in measured.values())
        results[workload.name] = {name: dict(turns.seconds) for name, turns in measured.items()}
        console.print(table)
        console.print(
            f"written orders, worst over best: {max(ours) / min(ours):.2f} (1.10); median over "
            f"DuckDB's worst as written: {statistics.median(ours) / worst:.2f} (below 1)"
        )
    starts = {
        shape: [twenty.start(shape) for _ in range(options.turns + 1)][1:]
        for shape in twenty.SHAPES
    }
    results[f"{twenty.COUNT} relations"] = starts
    console.print(
        f"{twenty.COUNT} relations, ms to the first row ({1e3 * twenty.TARGET:.0f}): "
        + ", ".join(
            f"{shape} {1e3 * statistics.median(seconds):.0f}" for shape, seconds in starts.items()
        )
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "engine-joins.json").write_text(json.dumps(results, indent=1))
    return 0
