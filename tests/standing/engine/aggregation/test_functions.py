"""Aggregates put together from parts have the values that Spark gives all rows at once."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.expressions import Argument
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.aggregation.aggregate_functions import (
    Aggregate,
    AggregateFunction,
    Overflow,
    parts_of,
    value_of,
)
from eddyline.standing.engine.aggregation.merged_parts import put_together

LONG, DOUBLE = pa.int64(), pa.float64()
MOST = (1 << 63) - 1


def aggregated(
    function: str,
    values: list[Any],
    kind: pa.DataType,
    result: pa.DataType,
    overflow: Overflow = Overflow.FAILS,
    cut: int = 1,
    *,
    distinct: bool = False,
) -> Vector:
    """The aggregate of values that come in two parts, which are put together in a second step."""
    aggregate = Aggregate(
        AggregateFunction(function), Argument(0, kind), result, overflow, distinct
    )
    tables = []
    for part in (values[:cut], values[cut:]):
        columns = parts_of(aggregate, pa.array(part, kind), len(part))
        table = pa.table({"key": pa.array([0] * len(part), pa.int64()), **columns})
        names = [table.column_names[0], *(f"a {name}" for name in table.column_names[1:])]
        tables.append(put_together(table.rename_columns(names), ["key"]))
    both = put_together(pa.concat_tables(tables), ["key"]).drop_columns(["key"])
    return value_of(aggregate, both.rename_columns([n[2:] for n in both.column_names]))


def value(
    function: str,
    values: list[Any],
    kind: pa.DataType,
    result: pa.DataType,
    overflow: Overflow = Overflow.FAILS,
    cut: int = 1,
) -> object:
    vector = aggregated(function, values, kind, result, overflow, cut)
    assert not vector.errors
    assert vector.values.type == result
    (found,) = vector.values.to_pylist()
    return found


@given(st.lists(st.none() | st.integers(-(1 << 63), MOST), min_size=1), st.integers(0, 9))
def test_sums_of_whole_numbers_are_exact_or_fail(values: list[int | None], cut: int) -> None:
    known = [v for v in values if v is not None]
    found = aggregated("sum", values, LONG, LONG, cut=cut)
    if known and not -MOST - 1 <= sum(known) <= MOST:
        assert list(found.errors) == [0]
        assert "ARITHMETIC_OVERFLOW" in str(found.errors[0])
    else:
        assert found.errors == {}
        assert found.values.to_pylist() == [sum(known) if known else None]
    wrapped = (sum(known) + MOST + 1) % (1 << 64) - MOST - 1 if known else None
    assert value("sum", values, LONG, LONG, overflow=Overflow.WRAPS, cut=cut) == wrapped


@given(st.lists(st.none() | st.integers(-1000, 1000), min_size=1), st.integers(0, 9))
def test_counts_means_and_extremes(values: list[int | None], cut: int) -> None:
    known = [v for v in values if v is not None]
    kind = pa.int32()
    assert value("count", values, kind, LONG, cut=cut) == len(known)
    assert value("min", values, kind, kind, cut=cut) == min(known, default=None)
    assert value("max", values, kind, kind, cut=cut) == max(known, default=None)
    mean = value("avg", values, kind, DOUBLE, cut=cut)
    assert mean == (sum(known) / len(known) if known else None)


@given(st.lists(st.none() | st.integers(-5, 5), min_size=1), st.integers(0, 9))
def test_distinct_values_are_taken_once(values: list[int | None], cut: int) -> None:
    known = {v for v in values if v is not None}
    kind = pa.int32()
    for function, result, wanted in (
        ("count", LONG, len(known)),
        ("sum", LONG, sum(known) if known else None),
        ("avg", DOUBLE, sum(known) / len(known) if known else None),
    ):
        vector = aggregated(function, values, kind, result, cut=cut, distinct=True)
        assert vector.values.to_pylist() == [wanted]
    (found,) = aggregated("collect_set", values, kind, pa.list_(kind), cut=cut).values.to_pylist()
    assert sorted(found) == sorted(known)


def test_what_is_one_value_to_spark_is_counted_once() -> None:
    values = [NAN, -NAN, 0.0, -0.0, None]
    found = aggregated("count", values, DOUBLE, LONG, cut=2, distinct=True)
    assert found.values.to_pylist() == [2]


@given(
    st.lists(st.none() | st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=1),
    st.integers(0, 9),
)
def test_variances_do_not_depend_on_parts(values: list[float | None], cut: int) -> None:
    known = [v for v in values if v is not None]
    for function, least, of in (
        ("var_pop", 1, statistics.pvariance),
        ("var_samp", 2, statistics.variance),
        ("stddev_pop", 1, statistics.pstdev),
        ("stddev_samp", 2, statistics.stdev),
    ):
        found = value(function, values, DOUBLE, DOUBLE, cut=cut)
        wanted = of(known) if len(known) >= least else None
        scale = max(map(abs, known), default=0.0)
        assert found == wanted or found == pytest.approx(wanted, rel=1e-6, abs=1e-7 * scale**2)


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([1.5, NAN, -2.0], -2.0, NAN),
        ([NAN, NAN], NAN, NAN),
        ([None, NAN], NAN, NAN),
        ([None, None], None, None),
        ([math.inf, 1.0, None], 1.0, math.inf),
    ],
)
@pytest.mark.parametrize("kind", [pa.float32(), DOUBLE])
def test_nan_is_the_greatest(
    values: list[float | None], least: float | None, greatest: float | None, kind: pa.DataType
) -> None:
    for function, wanted in (("min", least), ("max", greatest)):
        found = value(function, values, kind, kind)
        assert found == wanted or (math.isnan(wanted or 0) and repr(found) == "nan")


def test_sums_and_means_of_decimals() -> None:
    kind = pa.decimal128(10, 2)
    values = [Decimal("0.01"), None, Decimal("99999999.99"), Decimal("-0.03")]
    assert value("sum", values, kind, pa.decimal128(20, 2)) == Decimal("99999999.97")
    third = value("avg", values, kind, pa.decimal128(14, 6))
    assert third == Decimal("33333333.323333")
    half = [Decimal("0.01"), Decimal("0.02")]
    assert value("avg", half, kind, pa.decimal128(3, 2)) == Decimal("0.02")  # half up
    assert value("sum", [None], kind, pa.decimal128(20, 2), cut=0) is None


def test_decimals_that_do_not_fit() -> None:
    kind = pa.decimal128(38, 0)
    most = [Decimal(10**38 - 1)] * 2
    found = aggregated("sum", most, kind, kind)
    assert list(found.errors) == [0]
    assert value("sum", most, kind, kind, overflow=Overflow.IS_NULL) is None
    assert value("avg", most, kind, kind) == most[0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["b", None, "a"], pa.string()),
        ([b"b", b"", None], pa.binary()),
        ([True, None, False], pa.bool_()),
        ([dt.date(2026, 1, 2), dt.date(1969, 1, 1)], pa.date32()),
        ([dt.datetime(2026, 1, 2), None, dt.datetime(1969, 1, 1)], pa.timestamp("us")),  # noqa: DTZ001 - without a zone
        ([Decimal("1.5"), Decimal("-1.5")], pa.decimal128(38, 1)),
    ],
)
def test_extremes_of_every_type(values: list[Any], kind: pa.DataType) -> None:
    known = [v for v in values if v is not None]
    assert value("min", values, kind, kind) == min(known)
    assert value("max", values, kind, kind) == max(known)
