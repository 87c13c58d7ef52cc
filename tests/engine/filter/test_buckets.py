"""Values fall into a few buckets, each always into the same one."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.filter.buckets import MOST_BUCKETS, buckets_for, can_tell_apart
from tests.properties import examples

COLUMNS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pa.float64()), st.lists(st.none() | st.floats())),
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text(max_size=2))),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans())),
    st.tuples(st.just(pa.date32()), st.lists(st.none() | st.dates())),
    st.tuples(
        st.just(pa.timestamp("us")),
        st.lists(st.none() | st.datetimes(min_value=dt.datetime(1700, 1, 1))),  # noqa: DTZ001 - no zone
    ),
    st.tuples(
        st.just(pa.decimal128(10, 2)),
        st.lists(st.none() | st.decimals(-1000, 1000, places=2)),
    ),
)


@examples(200)
@given(COLUMNS, st.integers(1, 20))
def test_equal_values_are_in_one_of_a_few_buckets(
    column: tuple[pa.DataType, list[object]], times: int
) -> None:
    a_type, values = column
    array = pa.array(values * times, a_type)
    assert can_tell_apart(a_type)
    made = buckets_for(array)
    if made is None:
        return
    buckets, shares = made
    assert shares.sum() == pytest.approx(1.0)
    found = buckets.of(array)
    assert 2 <= buckets.size <= MOST_BUCKETS
    assert len(found) == len(array)
    assert len(array) == 0 or (found.min() >= 0 and found.max() < buckets.size)
    again = buckets.of(pa.array(list(reversed(values)), a_type))
    assert again[::-1].tolist() == found[: len(values)].tolist()


def buckets_of(values: Sequence[object]) -> list[int]:
    made = buckets_for(pa.array(values))
    assert made is not None
    found: list[int] = made[0].of(pa.array(values)).tolist()
    return found


def test_few_values_have_a_bucket_each() -> None:
    assert buckets_of(["a", None, "b", "a"]) == [0, 1, 2, 0]


def test_numbers_are_cut_into_ranges_of_as_many_rows() -> None:
    found = buckets_of(list(range(1500)))
    assert found == sorted(found)
    assert set(np.bincount(found)) <= {99, 100, 101}


def test_of_many_texts_the_frequent_ones_have_a_bucket_each() -> None:
    texts = [f"seldom {n}" if n % 2 else f"often {n % 4}" for n in range(1000)]
    found = buckets_of(texts)
    assert found[0] == found[4] != found[2] == found[6]
    assert len({found[1], found[3], found[5]}) == 1


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([1] * 100, id="one value"),
        pytest.param([None] * 100, id="none"),
        pytest.param([f"{n}" for n in range(1000)], id="all different"),
    ],
)
def test_other_columns_say_nothing(values: list[object]) -> None:
    assert buckets_for(pa.array(values)) is None


@pytest.mark.parametrize("a_type", [pa.list_(pa.int64()), pa.binary(), pa.null(), pa.duration("s")])
def test_some_types_are_left_out(a_type: pa.DataType) -> None:
    assert not can_tell_apart(a_type)


def test_values_unknown_before_are_in_the_bucket_of_others() -> None:
    made = buckets_for(pa.array([decimal.Decimal("1.00"), decimal.Decimal("2.00")]))
    assert made is not None
    assert made[0].of(pa.array([decimal.Decimal("3.00"), None], pa.decimal128(3, 2))).tolist() == [
        2,
        2,
    ]
