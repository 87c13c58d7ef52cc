"""Whether two results are the same rows, which a benchmark asks before it believes a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl
import pyarrow as pa
from polars import selectors
from polars.testing import assert_frame_equal

_same = partial(assert_frame_equal, rel_tol=1e-9, abs_tol=0.0)
"""A sum of doubles depends on the order of its terms, by some ulps a term."""


def require_same_rows(expected: pa.Table, actual: pa.Table, order_by: Sequence[str] = ()) -> None:
    """Raise AssertionError unless two tables hold the same bag of rows.

    ``order_by`` names columns that the query sorts by: they must run alike, too. (Not the
    rows: SQL leaves the order of rows that sort alike to the engine.)
    """
    one, other = pl.DataFrame(expected), pl.DataFrame(actual)
    _same(one.select(order_by), other.select(order_by))
    # Rows are sorted by their columns. Those that may differ a little must not decide about others.
    exact_first = (~selectors.float(), selectors.float())
    _same(one.select(exact_first), other.select(exact_first), check_row_order=False)
