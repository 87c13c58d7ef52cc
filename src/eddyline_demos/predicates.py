"""Four Python functions as an analyst of flights would write them, each with real work in it.

They cost from about 1 to about 40 microseconds a row. Weather and aircraft can
be unknown in part; a function that cannot do without returns None, SQL's NULL.
"""

from __future__ import annotations

import math
import re
from datetime import date

EARTH_RADIUS_NM = 3440.065  # nautical miles
KNOTS_PER_MPH = 0.868976

LEG_NM = 30.0  # a flight is cut into legs of this length
CLIMB_NM = 120.0  # way until cruising height, and again back to the ground
PREVAILING_WIND = 270.0  # degrees, where the weather station does not tell

LARGE_SEATS = 100  # from here on an aircraft counts as large

HOLIDAYS = {  # of 2013, and how many days around them are busy
    date(2013, 1, 1): 2,
    date(2013, 7, 4): 3,
    date(2013, 11, 28): 4,
    date(2013, 12, 26): 5,
}
BUSY_HOURS = frozenset({7, 8, 16, 17, 18})
BUSY_WEEKDAYS = frozenset({0, 4, 6})  # Monday, Friday, Sunday
BUSIEST_DAY = 196  # of the year: the middle of July

REGISTRATION = re.compile(r"N[1-9]\d{0,4}([A-HJ-NP-Z]{1,2})")

# Airlines let the registrations of their aircraft end in letters of their own: N535JB.
OWN_LETTERS = {
    "9E": ("PQ", "XJ"),
    "AA": ("AA", "AN"),
    "AS": ("AS",),
    "B6": ("JB",),
    "DL": ("DA", "DE", "DL", "DN", "DZ"),
    "EV": ("EV",),
    "F9": ("FR",),
    "FL": ("AT",),
    "HA": ("HA",),
    "MQ": ("AE", "MQ"),
    "OO": ("SK", "SW"),
    "UA": ("UA",),
    "US": ("US", "UW"),
    "VX": ("VA",),
    "WN": ("SW", "WN"),
    "YV": ("FJ", "LR", "MJ"),
}


def fuel_per_seat(
    from_latitude: float,
    from_longitude: float,
    to_latitude: float,
    to_longitude: float,
    wind_direction: float | None,
    wind_mph: float | None,
    seats: int,
    built: int | None,
) -> float | None:
    """Kilograms of fuel a seat, flown leg by leg along the great circle, through the wind.

    Positions and directions are in degrees. None without seats.
    """
    if seats <= 0:
        return None
    latitude, longitude = math.radians(from_latitude), math.radians(from_longitude)
    end = math.radians(to_latitude), math.radians(to_longitude)
    wind_from = math.radians(PREVAILING_WIND if wind_direction is None else wind_direction)
    wind_at_ground = (wind_mph or 0.0) * KNOTS_PER_MPH
    airspeed = 455.0 if seats >= LARGE_SEATS else 410.0  # knots
    age = max(0, 2013 - (built or 2000))
    flow = (430.0 + 11.5 * seats) * (1.0 + 0.004 * age)  # kilograms an hour

    total = remaining = _distance_nm(latitude, longitude, *end)
    burned = 0.0
    while remaining > 0.0:
        leg = min(LEG_NM, remaining)
        flown = total - remaining
        course = _course(latitude, longitude, *end)
        height = min(1.0, (flown + leg) / CLIMB_NM, remaining / CLIMB_NM)  # 1 is cruising
        headwind = wind_at_ground * (1.0 + 2.5 * height) * math.cos(wind_from - course)
        speed = airspeed * (0.55 + 0.45 * height) - headwind
        burned += leg / speed * flow * (1.9 if flown < CLIMB_NM else 0.85 + 0.15 * height)
        latitude, longitude = _moved(latitude, longitude, course, leg)
        remaining -= leg
    return burned / seats


