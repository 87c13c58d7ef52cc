"""Aggregates of whole groups: the same values, however rows were cut into parts."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.expressions import Argument
from eddyline.standing.engine.aggregation.aggregate_functions import (
    Aggregate,
    AggregateFunction,
    Overflow,
    parts_of,
    value_of,
)
from eddyline.standing.engine.aggregation.alike_values import alike_numbers, can_be_grouped
from eddyline.standing.engine.aggregation.merged_parts import put_together

INT, LONG, DOUBLE = pa.int32(), pa.int64(), pa.float64()
PAIR = pa.struct([("value", LONG), ("by", DOUBLE)])
NUMBERS = pa.struct([("one", DOUBLE), ("other", DOUBLE)])

Cuts = st.lists(st.integers(0, 12), max_size=3)
whole = st.none() | st.integers(-4, 4)
fractions = st.none() | st.integers(-50, 50).map(lambda n: n / 4)


def aggregated(
    function: str,
    values: list[Any],
    kind: pa.DataType,
    result: pa.DataType,
    cuts: list[int],
    *options: float,
    listed: bool = False,
    distinct: bool = False,
) -> Any:  # noqa: ANN401 - of the aggregate's type
    """The aggregate of values that come in several parts, put together in an odd order."""
    aggregate = Aggregate(
        AggregateFunction(function),
        Argument(0, kind),
        result,
        Overflow.FAILS,
        distinct,
        options,
        listed,
    )
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    tables = []
    for begin, end in pairwise(bounds):
        part = pa.array(values[begin:end], kind)
        columns = parts_of(aggregate, part, len(part))
        rows = {f"a {name}": column for name, column in columns.items()}
        key = pa.array([0] * len(part), LONG)
        tables.append(put_together(pa.table({"key": key, **rows}), ["key"]))
    parts = put_together(pa.concat_tables(reversed(tables)), ["key"]).drop_columns(["key"])
    vector = value_of(aggregate, parts.rename_columns([n[2:] for n in parts.column_names]))
    assert not vector.errors
    assert vector.values.type == result
    (found,) = vector.values.to_pylist()
    return found


def known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


@given(st.lists(whole, min_size=1), Cuts)
def test_bits_modes_and_lists(values: list[int | None], cuts: list[int]) -> None:
    some = known(values)
    for function, operator in (
        ("bit_and", lambda a, b: a & b),
        ("bit_or", lambda a, b: a | b),
        ("bit_xor", lambda a, b: a ^ b),
    ):
        found = aggregated(function, values, INT, INT, cuts)
        assert found == (reduce(operator, some) if some else None)
    counts = Counter(some)
    most = min((v for v in counts if counts[v] == max(counts.values())), default=None)
    assert aggregated("mode", values, INT, INT, cuts) == most
    found = aggregated("collect_list", values, INT, pa.list_(INT), cuts)
    assert Counter(found) == counts


@given(st.lists(fractions, min_size=1), Cuts)
def test_percentiles(values: list[float | None], cuts: list[int]) -> None:
    some = known(values)
    shares = (0.0, 0.3, 0.5, 1.0)
    lists = pa.list_(DOUBLE)
    for falling in (False, True):
        found = aggregated("percentile", values, DOUBLE, lists, cuts, falling, *shares, listed=True)
        places = [1 - share if falling else share for share in shares]
        wanted = np.quantile(some, places).tolist() if some else None
        assert found == (None if wanted is None else pytest.approx(wanted))
    median = aggregated("percentile", values, DOUBLE, DOUBLE, cuts, 0, 0.5)
    assert median == (statistics.median(some) if some else None)
    found = aggregated("percentile_approx", values, DOUBLE, DOUBLE, cuts, 100, 0.3)
    assert found == (sorted(some)[max(math.ceil(0.3 * len(some)) - 1, 0)] if some else None)


def test_percentiles_of_the_greatest_numbers_as_in_spark() -> None:
    most = 2**63 - 1
    assert aggregated("percentile_approx", [most, None], LONG, LONG, [1], 100, 0.5) == most
    assert aggregated("percentile_approx", [-most - 1], LONG, LONG, [], 100, 0.5) == -most - 1
    for low, high, wanted in (
        (-math.inf, 1000.0, math.nan),
        (0.0, math.inf, math.inf),
        (175.9, math.nan, math.nan),
    ):
        found = aggregated("percentile", [high, low], DOUBLE, DOUBLE, [1], 0, 0.5)
        assert found == pytest.approx(wanted, nan_ok=True)


@given(st.lists(st.tuples(whole, fractions), min_size=1), Cuts)
def test_values_of_chosen_rows(rows: list[tuple[Any, Any]], cuts: list[int]) -> None:
    values = [{"value": value, "by": by} for value, by in rows]
    for function, extreme in (("max_by", max), ("min_by", min)):
        found = aggregated(function, values, PAIR, LONG, cuts)
        bound = extreme(known([by for _, by in rows]), default=None)
        among = {value for value, by in rows if by == bound and by is not None}
        assert found in (among or {None})
        assert found == min(among - {None}, default=None)  # not by chance


def test_nan_is_the_greatest_to_choose_by() -> None:
    values = [{"value": n, "by": by} for n, by in enumerate([1.0, math.nan, None, -0.0, 0.0])]
    assert aggregated("max_by", values, PAIR, LONG, [2]) == 1
    assert aggregated("min_by", values, PAIR, LONG, [4]) == 3


def moment(values: list[float], power: int) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** power for value in values)


@given(st.lists(st.tuples(fractions, fractions), min_size=1), Cuts)
def test_moments(pairs: list[tuple[Any, Any]], cuts: list[int]) -> None:
    values = [one for one, _ in pairs]
    some = known(values)
    squares = moment(some, 2) if some else 0
    skewness = math.sqrt(len(some)) * moment(some, 3) / squares**1.5 if squares else None
    kurtosis = len(some) * moment(some, 4) / squares**2 - 3 if squares else None
    for function, wanted in (("skewness", skewness), ("kurtosis", kurtosis)):
        found = aggregated(function, values, DOUBLE, DOUBLE, cuts)
        if len(set(some)) == 1:
            continue  # what differs by rounding alone differs from Spark's rounding, too
        assert found == (None if wanted is None else pytest.approx(wanted, rel=1e-6, abs=1e-6))
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    rows = [None if None in pair else {"one": pair[0], "other": pair[1]} for pair in pairs]
    products = (
        math.fsum(
            (a - statistics.fmean(x for x, _ in both)) * (b - statistics.fmean(y for _, y in both))
            for a, b in both
        )
        if both
        else 0.0
    )
    for function, free in (("covar_pop", len(both)), ("covar_samp", len(both) - 1)):
        found = aggregated(function, rows, NUMBERS, DOUBLE, cuts)
        assert found == (pytest.approx(products / free, abs=1e-6) if free > 0 else None)
    if len(both) > 1 and all(len(set(side)) > 1 for side in zip(*both, strict=True)):
        found = aggregated("corr", rows, NUMBERS, DOUBLE, cuts)
        xs, ys = zip(*both, strict=True)
        assert found == pytest.approx(statistics.correlation(xs, ys), abs=1e-6)
    elif not both or len(both) == 1:
        assert aggregated("corr", rows, NUMBERS, DOUBLE, cuts) is None


NESTED = pa.struct([("a", DOUBLE), ("b", pa.list_(pa.string()))])
nested = st.none() | st.builds(
    lambda a, b: {"a": a, "b": b},
    st.sampled_from([None, 0.0, -0.0, math.nan, 1.5]),
    st.none() | st.lists(st.sampled_from([None, "x", ""]), max_size=2),
)


def alike(value: object) -> str:
    """A text that values have in common which are one to Spark."""
    return repr(value).replace("-0.0", "0.0")


@given(st.lists(nested, min_size=1), Cuts)
def test_structs_and_lists_are_told_apart(values: list[Any], cuts: list[int]) -> None:
    assert can_be_grouped(NESTED)
    assert not can_be_grouped(pa.list_(pa.map_(INT, INT)))
    numbers = alike_numbers(pa.array(values, NESTED)).tolist()
    by_number = dict(zip(numbers, map(alike, values), strict=True))
    assert [by_number[number] for number in numbers] == [alike(value) for value in values]
    assert len(set(by_number.values())) == len(by_number)
    some = known(values)
    distinct = len({alike(value) for value in some})
    assert aggregated("count", values, NESTED, LONG, cuts, distinct=True) == distinct
    found = aggregated("collect_set", values, NESTED, pa.list_(NESTED), cuts)
    assert {alike(value) for value in found} == {alike(value) for value in some}
    assert len(found) == distinct
    table = pa.table({"key": pa.array(values, NESTED), "a rows": [1] * len(values)})
    groups = put_together(pa.concat_tables([table, table]), ["key"])
    counted = zip(map(alike, groups["key"].to_pylist()), groups["a rows"].to_pylist(), strict=True)
    assert dict(counted) == {key: 2 * n for key, n in Counter(map(alike, values)).items()}
