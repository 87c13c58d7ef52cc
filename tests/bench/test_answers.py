"""A benchmark believes rows in any order, floats that nearly agree, and nothing else."""

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


def test_the_same_rows_in_another_order_are_believed() -> None:
    close = TABLE.set_column(0, "x", pa.array([0.3, None, float("nan"), 2.0]))
    require_same_rows(TABLE, close.take([3, 2, 1, 0]))


@pytest.mark.parametrize(
    "other",
    [
        TABLE.slice(1),
        TABLE.take([0, 0, 2, 3]),
        TABLE.set_column(0, "x", pa.array([0.3001, None, float("nan"), 2.0])),
        TABLE.set_column(0, "x", pa.array([0.3, float("nan"), float("nan"), 2.0])),
        TABLE.set_column(1, "word", pa.array(["b", "a", None, "b"])),
        TABLE.rename_columns(["x", "w", "sum"]),
    ],
)
def test_other_rows_are_not(other: pa.Table) -> None:
    with pytest.raises(AssertionError):
        require_same_rows(TABLE, other)


def test_the_order_of_the_sort_columns_matters() -> None:
    one = pa.table({"rank": [1, 1, 2], "n": [5, 6, 7]})
    require_same_rows(one, one.take([1, 0, 2]), order_by=["rank"])
    with pytest.raises(AssertionError):
        require_same_rows(one, one.take([2, 1, 0]), order_by=["rank"])
