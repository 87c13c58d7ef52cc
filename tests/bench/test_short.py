"""The short queries over tiny tables: everybody who is measured gives the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import eddyline
from bench.against_plain import PLAIN
from bench.short.benchmark import (
    ADAPT,
    AGAIN,
    ENABLE,
    Measured,
    Sessions,
    contestants,
    parts_table,
    require_same_bag,
    sessions,
    table,
    verdicts,
)
from bench.short.parts import Ledger, Part, borders_timed, make_plans_new
from bench.short.queries import QUERIES, WITHOUT, Short
from bench.short.records import at_most, write
from eddyline.catalyst.optimizer_rules import _Asked
from tests.validated import VALIDATED

ROWS = 200
"""Of each table at most: each query has rows left."""

QUICK = {
    **dict.fromkeys(VALIDATED, "false"),
    "spark.sql.shuffle.partitions": "2",
}
"""With these and one file a table all took 27 s of CPU time instead of 35, beside other work."""


@pytest.fixture(scope="module")
def by_name(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    folder = tmp_path_factory.mktemp("short")
    write(folder, at_most(ROWS), files=1)
    made = sessions(spark.newSession(), folder)
    for session in made.values():
        for name, value in QUICK.items():
            session.conf.set(name, value)
    yield made
    for name in (ENABLE, AGAIN):
        eddyline.disable(made[name])


@pytest.mark.slow(15)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_same_rows_as_plain_spark(by_name: Sessions, query: Short) -> None:
    runs = contestants(by_name, query)
    expected = runs[PLAIN]()
    assert expected
    require_same_bag(expected, runs[ENABLE]())
    require_same_bag(expected, runs[AGAIN]())
    if query in QUERIES[::4]:  # the same rewriting, by another way
        require_same_bag(expected, runs[ADAPT]())


def test_only_again_knows_what_became_of_an_equal_plan(by_name: Sessions) -> None:
    query = QUERIES[0]
    runs = contestants(by_name, query)
    for _ in range(2):  # the second time it is rewritten once more
        runs[ENABLE]()
        runs[AGAIN]()
    known = eddyline.status().reused
    for wanted in (known + 1, known + 2):
        make_plans_new(by_name[ENABLE])
        runs[ENABLE]()
        assert eddyline.status().reused == wanted - 1
        runs[AGAIN]()
        assert eddyline.status().reused == wanted


def test_other_rows_are_noticed() -> None:
    require_same_bag([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)])
    with pytest.raises(AssertionError, match="2 rows became 1"):
        require_same_bag([(1,), (1,)], [(1,)])


def measured(query: Short, plain: float, adapt: float, enable: float) -> Measured:
    """Return a query whose first run takes twice as long as the three that count."""
    seconds = {PLAIN: plain, ADAPT: adapt, ENABLE: enable, AGAIN: 0.8 * enable}
    return Measured(query, 10, {name: [2 * s, s, s, s] for name, s in seconds.items()}, uncounted=1)


MEASURED = [
    measured(Short("one", ""), 0.2, 0.1, 0.1),
    measured(Short("two", ""), 0.1, 0.08, 0.11),
    measured(Short("three", "", WITHOUT), 0.1, 0.1, 0.1025),
]


def test_the_table_has_ratios_milliseconds_and_first_runs() -> None:
    assert MEASURED[1].row() == [
        *("two", "10", "100", "0.80 (0.80-0.80)", "1.10 (1.10-1.10)", "0.88 (0.88-0.88)"),
        *("-20", "+10", "-12", "200", "0.80", "1.10", "0.88"),
    ]
    shown = table(MEASURED)
    cells = [list(column.cells) for column in shown.columns]
    assert cells[0] == [
        *("one", "two", "three", "mean, with functions", "worst, with functions"),
        *("mean, without functions", "worst, without functions"),
    ]
    assert cells[4][3:] == ["0.74", "1.10", "1.02", "1.02"]
    assert cells[7][3:] == ["", "+10", "", "+2"]
    assert cells[11][3:] == ["0.74", "1.10", "1.02", "1.02"]
    assert cells[12][3:] == ["0.59", "0.88", "0.82", "0.82"]


def test_verdicts_name_the_worst_query() -> None:
    assert verdicts(MEASURED) == [
        "with functions, enable: geometric mean 0.74, target 0.80",
        "with functions, enable: worst 1.10, target 1.05, missed (two)",
        "with functions, again: geometric mean 0.59, target 0.70",
        "with functions, again: worst 0.88, target 1.03 (two)",
        "without functions: geometric mean 1.02, target 1.00, missed",
        "without functions: at most +2.5 ms, target +1.0 ms, missed (three)",
    ]
    assert verdicts(MEASURED[:1])[1] == "with functions, enable: worst 0.50, target 1.05 (one)"


def test_parts_stand_beside_those_of_plain_spark() -> None:
    plain = {part: float(number) for number, part in enumerate(Part)}
    ours = {part: number + 0.5 for number, part in enumerate(Part)}
    shown = parts_table({"one": {PLAIN: plain, ENABLE: ours}}, ENABLE)
    row = [next(iter(column.cells)) for column in shown.columns]
    assert row == ["one", "0", "5", "6", *(f"{number}.5" for number in range(len(Part)))]


def test_time_counts_for_the_innermost_part() -> None:
    times = iter([0.0, 1.0, 3.0, 6.0])
    ledger = Ledger(lambda: next(times))
    with ledger.within(Part.REWRITE), ledger.within(Part.READ):
        pass
    nothing = dict.fromkeys(Part, 0.0)
    assert ledger.milliseconds() == {**nothing, Part.REWRITE: 4000, Part.READ: 2000}
    assert ledger.milliseconds() == nothing


def test_borders_are_timed_only_within_the_block() -> None:
    before = _Asked.apply
    with borders_timed(Ledger()):
        assert _Asked.apply is not before
    assert _Asked.apply is before
