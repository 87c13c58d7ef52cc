"""Estimates hold, and end exact."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.errors import AggregateOverflowError
from eddyline.watching.aggregate import WatchedAggregate, WatchedFunction
from eddyline.watching.formulas import Formula
from eddyline.watching.running_aggregates import Estimates, RunningAggregates, student_quantile

COUNT = WatchedAggregate(WatchedFunction.COUNT, None, "n", pa.int64())
VALUES = WatchedAggregate(WatchedFunction.COUNT, 1, "v", pa.int64())
SUM = WatchedAggregate(WatchedFunction.SUM, 1, "s", pa.float64())
AVG = WatchedAggregate(WatchedFunction.AVG, 1, "m", pa.float64())
ALL = (COUNT, VALUES, SUM, AVG)
KEY = (("k", pa.int64()),)

Rows = Sequence[tuple[int | None, float | None]]


def estimated(
    units: Sequence[Rows], done: int, aggregates: Sequence[WatchedAggregate] = ALL
) -> Estimates:
    running = RunningAggregates(KEY, aggregates, len(units))
    for rows in units[:done]:
        running.add(
            [
                pa.array([k for k, _ in rows], pa.int64()),
                pa.array([x for _, x in rows], pa.float64()),
            ],
            len(rows),
        )
        running.end_unit()
    return running.estimates()


ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.integers(-5, 5).map(float)), max_size=6
)


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_they_end_exact(units: list[Rows]) -> None:
    found = estimated(units, len(units))
    assert found.exact
    rows = [row for unit in units for row in unit]
    expected = {}
    for key in {k for k, _ in rows}:
        values = [x for k, x in rows if k == key and x is not None]
        count = sum(k == key for k, _ in rows)
        total = sum(values) if values else None
        mean = sum(values) / len(values) if values else None
        expected[key] = (count, len(values), total, mean)
    table = found.table.to_pylist()
    assert {row["k"]: (row["n"], row["v"], row["s"], row["m"]) for row in table} == expected
    for row in table:
        for name in "nvsm":
            assert row[f"{name}_low"] == row[f"{name}_high"] == row[name]


def test_least_and_greatest_are_of_what_was_seen() -> None:
    least = WatchedAggregate(WatchedFunction.MIN, 1, "low", pa.float64())
    greatest = WatchedAggregate(WatchedFunction.MAX, 1, "high", pa.float64())
    units: list[Rows] = [[(1, 2.0), (1, None)], [(1, -1.0), (2, None)], [(1, math.nan)]]
    on_the_way = estimated(units, 2, (least, greatest))
    assert on_the_way.so_far == {"low", "high"}
    first, second = on_the_way.table.to_pylist()
    assert (first["low"], first["high"]) == (-1.0, 2.0)
    bounds = (first["low_low"], first["low_high"], first["high_low"], first["high_high"])
    assert bounds == (None,) * 4
    assert (second["low"], second["high"]) == (None, None)
    final = estimated(units, 3, (least, greatest))
    assert not final.so_far
    first, _ = final.table.to_pylist()
    assert first["low"] == first["low_low"] == first["low_high"] == -1.0
    assert math.isnan(first["high"])  # to Spark greater than all


def test_a_formula_whose_value_fails_is_not_told() -> None:
    def compute(columns: Sequence[pa.Array], final: bool) -> pa.Array:  # noqa: FBT001 - as a Compute is called
        assert not final
        return pa.nulls(len(columns[0]), pa.float64())

    formula = Formula("r", pa.float64(), (0, 1), compute)
    running = RunningAggregates(KEY, (COUNT, SUM), 3, formulas=(formula,))
    for _ in range(2):
        running.add([pa.array([1]), pa.array([2.0])], 1)
        running.end_unit()
    (row,) = running.estimates().table.to_pylist()
    assert (row["r"], row["r_low"], row["r_high"]) == (None, None, None)


RATIO = Formula(
    "r",
    pa.float64(),
    (0, 1),
    lambda columns, _: pc.divide(columns[2], pc.cast(columns[1], pa.float64())),
)
"""SUM over COUNT: with the counts of rows first."""


MOMENTS = (5, 15, 40)
"""Units of 50 after which intervals are judged."""


@functools.cache
def coverage(draw: str, groups: int = 800) -> dict[int, dict[str, float]]:
    """Return for each moment how often the 95 % intervals of each aggregate hold the truth.

    Of groups whose rows are drawn independently, all of one aggregate: it is asked once a unit.
    """
    generator = np.random.default_rng(7)
    key = generator.integers(0, groups, 750 * groups)
    if draw == "even":
        values = generator.normal(10.0, 3.0, len(key))
    else:
        values = generator.exponential(5.0, len(key)) * (1 + key % 2)
    unit = generator.integers(0, 50, len(key))
    counts, sums = np.bincount(key), np.bincount(key, values)
    truths = {"n": counts, "s": sums, "m": sums / counts, "r": sums / counts}
    running = RunningAggregates(KEY, (COUNT, SUM, AVG), 50, formulas=(RATIO,))
    hits = {}
    for number in range(max(MOMENTS)):
        mine = unit == number
        running.add([pa.array(key[mine]), pa.array(values[mine])], int(mine.sum()))
        running.end_unit()
        if number + 1 in MOMENTS:
            table = running.estimates().table
            of = table.column("k").to_numpy()
            assert len(of) == groups
            hits[number + 1] = {
                name: float(
                    np.mean(
                        (table.column(f"{name}_low").to_numpy() <= truth[of])
                        & (truth[of] <= table.column(f"{name}_high").to_numpy())
                    )
                )
                for name, truth in truths.items()
            }
    return hits


@pytest.mark.statistical
@pytest.mark.parametrize("draw", ["even", "skewed"])
@pytest.mark.parametrize("done", MOMENTS)
def test_the_intervals_hold_as_often_as_they_say(draw: str, done: int) -> None:
    for name, part in coverage(draw)[done].items():
        assert 0.93 <= part <= 0.97, (name, part)


def test_there_is_no_telling_from_one_unit() -> None:
    found = estimated([[(1, 2.0)], [(1, 3.0)], []], 1).table.to_pylist()
    assert found == [
        {
            "k": 1,
            "n": 3,
            "n_low": None,
            "n_high": None,
            "v": 3,
            "v_low": None,
            "v_high": None,
            "s": 6.0,
            "s_low": None,
            "s_high": None,
            "m": 2.0,
            "m_low": None,
            "m_high": None,
        }
    ]


def test_without_groups_there_is_one_row_also_of_nothing() -> None:
    running = RunningAggregates((), (COUNT,), 2)
    assert running.estimates().table.to_pylist() == [{"n": 0, "n_low": None, "n_high": None}]
    running.end_unit()
    running.end_unit()
    assert running.estimates().table.to_pylist() == [{"n": 0, "n_low": 0, "n_high": 0}]
    with pytest.raises(ValueError, match="all 2 units are done"):
        running.end_unit()


def test_columns_may_have_one_name() -> None:
    twice = (("n", pa.int64()),)
    running = RunningAggregates(twice, (COUNT, COUNT), 1)
    running.add([pa.array([4, 4, 5])], 3)
    running.end_unit()
    table = running.estimates().table
    assert table.column_names == ["n", "n", "n_low", "n_high", "n", "n_low", "n_high"]
    assert [column.to_pylist() for column in table.columns] == [[4, 5]] + [[2, 1]] * 6


def test_floats_are_grouped_as_spark_does() -> None:
    running = RunningAggregates((("x", pa.float64()),), (COUNT,), 2)
    for values in ([0.0, math.nan], [-0.0, float("nan")]):
        running.add([pa.array(values)], 2)
        running.end_unit()
    counts = running.estimates().table.column("n").to_pylist()
    assert counts == [2, 2]


def test_whole_numbers_and_decimals_are_exact() -> None:
    large = 2**62
    running = RunningAggregates(
        (),
        (
            WatchedAggregate(WatchedFunction.AVG, 0, "m", pa.float64()),
            WatchedAggregate(WatchedFunction.SUM, 1, "s", pa.decimal128(20, 2)),
            WatchedAggregate(WatchedFunction.AVG, 1, "d", pa.decimal128(14, 6)),
        ),
        1,
    )
    prices = [Decimal("1.01"), Decimal("2.02"), Decimal("2.02")]
    running.add([pa.array([large] * 3), pa.array(prices, pa.decimal128(10, 2))], 3)
    running.end_unit()
    (row,) = running.estimates().table.to_pylist()
    assert (row["m"], row["s"], row["d"]) == (float(large), Decimal("5.05"), Decimal("1.683333"))


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(18, 0)])
def test_an_estimate_beyond_its_type_is_not_told(kind: pa.DataType) -> None:
    running = RunningAggregates((), (WatchedAggregate(WatchedFunction.SUM, 0, "s", kind),), 2)
    values = pa.array([2**62] * 3 if kind == pa.int64() else [Decimal(10**17 * 8)], kind)
    running.add([values], len(values))
    running.end_unit()
    (row,) = running.estimates().table.to_pylist()
    assert row["s"] is None
    running.add([values], len(values))
    running.end_unit()
    with pytest.raises(AggregateOverflowError, match="s is a sum that does not fit"):
        running.estimates()


@pytest.mark.parametrize(
    ("degrees", "known"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (30, 2.042), (200, 1.972)],
)
def test_quantiles_are_those_of_the_tables(degrees: int, known: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(known, rel=2e-3)
    assert student_quantile(0.025, degrees) == pytest.approx(-known, rel=2e-3)


def test_quantiles_that_there_are_not() -> None:
    for probability, degrees in ((0.0, 3), (1.0, 3), (0.5, 0)):
        with pytest.raises(ValueError, match="no quantile"):
            student_quantile(probability, degrees)
