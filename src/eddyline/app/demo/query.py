"""The demo's question, as an analyst would write it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from eddyline.app.demo import predicates

QUESTION = "Which airlines sent full, thirsty, second-hand aircraft into rough weather?"

QUERY = """\
SELECT airlines.name AS airline,
       count(*) AS flights,
       round(avg(dep_delay), 1) AS minutes_late
FROM flights
JOIN airlines ON flights.carrier = airlines.carrier
JOIN airports AS here ON flights.origin = here.faa
JOIN airports AS there ON flights.dest = there.faa
JOIN weather ON flights.origin = weather.origin AND flights.time_hour = weather.time_hour
JOIN planes ON flights.tailnum = planes.tailnum
WHERE fuel_per_seat(here.lat, here.lon, there.lat, there.lon,
                    wind_dir, wind_speed, seats, engines, planes.year) > 30
  AND expected_passengers(flights.month, flights.day, flights.hour, seats) > 100
  AND weather_risk(visib, wind_speed, wind_gust, pressure, temp, dewp, precip, seats) > 0.3
  AND changed_hands(planes.tailnum, flights.carrier, planes.year)
GROUP BY airlines.name
ORDER BY flights DESC, airline
"""

RETURN_TYPES = {
    predicates.fuel_per_seat: "double",
    predicates.expected_passengers: "double",
    predicates.weather_risk: "double",
    predicates.changed_hands: "boolean",
}


def register_predicates(spark: SparkSession) -> None:
    """Let Spark's SQL call the four functions of the query."""
    for function, return_type in RETURN_TYPES.items():
        spark.udf.register(function.__name__, function, return_type)


def question(spark: SparkSession) -> DataFrame:
    """Return the query as a fresh DataFrame, of which no stage has run yet."""
    return spark.sql(QUERY)
