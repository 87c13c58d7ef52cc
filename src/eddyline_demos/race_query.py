"""The demo's question, as an analyst would write it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from eddyline_demos import predicates

QUESTION = "Which airlines sent full and thirsty aircraft, bought new, into rough weather?"

_JOINED = """\
FROM flights
JOIN airlines ON flights.carrier = airlines.carrier
JOIN airports AS here ON flights.origin = here.faa
JOIN airports AS there ON flights.dest = there.faa
JOIN weather ON flights.origin = weather.origin
            AND flights.time_hour = weather.time_hour
JOIN planes ON flights.tailnum = planes.tailnum
"""

QUERY = f"""\
SELECT airlines.name AS airline,
       count(*) AS flights,
       round(avg(dep_delay), 1) AS minutes_late
{_JOINED}\
WHERE fuel_per_seat(here.lat, here.lon, there.lat, there.lon,
                    wind_dir, wind_speed, seats, planes.year) > 30
  AND expected_load(flights.month, flights.day, flights.hour, seats) > 0.75
  AND weather_risk(visib, wind_speed, wind_gust, pressure,
                   temp, dewp, precip, seats) > 0.25
  AND bought_new(planes.tailnum, flights.carrier, planes.year)
GROUP BY airlines.name
ORDER BY flights DESC, airline
"""

FUNCTIONS: tuple[tuple[str, Callable[..., object], str], ...] = (
    ("fuel_per_seat", predicates.fuel_per_seat, "double"),
    ("expected_load", predicates.expected_load, "double"),
    ("weather_risk", predicates.weather_risk, "double"),
    ("bought_new", predicates.bought_new, "boolean"),
)


def register_predicates(spark: SparkSession) -> None:
    """Let Spark's SQL call the four functions of the query."""
    for name, function, return_type in FUNCTIONS:
        spark.udf.register(name, function, return_type)


def ask(spark: SparkSession) -> DataFrame:
    """Return the query as a fresh DataFrame, of which no stage has run yet."""
    return spark.sql(QUERY)


def joined_rows(spark: SparkSession) -> int:
    """Return how many rows the join has: plain Spark calls every function on each of them."""
    return int(spark.sql(f"SELECT count(*) {_JOINED}").collect()[0][0])
