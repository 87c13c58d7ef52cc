"""UNION ALL and outer joins put out what plain Spark does, as branches under one name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError, UnknownQueryError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(40)

ORDERS = "id int, customer int, price double, time timestamp"
PAYMENTS = "pid int, customer int, paid double, time timestamp"
CUSTOMERS = [(1, "DE", 1), (2, "FR", 2), (2, "FR again", 9), (4, None, 3), (None, "XX", 1)]
COUNTRIES = [("DE", "near", 1), ("FR", "far", 2), (None, "nowhere", None)]
LATER = 10
START = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
WITHIN = "o.customer = p.customer AND p.time BETWEEN o.time AND o.time + INTERVAL 20 SECONDS"

QUERIES = {
    "union": """SELECT id, price, 'dear' AS kind FROM orders WHERE price > 60
                UNION ALL SELECT id, price, 'odd' FROM orders WHERE id % 2 = 1""",
    "two streams": """SELECT id, string(price) AS said FROM orders WHERE price < 20
                      UNION ALL SELECT pid, NULL FROM payments WHERE paid > 50""",
    "never": "SELECT id FROM orders WHERE false UNION ALL SELECT pid FROM payments WHERE paid > 9",
    "left": "SELECT id, country FROM orders o LEFT JOIN customers c ON o.customer = c.cid",
    "where": """SELECT id, country FROM orders o LEFT JOIN customers c ON o.customer = c.cid
                WHERE coalesce(country, 'none') NOT LIKE 'F%'""",
    "unknown": """SELECT id FROM orders o LEFT JOIN customers c ON o.customer = c.cid
                  WHERE c.cid IS NULL""",
    "inner after all": """SELECT id, tier FROM orders o LEFT JOIN customers c
                          ON o.customer = c.cid WHERE tier > 1""",
    "further condition": """SELECT id, tier FROM orders o LEFT JOIN customers c
                            ON o.customer = c.cid AND c.tier * 1D < o.price - 50 AND o.id > 5""",
    "two tables": """SELECT id, c.country, place FROM orders o LEFT JOIN customers c
                     ON o.customer = c.cid LEFT JOIN countries k ON k.number = o.id % 4""",
    "right": "SELECT id, tier FROM customers c RIGHT JOIN orders o ON o.customer = c.cid",
    "computed": """SELECT id, upper(country) AS said, 100 / (tier + 1) AS share FROM orders o
                   LEFT JOIN customers c ON o.customer = c.cid WHERE price > 30 OR tier IS NULL""",
    "streams": "SELECT id, pid FROM orders o LEFT JOIN payments p ON #within",
    "streams, where": """SELECT id, pid, p.time AS at FROM orders o LEFT JOIN payments p
                          ON #within AND paid > 40 WHERE price > 10
                          AND (pid IS NULL OR paid < 80)""",
    "full": "SELECT id, pid FROM orders o FULL JOIN payments p ON #within",
    "all of it": """SELECT id, pid, country, tier FROM orders o
                     LEFT JOIN (SELECT *, customer AS next FROM payments WHERE paid > 30) p
                     ON #within LEFT JOIN customers c ON c.cid = p.next""",
    "below": """SELECT id, country FROM (SELECT id, customer FROM orders WHERE price > 50
                 UNION ALL SELECT pid, customer FROM payments WHERE paid > 50) e
                 LEFT JOIN customers c ON c.cid = e.customer WHERE id > 3""",
}
QUERIES = {name: sql.replace("#within", WITHIN) for name, sql in QUERIES.items()}
AGGREGATES = {
    "aggregates": """SELECT window.start AS s, count(*) AS n, 'orders' AS kind FROM orders
                     GROUP BY window(time, '10 seconds') HAVING count(*) > 1
                     UNION ALL SELECT window.start, count(*), 'payments' FROM payments
                     GROUP BY window(time, '10 seconds')""",
}
MARKED = """SELECT id, country, :most AS most FROM orders o LEFT JOIN customers c
            ON o.customer = c.cid AND c.tier < :tier WHERE price < :most"""
