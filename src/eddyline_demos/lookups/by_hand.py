"""The same join by hand: functions that ask for each row, with a cache in each worker process.

It is written well: nobody asks for the aircraft of flights in calm weather. The order has to be
known for that, and a WHERE alone does not do it, since Spark calls all functions on every row.
"""

from __future__ import annotations

from functools import cache, lru_cache

import httpx
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline_demos.lookups.questions import STRONG
from eddyline_demos.lookups.running import Services


def joined_by_hand(flights: DataFrame, services: Services) -> DataFrame:
    """Return the rows that :data:`~eddyline_demos.lookups.questions.COUNTED` has."""

    def wind_speed(origin: str, month: int, day: int, hour: int) -> float | None:
        return wind_of(f"{services.weather}/weather/{origin}/{month}/{day}/{hour}")

    def seats(tailnum: str | None) -> int | None:
        return None if tailnum is None else seats_of(f"{services.register}/aircraft/{tailnum}")

    # Said outright, as otherwise Spark looks for hints of types that it knows, and warns.
    wind_udf = F.udf(wind_speed, "double", useArrow=False)
    seats_udf = F.udf(seats, "int", useArrow=False)
    hourly = flights.withColumn("wind_speed", wind_udf("origin", "month", "day", "hour"))
    strong = F.col("wind_speed") > STRONG
    return (
        hourly.withColumn("seats", seats_udf(F.when(strong, F.col("tailnum"))))
        .where(strong & F.col("seats").isNotNull())
        .select("carrier", "flight", "dest", "tailnum", "wind_speed", "seats")
    )


@cache
def client() -> httpx.Client:
    """Return the one client of this process, whose connections stay open."""
    return httpx.Client()


@lru_cache(maxsize=100_000)
def wind_of(url: str) -> float | None:
    """Ask for the wind of an hour; None where nobody knows."""
    answer = client().get(url)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    wind: float | None = answer.raise_for_status().json()["wind_speed"]
    return wind


@lru_cache(maxsize=100_000)
def seats_of(url: str) -> int | None:
    """Ask for the seats of an aircraft; None where nobody knows it."""
    answer = client().get(url)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    number: int | None = answer.raise_for_status().json()["seats"]
    return number
