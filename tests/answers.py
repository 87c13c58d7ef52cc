"""Whether two results are the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

RELATIVE_TOLERANCE = 1e-9
"""Of floats: a sum of doubles depends on the order of its terms, by some ulps a term."""


class DifferentRowsError(AssertionError):
    """Two runs of a query gave different rows."""


def check_same_rows(expected: pa.Table, actual: pa.Table, order_by: Sequence[str] = ()) -> None:
    """Raise :class:`DifferentRowsError` unless two tables hold the same bag of rows.

    ``order_by`` names columns that the query sorts by: they must run alike, too.
    (Not the rows: SQL leaves the order of rows that sort alike to the engine.)
    Floats may differ by ``RELATIVE_TOLERANCE``. Columns must be of types that
    Arrow can sort.

    >>> check_same_rows(pa.table({"n": [1, 2, 2]}), pa.table({"n": [2, 1, 2]}))
    >>> check_same_rows(pa.table({"n": [1, 2, 2]}), pa.table({"n": [2, 1, 1]}))
    Traceback (most recent call last):
    ...
    tests.answers.DifferentRowsError: row 1 of 3, sorted: {'n': 2} became {'n': 1}
    """
    if _columns(expected) != _columns(actual):
        raise DifferentRowsError(f"columns {_columns(expected)} became {_columns(actual)}")
    if len(expected) != len(actual):
        raise DifferentRowsError(f"{len(expected)} rows became {len(actual)}")
    for name in order_by:
        place = _first_difference(expected.column(name), actual.column(name))
        if place is not None:
            raise DifferentRowsError(_difference(expected, actual, place, "in the query's order"))
    expected, actual = _sorted(expected), _sorted(actual)
    for name in expected.column_names:
        place = _first_difference(expected.column(name), actual.column(name))
        if place is not None:
            raise DifferentRowsError(_difference(expected, actual, place, "sorted"))


def _columns(table: pa.Table) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in table.schema]


def _sorted(table: pa.Table) -> pa.Table:
    """Sort by all columns, floats last: what may differ a little must not decide about the rest."""
    exact_first = sorted(
        table.column_names, key=lambda name: pa.types.is_floating(table.schema.field(name).type)
    )
    return table.sort_by([(name, "ascending") for name in exact_first])


def _first_difference(expected: pa.ChunkedArray, actual: pa.ChunkedArray) -> int | None:
    if expected.equals(actual):
        return None
    if pa.types.is_floating(expected.type):
        both_null = np.logical_and(expected.is_null(), actual.is_null())
        close = np.isclose(
            expected.to_numpy(),  # NULL becomes NaN here, hence the masks
            actual.to_numpy(),
            rtol=RELATIVE_TOLERANCE,
            atol=0.0,
            equal_nan=True,
        ) & np.equal(expected.is_null(), actual.is_null())
        differing = np.flatnonzero(~(close | both_null))
        return int(differing[0]) if len(differing) else None
    pairs = zip(expected.to_pylist(), actual.to_pylist(), strict=True)
    return next(place for place, (one, other) in enumerate(pairs) if one != other)


def _difference(expected: pa.Table, actual: pa.Table, place: int, order: str) -> str:
    rows = [table.slice(place, 1).to_pylist()[0] for table in (expected, actual)]
    return f"row {place} of {len(expected)}, {order}: {rows[0]} became {rows[1]}"
