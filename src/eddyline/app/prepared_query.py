"""From a query on the command line to a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console

from eddyline.app.failures import UsageError
from eddyline.app.functions import check_module, prefer_registered, register
from eddyline.app.invocation import Query
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import importable, importable_by_workers, running_spark
from eddyline.app.tables import create_view, find_table
from eddyline.spark.host.catalyst import is_query


@contextmanager
def prepared_query(query: Query, console: Console) -> Iterator[DataFrame]:
    """Return a query as a DataFrame that lives as long as the block.

    Functions come from the current folder first. Whatever can be found wrong
    without Spark is found before it starts, which takes seconds.

    Raises :class:`~eddyline.app.failures.UsageError` for what cannot be used,
    and turns Spark's own errors inside the block into errors of ours.
    """
    folder = Path.cwd()
    tables = [find_table(source) for source in query.tables]
    names = [table.name for table in tables]
    with importable(folder):
        for source in query.functions:
            check_module(source)
        with (
            running_spark(console) as spark,
            importable_by_workers(folder, spark),
            spark_errors_explained(names),
        ):
            for table in tables:
                create_view(spark, table)
            prefer_registered(spark)
            for source in query.functions:
                register(spark, source)
            if not is_query(spark, query.sql):
                raise UsageError(
                    "the statement is no query: use SELECT, WITH, VALUES, TABLE or FROM"
                )
            yield spark.sql(query.sql)
