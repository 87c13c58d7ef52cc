"""A concurrent function as a UDF: called with columns, it gives a column."""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql import Column
from pyspark.sql.udf import UserDefinedFunction


def require_argument(name: str, arguments: object) -> None:
    """Raise TypeError where there is no argument."""
    if not arguments:
        raise TypeError(f"{name} is concurrent and needs an argument, by which it is asked")


def require_determinism(name: str) -> NoReturn:
    """Raise ValueError: somebody has said that a function is not deterministic."""
    raise ValueError(
        f"{name} is called once for each distinct arguments, so it must be deterministic"
    )


class ConcurrentUDF(UserDefinedFunction):
    """What ``concurrent`` returns where columns are those of Spark Classic."""

    def __call__(self, *columns: Column | str, **named: Column | str) -> Column:
        """Return the column of the function's values; TypeError where there is no argument."""
        require_argument(self._name, columns or named)
        return super().__call__(*columns, **named)

    def asNondeterministic(self) -> NoReturn:  # noqa: N802 - PySpark's name
        """Raise ValueError: equal arguments share a call."""
        require_determinism(self._name)
