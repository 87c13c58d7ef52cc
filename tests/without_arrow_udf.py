"""What tests of ``arrow_udf`` do with a PySpark that has none, as 4.0."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyspark.sql.functions
import pyspark.sql.pandas.functions
import pytest

import eddyline

WITH_ARROW_UDF: Final = hasattr(pyspark.sql.functions, "arrow_udf")
"""Whether this PySpark has it."""

INTEGERS_AS_THEY_ARE: Final = WITH_ARROW_UDF
"""Whether plain functions over Arrow see integers beside a NULL as such.

Before PySpark 4.1 these are floats, and such functions are left to Spark.
"""


def skip_where_asked() -> None:
    """Have tests be skipped that call what they have made with it."""
    for module in (pyspark.sql.functions, pyspark.sql.pandas.functions):
        if not WITH_ARROW_UDF:
            vars(module)["arrow_udf"] = lambda *_, **__: _Skipping()
            vars(module)["ArrowUDFType"] = pyspark.sql.pandas.functions.PandasUDFType


def require_arrow_udf() -> None:
    """Skip the test that runs where this PySpark has none."""
    if not WITH_ARROW_UDF:
        pytest.skip("this PySpark has no arrow_udf")


class _Skipping:
    def __call__(self, *_: object, **__: object) -> None:
        require_arrow_udf()

    @property
    def evalType(self) -> int:  # noqa: N802 - as PySpark's
        require_arrow_udf()
        raise AssertionError("it is made where there is no arrow_udf only")

    def asNondeterministic(self) -> _Skipping:  # noqa: N802 - as PySpark's
        return self


def arrow_udf_or(
    arrays: Callable[..., Any], series: Callable[..., Any], result: str
) -> Callable[..., Any]:
    """Return an ``arrow_udf`` of the first, where there is none a ``pandas_udf`` of the second."""
    made: Any = pyspark.sql.functions
    of_vectors: Callable[..., Any] = (
        made.arrow_udf(arrays, result) if WITH_ARROW_UDF else made.pandas_udf(series, result)
    )
    return of_vectors


def over_series(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function over Series that does what one over arrays does, or over iterators."""
    if inspect.isgeneratorfunction(function):

        @eddyline.stateless
        def of_iterator(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
            for values in function(pa.Array.from_pandas(batch) for batch in batches):
                yield values.to_pandas()

        of_iterator.__name__ = function.__name__
        return of_iterator

    def of_batch(series: pd.Series) -> pd.Series:
        values: pd.Series = function(pa.Array.from_pandas(series)).to_pandas()
        return values

    of_batch.__name__ = function.__name__
    return of_batch