MARKED_STREAMS = """SELECT id, pid, :least AS least FROM orders o LEFT JOIN payments p
                    ON #within AND paid > :least WHERE pid % 4 = :rest OR pid IS NULL"""
MARKED_STREAMS = MARKED_STREAMS.replace("#within", WITHIN)
STREAM_MARKS = pd.DataFrame({"name": ["s1", "s2"], "least": [20.0, 60.0], "rest": [0, 2]})
MARKS = pd.DataFrame({"name": ["m1", "m2"], "tier": [2, 9], "most": [30.0, 70.0]})
REFUSED = {
    "SELECT id FROM orders UNION SELECT pid FROM payments": "write UNION ALL",
    """SELECT window, country, count(*) AS n FROM orders LEFT JOIN customers ON customer = cid
       GROUP BY window(time, '1 minute'), country""": "stream's own DataFrame",
    "SELECT id FROM orders UNION ALL SELECT cid FROM customers": "reads no stream",
    "SELECT tier FROM orders RIGHT JOIN customers ON customer = cid": "stream LEFT JOIN table",
    "SELECT tier FROM orders FULL JOIN customers ON customer = cid": "stream LEFT JOIN table",
    "SELECT id FROM orders o LEFT JOIN payments p ON o.customer = p.customer": "for ever",
    """SELECT id FROM orders o LEFT JOIN (SELECT cid FROM customers UNION ALL
       SELECT tier FROM customers) c ON customer = cid""": "one stream or table after the other",
    """SELECT id, place FROM orders LEFT JOIN customers c ON customer = cid
       LEFT JOIN countries k ON k.country = c.country""": "belong together in tables= as one",
    "SELECT id, tier FROM orders LEFT JOIN customers ON customer = cid AND 1 / price > tier": (
        "may raise an error"
    ),
    """SELECT id FROM orders LEFT JOIN customers ON customer = cid
       WHERE 10 / coalesce(tier, 0) > 1""": "raises an error whatever comes",
    " UNION ALL ".join(["SELECT id FROM orders"] * 65): "more than 64 branches",
}


def orders(numbers: Iterable[int]) -> list[tuple[object, ...]]:
    return [
        (n, None if n % 9 == 0 else n % 5, float(n * 37 % 100), START + dt.timedelta(seconds=n))
        for n in numbers
    ]


def payments(numbers: Iterable[int]) -> list[tuple[object, ...]]:
    return [
        (n, None if n % 8 == 0 else n % 4, float(n * 53 % 100), START + dt.timedelta(seconds=n))
        for n in numbers
    ]


