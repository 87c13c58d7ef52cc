"""Rows are the same in any order, with floats that nearly agree, and nothing else is."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from bench.answers import require_same_rows

TABLE = pa.table(
    {
        "x": [0.1 + 0.2, None, float("nan"), 2.0],
        "word": ["a", "b", None, "b"],
        "sum": [Decimal("1.10"), None, Decimal("2.00"), Decimal("1.10")],
    }
)


def test_order_does_not_matter_nor_the_last_digits_of_floats() -> None:
    close = TABLE.set_column(0, "x", pa.array([0.3, None, float("nan"), 2.0]))
    require_same_rows(TABLE, close.take([3, 2, 1, 0]))


def test_empty_tables_are_the_same() -> None:
    require_same_rows(TABLE.slice(0, 0), TABLE.slice(0, 0), order_by=["word"])


def decimals(text: str) -> pa.Table:
    return pa.table({"d": [Decimal(text)]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(TABLE, TABLE.slice(1), id="a lost row"),
        pytest.param(TABLE, TABLE.take([0, 0, 2, 3]), id="another row twice"),
        pytest.param(
            TABLE,
            TABLE.set_column(0, "x", pa.array([0.3001, None, float("nan"), 2.0])),
            id="another float",
        ),
        pytest.param(
            TABLE,
            TABLE.set_column(0, "x", pa.array([0.3, float("nan"), float("nan"), 2.0])),
            id="NULL is not NaN",
        ),
        pytest.param(
            TABLE,
            TABLE.set_column(1, "word", pa.array(["b", "a", None, "b"])),
            id="columns belong together",
        ),
        pytest.param(TABLE, TABLE.rename_columns(["x", "w", "sum"]), id="another name"),
        pytest.param(
            pa.table({"n": pa.array([1], pa.int64())}),
            pa.table({"n": pa.array([1], pa.int32())}),
            id="another type",
        ),
        pytest.param(
            pa.table({"word": [""]}),
            pa.table({"word": pa.array([None], pa.string())}),
            id="NULL is no empty word",
        ),
        pytest.param(
            pa.table({"n": [1, 1, 2]}), pa.table({"n": [1, 2, 2]}), id="a swapped duplicate"
        ),
        pytest.param(
            decimals("1.0000000001"), decimals("1.0000000002"), id="decimals are compared exactly"
        ),
    ],
)
def test_a_difference_is_found(one: pa.Table, other: pa.Table) -> None:
    require_same_rows(one, one)
    with pytest.raises(AssertionError):
        require_same_rows(one, other)


def test_the_order_of_the_sort_columns_matters() -> None:
    one = pa.table({"rank": [1, 1, 2], "n": [5, 6, 7]})
    require_same_rows(one, one.take([1, 0, 2]), order_by=["rank"])
    with pytest.raises(AssertionError):
        require_same_rows(one, one.take([2, 1, 0]), order_by=["rank"])
