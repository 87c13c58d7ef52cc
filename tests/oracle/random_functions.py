"""Python functions whose results depend on all that is in their arguments, for random ones."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas import functions as vectorized

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

KINDS: Final = ("row", "pickled", "pandas", "arrow")

NESTED: Final[dict[str, Callable[[str, str], str]]] = {
    "itself": lambda one, other: one,  # noqa: ARG005 - as the others are called
    "array": lambda one, other: f"array({one}, {other}, {one})",
    "lists": lambda one, other: f"array(array({one}), array(), NULL, array({other}, {one}))",
    "struct": lambda one, other: f"named_struct('a', {one}, 'b', {other})",
    "map": lambda one, other: f"map('x', {one}, 'y', {other})",
    "NULL array": lambda one, other: (
        f"CASE WHEN {one} IS NULL THEN NULL WHEN {other} IS NULL THEN array() ELSE array({one}) END"
    ),
    "NULL struct": lambda one, other: (
        f"CASE WHEN {one} IS NULL THEN NULL "
        f"ELSE named_struct('a', CASE WHEN {other} IS NOT NULL THEN {one} END, 'b', {other}) END"
    ),
    "deep": lambda one, other: f"array(named_struct('m', map(1, array({one})), 'n', {other}))",
}
"""How two expressions of a type make one argument, nested or not."""


def shown(value: Any) -> str:  # noqa: ANN401 - any value of Spark's
    """Return a text that tells values apart, -0.0 and each NULL inside of them too."""
    match value:
        case float() | np.floating():
            return repr(float(value))
        case bool() | np.bool_():
            return repr(bool(value))
        case int() | np.integer():  # which pandas has as floating point beside a NULL
            return repr(float(value))
        case dict():
            return f"({', '.join(f'{key}: {shown(each)}' for key, each in value.items())})"
        case tuple() | list() | np.ndarray():
            return f"[{', '.join(map(shown, value))}]"
    return "-" if value is None or value is pd.NaT or value is pd.NA else str(value)


def both(one: Any, other: Any) -> str:  # noqa: ANN401 - any values of Spark's
    """Show two arguments, and change those that can be changed."""
    text = f"{shown(one)} {shown(other)}"
    for each in (one, other):
        if isinstance(each, list):
            each.append(text)
        elif isinstance(each, dict):
            each.clear()
    return text


def digest(one: Any, other: Any) -> int:  # noqa: ANN401 - any values of Spark's
    """Return a number for two arguments."""
    return zlib.crc32(both(one, other).encode("utf-8", "surrogatepass"))


def refusing(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Refuse a third of all arguments."""
    number = digest(one, other)
    if number % 3 == 0:
        raise ValueError("refused")
    return number % 2 == 0


def fine(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Tell which arguments are not refused."""
    return digest(one, other) % 3 > 0


def calm(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Tell both without an error."""
    return digest(one, other) % 6 in {2, 4}


def made(function: Callable[[Any, Any], Any], result: str, kind: str) -> Callable[..., Any]:
    """Return a function as one of Spark's kinds."""
    of_vectors: Any = vectorized  # its overloads know fewer ways to call it than there are

    def series(one: pd.Series, other: pd.Series) -> pd.Series:
        # pandas has NULL and NaN of a column of numbers as one.
        return pd.Series([function(a, b) for a, b in zip(rows(one), rows(other), strict=True)])

    def arrays(one: pa.Array, other: pa.Array) -> pa.Array:
        values = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return pa.array([function(a, b) for a, b in values])

    def rows(column: Any) -> Iterable[Any]:  # noqa: ANN401 - a struct comes as a data frame
        if isinstance(column, pd.DataFrame):
            return (tuple(map(known, row)) for row in column.itertuples(index=False))
        return map(known, column)

    def known(value: Any) -> Any:  # noqa: ANN401
        return None if isinstance(value, float) and np.isnan(value) else value

    match kind:
        case "pandas":
            found = of_vectors.pandas_udf(series, result)
        case "arrow":
            found = of_vectors.arrow_udf(arrays, result)
        case _:
            found = F.udf(function, result, useArrow=kind == "row")
    return found  # type: ignore[no-any-return]  # of overloads without types


class Refilled:
    """A function over Arrow arrays that returns the same buffer each time, filled anew."""

    def __init__(self) -> None:
        self._buffer = np.empty(1_000, np.int64)

    def column(self, one: str, other: str) -> Column:
        """Return a call of it over two expressions."""
        of_vectors: Any = vectorized

        def digests(ones: pa.Array, others: pa.Array) -> pa.Array:
            values = zip(ones.to_pylist(), others.to_pylist(), strict=True)
            self._buffer[: len(ones)] = [digest(a, b) for a, b in values]
            return pa.array(self._buffer[: len(ones)])

        found: Column = of_vectors.arrow_udf(digests, "long")(F.expr(one), F.expr(other))
        return found
