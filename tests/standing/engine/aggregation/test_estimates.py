"""What was dropped is estimated from what was taken, and the truth is within the interval."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
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
)
from eddyline.standing.engine.aggregation.estimates import (
    CONFIDENCE,
    Lost,
    SampledAggregates,
    Weights,
    estimated,
    weighted_parts,
)
from eddyline.standing.engine.aggregation.merged_parts import put_together
from tests.properties import examples

LONG, DOUBLE = pa.int64(), pa.float64()


def aggregate(function: str, kind: pa.DataType, result: pa.DataType) -> Aggregate:
    return Aggregate(AggregateFunction(function), Argument(0, kind), result)


COUNT = aggregate("count", LONG, LONG)
SUM = aggregate("sum", LONG, LONG)
MEAN = aggregate("avg", LONG, DOUBLE)


def lost_of(*numbers: float, one_by_one: bool = True) -> Lost:
    dropped, seen, more, spread = (np.array([float(number)]) for number in numbers)
    return Lost(dropped, seen, more, spread, one_by_one)


class Window:
    """A window whose events come in batches, each with the share of it that is taken."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self.parts: dict[Aggregate, list[pa.Table]] = {COUNT: [], SUM: [], MEAN: []}
        self.events = self.taken = 0
        self.more = self.spread = 0.0

    def come(self, values: list[int | None], share: float) -> None:
        """Let events come; those with None are none of the group that is looked at."""
        taken = self.generator.uniform(size=len(values)) < share
        self.events += len(values)
        self.taken += int(taken.sum())
        weights = Weights.of(np.full(int(taken.sum()), share))
        self.more += weights.more.sum()
        self.spread += 0.0 if weights.spread is None else weights.spread.sum()
        own = np.array([v is not None for v in values], np.bool_)[taken]
        chosen = [v for v, some in zip(values, taken, strict=True) if some and v is not None]
        column = pa.array(chosen, LONG)
        for each, tables in self.parts.items():
            found = parts_of(each, column, len(column))
            if share < 1:
                found |= weighted_parts(each, column, weights.take(np.flatnonzero(own)))
            tables.append(pa.table({"key": pa.array([0] * len(column), LONG), **found}))

    def told(self, of: Aggregate, *, one_by_one: bool = True) -> tuple[Any, float, float]:
        """The value, and the bounds of its interval."""
        every = pa.concat_tables(self.parts[of], promote_options="default")
        names = [f"{name} {name}" for name in every.column_names[1:]]
        every = every.rename_columns(["key", *names])
        parts = put_together(every, ["key"])
        parts = parts.drop_columns(["key"])
        parts = parts.rename_columns([name.split(" ")[0] for name in parts.column_names])
        if not len(parts):
            return None, np.nan, np.nan
        lost = lost_of(*self.lost(), one_by_one=one_by_one)
        found: SampledAggregates = estimated(of, parts, lost)
        (value,) = found.values.values.to_pylist()
        return value, float(found.low[0]), float(found.high[0])

    def lost(self) -> tuple[float, ...]:
        return self.events - self.taken, self.taken, self.more, self.spread


@pytest.mark.parametrize(
    ("shares", "part"),
    [((0.1,), 0.5), ((0.02,), 0.9), ((1.0, 0.05), 0.2), ((0.5, 0.02, 0.2), 0.5), ((0.005,), 1.0)],
)
def test_the_truth_is_in_the_interval_as_often_as_is_said(
    shares: tuple[float, ...], part: float
) -> None:
    """With batches of a thousand events of skewed values, a hundred times."""
    within: Counter[Aggregate] = Counter()
    told: Counter[Aggregate] = Counter()
    off: dict[Aggregate, list[float]] = {COUNT: [], SUM: [], MEAN: []}
    for seed in range(100):
        generator = np.random.default_rng(seed)
        window = Window(generator)
        every: list[npt.NDArray[np.int64]] = []
        for share in shares:
            numbers = generator.gamma(2, 50, 1000).astype(np.int64)
            member = generator.uniform(size=1000) < part
            paired = zip(numbers, member, strict=True)
            window.come([int(v) if m else None for v, m in paired], share)
            every.append(numbers[member])
        values = np.concatenate(every)
        for of, truth in ((COUNT, len(values)), (SUM, values.sum()), (MEAN, values.mean())):
            value, low, high = window.told(of)
            if value is not None and not np.isnan(low):
                told[of] += 1
                within[of] += low <= truth <= high
                assert low - 0.5 <= value <= high + 0.5  # a count is a whole number
                off[of].append((value - truth) / truth)
    for of in (COUNT, SUM, MEAN):
        assert told[of] >= 90
        # Of twenty skewed values a mean is not quite normal: 9 in 10 of a thousand times.
        assert within[of] >= (CONFIDENCE - 0.1) * told[of]
        assert abs(np.mean(off[of])) < 4 * np.std(off[of]) / np.sqrt(told[of]) + 1e-9


