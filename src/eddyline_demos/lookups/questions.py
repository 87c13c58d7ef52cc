"""The demo's questions about flights, weather and aircraft, and the tables that they ask."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import eddyline
from eddyline_demos.lookups.running import LIMIT, Services

STRONG: Final = 12
"""Miles an hour from which on a wind is strong; a bit more than half of the flights had one."""

SQLITE_KEYS: Final = 8
"""Keys of a statement: a plane or two of each batch of rows, so that both registers have work."""

QUESTION: Final = "Which airlines flew into strong wind, with how large aircraft, and how late?"

_JOINED: Final = """\
FROM flights
JOIN weather  ON flights.origin = weather.origin
             AND flights.month  = weather.month
             AND flights.day    = weather.day
             AND flights.hour   = weather.hour
JOIN aircraft ON flights.tailnum = aircraft.tailnum
"""

WATCHED: Final = f"""\
SELECT airlines.name  AS airline,
       count(*)       AS flights,
       avg(seats)     AS seats,
       avg(dep_delay) AS late
{_JOINED}\
JOIN airlines ON flights.carrier = airlines.carrier
WHERE wind_speed > {STRONG}
GROUP BY airlines.name
"""

COUNTED: Final = f"""\
SELECT flights.carrier, flight, dest, flights.tailnum, wind_speed, seats
{_JOINED}\
WHERE wind_speed > {STRONG}
"""


def register_tables(spark: SparkSession, services: Services, register: Path | None = None) -> None:
    """Make the services tables; an SQLite file ``register`` competes with the aircraft register."""
    eddyline.lookup_table(
        spark,
        "weather",
        "origin string, month long, day long, hour long, wind_speed double, visib double",
        ["origin", "month", "day", "hour"],
        eddyline.HttpLookup(services.weather + "/weather/{origin}/{month}/{day}/{hour}"),
        max_in_flight=LIMIT,
    )
    http = eddyline.HttpLookup(services.register + "/aircraft/{tailnum}")
    file = eddyline.SqlLookup(f"sqlite:///{register}", keys_per_call=SQLITE_KEYS)
    eddyline.lookup_table(
        spark,
        "aircraft",
        "tailnum string, manufacturer string, seats int",
        ["tailnum"],
        [http] if register is None else [http, file],
        max_in_flight=LIMIT,
    )
