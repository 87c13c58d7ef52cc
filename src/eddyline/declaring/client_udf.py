"""A concurrent function as a UDF of Spark Connect."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.connect.udf import UserDefinedFunction

from eddyline.declaring.concurrent_udf import require_argument, require_determinism


class ConcurrentClientUDF(UserDefinedFunction):
    """What ``concurrent`` returns where columns are those of Spark Connect."""

    def __call__(self, *columns: Any, **named: Any) -> Any:  # noqa: ANN401 - columns of Connect
        """Return the column of the function's values; TypeError where there is no argument."""
        require_argument(self._name, columns or named)
        return super().__call__(*columns, **named)

    def asNondeterministic(self) -> NoReturn:  # noqa: N802 - PySpark's name
        """Raise ValueError: equal arguments share a call."""
        require_determinism(self._name)
