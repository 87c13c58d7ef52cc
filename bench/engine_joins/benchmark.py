"""Joins in the engine, against DuckDB with its join ordering on and off, and Polars.

All on one thread, on the same Arrow tables (DuckDB and Polars hold them in their own form
before the clock starts), all results as Arrow. A query that DuckDB does not finish within
a limit counts as that limit.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import duckdb
import polars as pl

from bench import report
from bench.engine_joins import many_relations
from bench.engine_joins.workload import BATCH, Workload, chain, star, two_tables
from bench.turns import Contestants, Turns, in_turns, take_turns

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
    left, right = (pl.DataFrame(workload.tables[name]) for name in order)
    names = [name for (_, name), _ in workload.equal]
    contestants: Contestants = {
        EDDY: partial(workload.rows, order),
        DUCKDB: partial(duck.run, sql, ordered=True),
        POLARS: lambda: len(left.join(right, on=names).select("v", "w").to_arrow()),
    }
    return take_turns(contestants, turns=turns, uncounted=UNCOUNTED, warmed=True)


def measure_orders(workload: Workload, turns: int) -> Mapping[str, Turns]:
    """Measure a join of several tables in each of its written orders, which take turns too.

    Returns for each contestant its turns by order.
    """
    duck = Duck(workload)
    contestants: dict[str, Callable[[], object]] = {}
    unordered: dict[str, Callable[[], object]] = {}
    for name, order in workload.orders.items():
        sql = workload.sql(order)
        contestants[f"{EDDY}: {name}"] = partial(workload.rows, order)
        contestants[f"{DUCKDB}: {name}"] = partial(duck.run, sql, ordered=True)
        unordered[f"{UNORDERED}: {name}"] = partial(duck.run, sql, ordered=False)
    taken = take_turns(contestants, turns=MORE_TURNS * turns, uncounted=UNCOUNTED, warmed=True)
    # Apart: what a query that is given up leaves in memory the next one pays for.
    apart = take_turns(unordered, turns=turns, expected=taken.answer)
    return {**taken.split((EDDY, DUCKDB)), **apart.split((UNORDERED,))}


def show_orders(workload: Workload, measured: Mapping[str, Turns]) -> None:
    """Print the orders one by one, then what the written order did to each contestant."""

    def row(name: str) -> list[str]:
        medians = [f"{turns.median(name):.3f} s" for turns in measured.values()]
        pair = Turns({who: measured[who].seconds[name] for who in (EDDY, DUCKDB)})
        return [name, *medians, str(pair.ratio(EDDY, DUCKDB))]

    ours = [measured[EDDY].median(name) for name in workload.orders]
    worst = max(measured[UNORDERED].median(name) for name in workload.orders)
    columns = ("FROM", *measured, "over DuckDB (2.0)")
    report.show(
        report.table(workload.name, columns, map(row, workload.orders)),
        *(
            f"{who}: worst written order over best {turns.worst_over_best()}"
            f"{f' ({ORDERS_TARGET:.2f})' if who == EDDY else ''}"
            for who, turns in measured.items()
        ),
        f"over DuckDB's worst as written: {statistics.median(ours) / worst:.2f} (below 1)",
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print which targets are met."""
    parser = report.argument_parser("bench engine", __doc__, turns=7)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the largest tables")
    parser.add_argument("--batch", type=int, default=BATCH, help="rows of an arrival")
    options = parser.parse_args(arguments)
    results: dict[str, object] = {}
    rows: list[Sequence[str]] = []
    for kind, target in TARGETS.items():
        workload = replace(two_tables(kind, options.rows), batch=options.batch)
        turns = measure_two(workload, options.turns)
        results[workload.name] = turns.seconds
        over = (str(turns.ratio(EDDY, DUCKDB)), f"{target}", str(turns.ratio(EDDY, POLARS)))
        rows.append((workload.name, f"{turns.median(EDDY):.2f} s", *over))
    columns = ("join", "Eddyline", "over DuckDB", "target", "over Polars")
    report.show(report.table("Two tables", columns, rows))
    for several in (star(options.rows), chain(options.rows // 2)):
        workload = replace(several, batch=options.batch)
        measured = measure_orders(workload, options.turns)
        results[workload.name] = {who: turns.seconds for who, turns in measured.items()}
        show_orders(workload, measured)
    starts = in_turns(
        {shape: partial(many_relations.start, shape) for shape in many_relations.SHAPES},
        options.turns,
    )
    results[f"{many_relations.COUNT} relations"] = starts
    medians = (f"{shape} {1e3 * statistics.median(each):.0f}" for shape, each in starts.items())
    report.show(
        f"{many_relations.COUNT} relations, ms to the first row "
        f"({1e3 * many_relations.TARGET:.0f}): {', '.join(medians)}"
    )
    report.write(options, "engine-joins", results)
    return 0
