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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when Polars is imported

import duckdb
import polars as pl
from rich.console import Console
from rich.table import Table

from bench.engine_joins import many_relations
from bench.engine_joins.workload import BATCH, Workload, chain, star, two_tables
from bench.measure import Turns, take_turns

LIMIT = 2.0
"""Seconds after which a query of DuckDB's is given up, many times what others take."""

UNCOUNTED = 4
"""Turns that are not counted: kernels are compiled, and every allocator gets its memory.

On a virtual machine that takes freed memory back a first run spends half of its time in the
system, getting pages, whoever the contestant is.
"""

EDDY, DUCKDB, UNORDERED, POLARS = "Eddyline", "DuckDB", "DuckDB, as written", "Polars"

MORE_TURNS = 5
"""So many times the turns for written orders, lest the worst of five medians be that by noise.

In 7 turns of 50 ms DuckDB, which brings them all into one order, measured 1.41.
"""

ORDERS_TARGET = 1.10

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
    taken = take_turns(contestants, turns=turns, uncounted=UNCOUNTED, warmed=True)
    _require_equal(workload, rows)
    return taken


def measure_orders(workload: Workload, turns: int) -> Mapping[str, Turns]:
    """Measure a join of several tables in each of its written orders, which take turns too.

    Returns for each contestant its turns by order.
    """
    duck = Duck(workload)
    rows: dict[str, int | None] = {}

    def with_eddy(order: tuple[str, ...]) -> None:
        rows[EDDY] = sum(len(outputs[0]) for outputs in workload.run(order))
        _require_equal(workload, rows)

    def with_duck(sql: str, contestant: str) -> None:
        rows[contestant] = duck.run(sql, ordered=contestant == DUCKDB)
        _require_equal(workload, rows)

    contestants: dict[str, Callable[[], object]] = {}
    unordered: dict[str, Callable[[], object]] = {}
    for name, order in workload.orders.items():
        sql = workload.sql(order)
        contestants[f"{EDDY}: {name}"] = partial(with_eddy, order)
        contestants[f"{DUCKDB}: {name}"] = partial(with_duck, sql, DUCKDB)
        unordered[f"{UNORDERED}: {name}"] = partial(with_duck, sql, UNORDERED)
    seconds = {
        **take_turns(
            contestants, turns=MORE_TURNS * turns, uncounted=UNCOUNTED, warmed=True
        ).seconds,
        # Apart: what a query that is given up leaves in memory the next one pays for.
        **take_turns(unordered, turns=turns).seconds,
    }
    return {
        who: Turns({name: seconds[f"{who}: {name}"] for name in workload.orders})
        for who in (EDDY, DUCKDB, UNORDERED)
    }


def show_orders(console: Console, workload: Workload, measured: Mapping[str, Turns]) -> None:
    """Print the orders one by one, then what the written order did to each contestant."""
    table = Table("FROM", *measured, "over DuckDB (2.0)", title=workload.name)
    for name in workload.orders:
        medians = [f"{turns.median(name):.3f} s" for turns in measured.values()]
        pair = Turns({who: measured[who].seconds[name] for who in (EDDY, DUCKDB)})
        table.add_row(name, *medians, str(pair.ratio(EDDY, DUCKDB)))
    console.print(table)
    for who, turns in measured.items():
        target = f" ({ORDERS_TARGET:.2f})" if who == EDDY else ""
        console.print(f"{who}: worst written order over best {turns.worst_over_best()}{target}")
    ours = [measured[EDDY].median(name) for name in workload.orders]
    worst = max(measured[UNORDERED].median(name) for name in workload.orders)
    console.print(
        f"over DuckDB's worst as written: {statistics.median(ours) / worst:.2f} (below 1)"
    )


def _require_equal(workload: Workload, rows: Mapping[str, int | None]) -> None:
    if len({count for count in rows.values() if count is not None}) > 1:
        raise AssertionError(f"{workload.name}: the contestants disagree: {rows}")


def main(arguments: Sequence[str]) -> int:
    """Measure and print which targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench engine", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="counted turns (default: 7)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the largest tables")
    parser.add_argument("--batch", type=int, default=BATCH, help="rows of an arrival")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="for the JSON file")
    options = parser.parse_args(arguments)
    console = Console()
    results: dict[str, object] = {}
    table = Table("join", "Eddyline", "over DuckDB", "target", "over Polars", title="Two tables")
    for kind, target in TARGETS.items():
        workload = replace(two_tables(kind, options.rows), batch=options.batch)
        turns = measure_two(workload, options.turns)
        results[workload.name] = dict(turns.seconds)
        seconds = f"{turns.median(EDDY):.2f} s"
        over = (str(turns.ratio(EDDY, DUCKDB)), f"{target}", str(turns.ratio(EDDY, POLARS)))
        table.add_row(workload.name, seconds, *over)
    console.print(table)
    for several in (star(options.rows), chain(options.rows // 2)):
        workload = replace(several, batch=options.batch)
        measured = measure_orders(workload, options.turns)
        results[workload.name] = {who: dict(turns.seconds) for who, turns in measured.items()}
        show_orders(console, workload, measured)
    starts = {
        shape: [many_relations.start(shape) for _ in range(options.turns + 1)][1:]
        for shape in many_relations.SHAPES
    }
    results[f"{many_relations.COUNT} relations"] = starts
    console.print(
        f"{many_relations.COUNT} relations, ms to the first row "
        f"({1e3 * many_relations.TARGET:.0f}): "
        + ", ".join(
            f"{shape} {1e3 * statistics.median(seconds):.0f}" for shape, seconds in starts.items()
        )
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "engine-joins.json").write_text(json.dumps(results, indent=1))
    return 0