@examples(50)
@given(
    st.lists(
        st.tuples(
            st.lists(st.none() | st.integers(-9, 9), max_size=20), st.sampled_from([1.0, 0.5, 0.1])
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 99),
)
def test_a_count_is_between_what_was_seen_and_that_with_all_that_was_dropped(
    batches: list[tuple[list[int | None], float]], seed: int
) -> None:
    window = Window(np.random.default_rng(seed))
    for values, share in batches:
        window.come(values, share)
    every = [value for values, _ in batches for value in values if value is not None]
    value, low, high = window.told(COUNT)
    total, *_ = window.told(SUM)
    dropped = window.events - window.taken
    if value is None:  # not one was taken
        return
    if not dropped:
        assert (value, total) == (len(every), sum(every) if every else None)
        return
    assert low <= value + 0.5
    assert value <= high + 0.5
    assert 0 <= low <= high <= window.events


def test_joined_rows_have_no_interval() -> None:
    window = Window(np.random.default_rng(1))
    window.come([5] * 100, 0.25)
    value, low, high = window.told(COUNT, one_by_one=False)
    assert value == 100
    assert np.isnan(low)
    assert np.isnan(high)


def row_of(
    of: Aggregate, parts: dict[str, Any], kind: pa.DataType, lost: Lost
) -> SampledAggregates:
    columns = {"sum": pa.array([parts.pop("sum")], kind)} if "sum" in parts else {}
    columns |= {name: pa.array([value]) for name, value in parts.items()}
    return estimated(of, pa.table(columns), lost)


HALF = lost_of(10, 10, 10, 20)
"""Ten events were taken and ten dropped."""

WEIGHED: dict[str, Any] = {
    "rows": 10,
    "more": 10.0,
    "spread": 20.0,
    "spread-sum": 30.0,
    "spread-square": 50.0,
}


def test_estimates_are_of_the_type_of_the_aggregate() -> None:
    kind, result = pa.decimal128(10, 2), pa.decimal128(20, 2)
    parts = WEIGHED | {"sum": Decimal("15.25"), "more-sum": 15.25}
    found = row_of(aggregate("sum", kind, result), dict(parts), pa.decimal128(38, 2), HALF)
    assert found.values.values.to_pylist() == [Decimal("30.50")]
    assert found.low[0] < 30.5 < found.high[0]
    small = pa.decimal128(3, 2)
    found = row_of(aggregate("sum", kind, small), dict(parts), pa.decimal128(38, 2), HALF)
    assert list(found.values.errors) == [0]
    # A sum that is at the end of what fits, and would be twice that.
    high = {"high": [1 << 30], "low": [0], "more-sum": [float(1 << 62)]}
    parts = {name: [value] for name, value in WEIGHED.items()} | high
    for overflow, values in ((Overflow.FAILS, None), (Overflow.IS_NULL, [None])):
        of = Aggregate(AggregateFunction.SUM, Argument(0, LONG), LONG, overflow)
        found = estimated(of, pa.table(parts), HALF)
        if values is None:
            assert "ARITHMETIC_OVERFLOW" in str(found.values.errors[0])
        else:
            assert found.values.values.to_pylist() == values


def test_what_lost_nothing_is_exact_to_the_last_digit() -> None:
    nothing = lost_of(0, 10, 0, 0)
    large = (1 << 61) + 1
    parts = {"rows": [2], "high": [large >> 32], "low": [large & 0xFFFFFFFF]}
    found = estimated(SUM, pa.table(parts), nothing)
    assert found.values.values.to_pylist() == [large]