def expected_load(month: int, day: int, hour: int, seats: int) -> float:
    """Share of the seats that is sold in 2013: by season, holidays, weekday and hour."""
    today = date(2013, month, day)
    season = math.cos((today.timetuple().tm_yday - BUSIEST_DAY) / 365.0 * math.tau)
    load = 0.68 + 0.16 * season
    if any(abs((today - holiday).days) <= around for holiday, around in HOLIDAYS.items()):
        load += 0.15
    if today.weekday() in BUSY_WEEKDAYS:
        load += 0.05
    if hour in BUSY_HOURS:
        load += 0.04
    if seats < LARGE_SEATS:
        load += 0.03
    return min(1.0, load)


def weather_risk(
    visibility: float,
    wind_mph: float | None,
    gust_mph: float | None,
    pressure: float | None,
    fahrenheit: float | None,
    dew_point: float | None,
    rain: float,
    seats: int,
) -> float | None:
    """Risk from 0 to 1 that the weather holds up a departure; gusts count more for light aircraft.

    None where wind or temperatures are unknown.
    """
    if wind_mph is None or fahrenheit is None or dew_point is None:
        return None
    gust = max(wind_mph, gust_mph or 0.0)
    lightness = _sigmoid((90.0 - seats) / 30.0)
    calm = 1.0
    calm *= 1.0 - 0.70 * _sigmoid((4.0 - visibility) / 1.2)
    calm *= 1.0 - (0.45 + 0.35 * lightness) * _sigmoid((gust - 28.0) / 4.5)
    calm *= 1.0 - 0.45 * _sigmoid((wind_mph - 15.0) / 3.5)
    calm *= 1.0 - 0.40 * (1.0 - math.exp(-18.0 * rain))
    calm *= 1.0 - 0.35 * _sigmoid((4.0 - (fahrenheit - dew_point)) / 2.0)  # fog to come
    calm *= 1.0 - 0.30 * _sigmoid((33.0 - fahrenheit) / 3.0)  # ice
    calm *= 1.0 - 0.25 * _sigmoid((1006.0 - (pressure or 1013.0)) / 4.0)
    return 1.0 - calm


def bought_new(registration: str, carrier: str, built: int | None) -> bool | None:
    """Whether an aircraft wears the letters of its airline, as those do that it bought new.

    None where nobody knows when it was built.
    """
    if built is None:
        return None
    match = REGISTRATION.fullmatch(registration)
    return match is not None and match[1] in OWN_LETTERS.get(carrier, ())


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))


def _distance_nm(
    latitude: float, longitude: float, to_latitude: float, to_longitude: float
) -> float:
    """Great-circle distance between two points in radians, by the haversine formula."""
    height = math.sin((to_latitude - latitude) / 2.0)
    width = math.sin((to_longitude - longitude) / 2.0)
    chord = height * height + math.cos(latitude) * math.cos(to_latitude) * width * width
    return 2.0 * EARTH_RADIUS_NM * math.asin(math.sqrt(chord))


def _course(latitude: float, longitude: float, to_latitude: float, to_longitude: float) -> float:
    """Initial course of the great circle to a point, in radians from north."""
    turn = to_longitude - longitude
    north = math.cos(latitude) * math.sin(to_latitude)
    north -= math.sin(latitude) * math.cos(to_latitude) * math.cos(turn)
    return math.atan2(math.sin(turn) * math.cos(to_latitude), north)


def _moved(
    latitude: float, longitude: float, course: float, distance_nm: float
) -> tuple[float, float]:
    """Point that a course leads to after a distance."""
    angle = distance_nm / EARTH_RADIUS_NM
    sine = math.sin(latitude) * math.cos(angle)
    sine += math.cos(latitude) * math.sin(angle) * math.cos(course)
    east = math.sin(course) * math.sin(angle) * math.cos(latitude)
    turn = math.atan2(east, math.cos(angle) - math.sin(latitude) * sine)
    return math.asin(sine), longitude + turn