def test_branches_are_one_query(spark: SparkSession, tmp_path: Path) -> None:
    ordered = Feed(spark, tmp_path / "orders", ORDERS, ("time", "1 second"))
    paid = Feed(spark, tmp_path / "payments", PAYMENTS, ("time", "1 second"))
    customers = spark.createDataFrame(CUSTOMERS, "cid int, country string, tier int")
    countries = spark.createDataFrame(COUNTRIES, "country string, place string, number int")

    def opened() -> StandingQueries:
        return StandingQueries(
            spark,
            streams={"orders": ordered.stream(), "payments": paid.stream()},
            tables={"customers": customers, "countries": countries},
            state=tmp_path / "state",
        )

    sink = Gathered()
    ordered.give(orders(range(40)))
    paid.give(payments(range(0, 40, 2)))
    with opened() as queries:
        for name, sql in (QUERIES | AGGREGATES).items():
            queries.add(sql, name=name)
        queries.add_many(MARKED, MARKS)
        queries.add_many(MARKED_STREAMS, STREAM_MARKS)
        for sql, told in REFUSED.items():
            with pytest.raises(NotShareableError, match=told):
                queries.add(sql, name="refused")
        run_all(queries, sink)
        shown = {row.name: row for row in queries.queries().collect()}
        assert shown.keys() == {*QUERIES, *AGGREGATES, *MARKS["name"], *STREAM_MARKS["name"]}
        assert shown["left"].sql == QUERIES["left"]
        assert shown["left"].job == "join orders.1 customers.0, select orders"
        assert shown["union"].results == sink.answers()["union"].total() > 0
        queries.pause("left")
        queries.resume("left")  # under other numbers
    ordered.give(orders(range(40, 80)))
    paid.give(payments(range(40, 80, 2)))
    late = START + dt.timedelta(hours=1)
    ordered.give([(999, None, -1.0, late)])
    paid.give([(999, None, -1.0, late)])
    with opened() as queries:
        run_all(queries, sink)
    tables = {
        "orders": ordered.rows([0, 1]),
        "payments": paid.rows([0, 1]),
        "customers": customers,
        "countries": countries,
    }
    each = {
        name: MARKED.replace(":tier", str(tier)).replace(":most", f"{most}D")
        for name, tier, most in MARKS.itertuples(index=False)
    }
    each |= {
        name: MARKED_STREAMS.replace(":least", f"{least}D").replace(":rest", str(rest))
        for name, least, rest in STREAM_MARKS.itertuples(index=False)
    }
    wanted = expected(spark, tables, QUERIES | AGGREGATES | each)
    found = {
        query: {row: n for row, n in rows.items() if 999 not in row}
        for query, rows in sink.answers().items()
    }
    assert found == wanted


def test_branches_come_and_go_together(spark: SparkSession, tmp_path: Path) -> None:
    ordered = Feed(spark, tmp_path / "orders", ORDERS, ("time", "1 second"))
    paid = Feed(spark, tmp_path / "payments", PAYMENTS, ("time", "1 second"))
    sink = Gathered()
    failing = """SELECT id, 1 / (id - 3) AS x FROM orders
                 UNION ALL SELECT pid, 2 / (pid + 1) FROM payments"""
    both = "SELECT id FROM orders UNION ALL SELECT pid FROM payments"
    ordered.give(orders(range(10)))
    paid.give(payments(range(10)))
    streams = {"orders": ordered.stream(), "payments": paid.stream()}
    with StandingQueries(
        spark, streams=streams, state=tmp_path / "state", history="1 day", max_results=1_000
    ) as queries:
        queries.add(failing, name="failing")
        queries.add(both, name="both")
        queries.add(both, name="dropped")
        queries.drop("dropped")
        with pytest.raises(UnknownQueryError):
            queries.pause("dropped")
        with pytest.warns(UserWarning, match="Division by zero"):
            run_all(queries, sink)
        told = {row.name: row for row in queries.queries().collect()}
        assert told.keys() == {"failing", "both"}
        assert told["failing"].state == "paused"
        assert "Division by zero" in told["failing"].reason
        queries.replace("failing", both)  # of a query that stands still
        queries.add(both, name="old", backfill="1 day")
        seen: list[int] = []
        queries.subscribe("both", lambda rows, _: seen.extend(rows["id"].to_pylist()))
        ordered.give(orders(range(LATER, 20)))
        paid.give(payments(range(LATER, 20)))
        run_all(queries, sink)
        assert {row.state for row in queries.queries().collect()} == {"running"}
    found: dict[str, list[int]] = {}
    for rows in sink.batches.values():
        for row in rows:
            found.setdefault(row["query"], []).append(row["id"])
    ids = [*range(20)] * 2
    assert sorted(seen) == sorted(number for number in ids if number >= LATER)
    assert {name: sorted(found[name]) for name in ("both", "old")} == {
        "both": sorted(ids),
        "old": sorted(ids),
    }
    assert found["failing"].count(LATER) == 2  # of each stream, once it was replaced
