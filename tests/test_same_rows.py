"""The comparison of rows finds what differs, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.answers import DifferentRowsError, check_same_rows

TABLE = pa.table({"word": ["a", "b", None, "b"], "x": [0.1 + 0.2, None, float("nan"), 2.0]})


def test_order_does_not_matter() -> None:
    check_same_rows(TABLE, TABLE.take([3, 2, 1, 0]))


def test_floats_may_differ_in_their_last_digits() -> None:
    close = pa.table({"word": ["a", "b", None, "b"], "x": [0.3, None, float("nan"), 2.0]})
    check_same_rows(TABLE, close)


@pytest.mark.parametrize("value", [0.3001, None, float("nan")])
def test_another_float_is_found(value: float | None) -> None:
    other = pa.table({"word": ["a", "b", None, "b"], "x": [value, None, float("nan"), 2.0]})
    with pytest.raises(DifferentRowsError, match="row 0 of 4"):
        check_same_rows(TABLE, other)


def test_null_is_not_nan() -> None:
    one, other = pa.table({"x": [1.0, None]}), pa.table({"x": [1.0, float("nan")]})
    with pytest.raises(DifferentRowsError):
        check_same_rows(one, other)


def test_null_is_not_an_empty_word() -> None:
    with pytest.raises(DifferentRowsError, match="'word': None"):
        check_same_rows(pa.table({"word": [""]}), pa.table({"word": pa.array([None], pa.string())}))


def test_a_lost_duplicate_is_found() -> None:
    with pytest.raises(DifferentRowsError, match="4 rows became 3"):
        check_same_rows(TABLE, TABLE.slice(0, 3))


def test_a_swapped_duplicate_is_found() -> None:
    with pytest.raises(DifferentRowsError):
        check_same_rows(pa.table({"n": [1, 1, 2]}), pa.table({"n": [1, 2, 2]}))


def test_columns_belong_together() -> None:
    one = pa.table({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(DifferentRowsError):
        check_same_rows(one, pa.table({"a": [1, 2], "b": [2, 1]}))


def test_decimals_are_compared_exactly() -> None:
    one, other = (pa.table({"d": [Decimal(text)]}) for text in ("1.0000000001", "1.0000000002"))
    with pytest.raises(DifferentRowsError):
        check_same_rows(one, other)


def test_another_name_or_type_is_found() -> None:
    numbers = pa.table({"n": pa.array([1], pa.int64())})
    for other in (pa.table({"m": [1]}), pa.table({"n": pa.array([1], pa.int32())})):
        with pytest.raises(DifferentRowsError, match="columns"):
            check_same_rows(numbers, other)


def test_the_order_of_the_sort_columns_matters() -> None:
    one = pa.table({"rank": [1, 1, 2], "n": [5, 6, 7]})
    check_same_rows(one, one.take([1, 0, 2]), order_by=["rank"])
    with pytest.raises(DifferentRowsError, match="in the query's order"):
        check_same_rows(one, one.take([2, 1, 0]), order_by=["rank"])


def test_empty_tables_are_the_same() -> None:
    check_same_rows(TABLE.slice(0, 0), TABLE.slice(0, 0), order_by=["word"])
