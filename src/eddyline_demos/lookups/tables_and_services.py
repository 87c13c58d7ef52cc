"""What the demo of lookups is about: flights as a table, weather and aircraft behind services."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from eddyline_demos.flights import read_table

FLIGHT: Final = ["carrier", "flight", "origin", "dest", "tailnum", "month", "day", "hour"]
TIMES: Final = ["dep_delay", "time_hour"]
HOUR: Final = ["origin", "month", "day", "hour"]
AIRCRAFT: Final = ["tailnum", "manufacturer", "seats"]


@dataclass(frozen=True, slots=True)
class Data:
    """The flights in order of departure, the airlines, and what the services answer by path."""

    flights: pa.Table
    airlines: pa.Table
    weather: dict[str, dict[str, Any]]
    aircraft: dict[str, dict[str, Any]]


def read_data(flights: int) -> Data:
    """Return the year's first ``flights``, and all weather and aircraft.

    Raises :class:`~eddyline.app.endings.UsageError` if the data are not installed.
    """
    ordered = read_table("flights").select([*FLIGHT, *TIMES]).sort_by("time_hour")
    weather: dict[str, dict[str, Any]] = {}
    for row in read_table("weather").select([*HOUR, "wind_speed", "visib"]).to_pylist():
        # The hour that summer time ends comes twice: an API has one answer for it.
        weather.setdefault("/weather/{origin}/{month}/{day}/{hour}".format(**row), row)
    aircraft = {
        f"/aircraft/{row['tailnum']}": row
        for row in read_table("planes").select(AIRCRAFT).to_pylist()
    }
    return Data(ordered.slice(0, flights), _airlines(), weather, aircraft)


def _airlines() -> pa.Table:
    """Return the airlines without the kind of company, so that a narrow terminal has room."""
    table = read_table("airlines")
    names = pc.replace_substring_regex(table["name"], r" (Inc\.|Co\.|Corporation)$", "")
    return table.set_column(table.schema.get_field_index("name"), "name", names)


def write_register(data: Data, path: Path) -> None:
    """Write the aircraft into an SQLite file: the same that the register answers."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE aircraft (tailnum TEXT PRIMARY KEY, manufacturer TEXT, seats INT)"
        )
        rows = data.aircraft.values()
        database.executemany("INSERT INTO aircraft VALUES (:tailnum, :manufacturer, :seats)", rows)


def create_views(spark: SparkSession, data: Data, folder: Path, flights: int | None = None) -> None:
    """Let Spark's SQL see the first ``flights`` and the airlines; by files below ``folder``."""
    folder.mkdir()
    for name, table in (("flights", data.flights.slice(0, flights)), ("airlines", data.airlines)):
        path = folder / f"{name}.parquet"
        pq.write_table(table, path)
        frame = spark.read.parquet(str(path))
        if name == "flights":  # as many tasks as a table of a real size would have
            frame = frame.repartition(spark.sparkContext.defaultParallelism)
        frame.createOrReplaceTempView(name)
