"""From a query on the command line to a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.text import Text

from eddyline.app.endings import UsageError
from eddyline.app.file_tables import create_view, find_table
from eddyline.app.files_in_sql import with_files_as_tables
from eddyline.app.invocation import Query
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import importable, importable_by_workers, running_spark
from eddyline.app.user_functions import load_before_spark, prefer_registered, register
from eddyline.catalyst import is_query
from eddyline.reports.wording import one_line


@contextmanager
def prepared_query(query: Query, console: Console) -> Iterator[DataFrame]:
    """Return a query as a DataFrame that lives as long as the block.

    Files that the query names are tables, too. Functions come from the current folder first.
    Mistakes that can be found without Spark are found before it starts, which takes seconds.

    Raises :class:`~eddyline.app.endings.UsageError` for what cannot be used,
    and turns Spark's own errors inside the block into errors of ours.
    """
    folder = Path.cwd()
    query = with_files_as_tables(query)
    tables = [find_table(source) for source in query.tables]
    names = [source.name for source in query.tables if not source.in_query]
    with importable(folder):
        for source in query.functions:
            load_before_spark(source)
        with (
            running_spark(console) as spark,
            importable_by_workers(folder, spark),
            spark_errors_explained(names),
        ):
            for table in tables:
                create_view(spark, table)
                for remark in table.remarks():
                    console.print(Text(remark), soft_wrap=True)
            prefer_registered(spark)
            for source in query.functions:
                register(spark, source)
            if not is_query(spark, query.sql):
                raise UsageError(
                    "the statement is no query: use SELECT, WITH, VALUES, TABLE or FROM"
                )
            # What Spark's pages and ours call it, in place of a line of our own code.
            spark.sparkContext.setJobDescription(one_line(query.sql))
            yield spark.sql(query.sql)
