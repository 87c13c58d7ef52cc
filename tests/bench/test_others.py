"""Queries of others over small tables: who is enabled gives the same rows as plain Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import eddyline
from bench.against_plain import PLAIN
from bench.others.benchmark import as_dict, sessions, table, verdicts
from bench.others.draws import in_ways
from bench.others.everyday import PEOPLE
from bench.others.few_rows import TINY
from bench.others.functions import FUNCTIONS
from bench.others.pipelines import UDFBENCH
from bench.others.queries import QUERIES
from bench.others.tables import ROWS, at_most, tables, write
from bench.short.benchmark import (
    ADAPT,
    AGAIN,
    ENABLE,
    Measured,
    Sessions,
    contestants,
    require_same_bag,
)
from bench.short.queries import Short
from tests.validated import VALIDATED

MOST = 200
"""Rows of each table at most."""

QUICK = {
    **dict.fromkeys(VALIDATED, "false"),
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="module")
def by_name(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    folder = tmp_path_factory.mktemp("others")
    write(folder, tables(rows=at_most(MOST)))
    made = sessions(spark.newSession(), folder)
    for session in made.values():
        for name, value in QUICK.items():
            session.conf.set(name, value)
    yield made
    for name in (ENABLE, AGAIN):
        eddyline.disable(made[name])


@pytest.mark.slow(10)
@pytest.mark.parametrize("query", QUERIES[::6], ids=lambda query: query.name)
def test_same_rows_as_plain_spark(by_name: Sessions, query: Short) -> None:
    runs = contestants(by_name, query)
    require_same_bag(runs[PLAIN](), runs[ENABLE]())


def test_queries_and_functions_have_names_of_their_own() -> None:
    groups = [query.group for query in QUERIES]
    assert {group: groups.count(group) for group in groups} == {UDFBENCH: 12, PEOPLE: 25, TINY: 12}
    assert len({query.name for query in QUERIES}) == 49
    assert len({function.function.__name__ for function in FUNCTIONS}) == 52


def test_small_tables_are_the_same_each_time() -> None:
    made = tables(rows=at_most(20))
    assert {name: len(table) for name, table in made.items()} == dict.fromkeys(ROWS, 20)
    assert made == tables(rows=at_most(20))
    assert not made["orders"].equals(tables(seed=8, rows=at_most(20))["orders"])


def test_a_number_chooses_in_which_way_a_value_is_written() -> None:
    ways = ((0.2, str.upper), (0.5, "<{}>".format), (1.0, str))
    assert in_ways(["a", "b", "c"], [0.6, 0.1, 0.2], ways) == ["a", "B", "<c>"]


def measured(query: Short, plain: float, adapt: float, enable: float) -> Measured:
    """Return a query whose first run takes twice as long as the three that count."""
    seconds = {PLAIN: plain, ADAPT: adapt, ENABLE: enable, AGAIN: 0.8 * enable}
    return Measured(query, 10, {name: [2 * s, s, s, s] for name, s in seconds.items()}, uncounted=1)


MEASURED = [
    measured(Short("one", "", UDFBENCH), 0.2, 0.1, 0.1),
    measured(Short("two", "", UDFBENCH), 0.1, 0.08, 0.11),
    measured(Short("three", "", TINY), 0.1, 0.1, 0.15),
]


def test_the_table_has_means_and_greatest_ratios_by_group() -> None:
    shown = table(MEASURED)
    cells = [list(column.cells) for column in shown.columns]
    assert cells[0] == [
        *("one", "two", "three", "mean, udfbench", "worst, udfbench"),
        *("mean, tiny", "worst, tiny"),
    ]
    assert cells[3][3:] == ["0.63", "0.80", "1.00", "1.00"]
    assert cells[4][3:] == ["0.74", "1.10", "1.50", "1.50"]
    assert cells[5][3:] == ["0.59", "0.88", "1.20", "1.20"]


def test_the_verdict_is_about_pipelines_alone() -> None:
    missed = ["udfbench, enable: worst 1.10, target 1.03, missed (two)"]
    assert verdicts(MEASURED) == missed
    assert verdicts(MEASURED[:1]) == ["udfbench, enable: worst 0.50, target 1.03 (one)"]
    assert verdicts(MEASURED[2:]) == []
    written = as_dict(MEASURED, 3)
    assert written["targets"] == missed
    assert written["table_rows"] == dict(ROWS)
