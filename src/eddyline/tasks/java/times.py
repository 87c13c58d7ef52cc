"""Times of the JVM: what Java and the library that unpickles there make of Python's."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final
from zoneinfo import ZoneInfo

from eddyline.blocks.filter_block import JavaRuntime
from eddyline.tasks.java.number_texts import double_text
from eddyline.tasks.java.objects import (
    JavaObject,
    hash_of,
    long_hash,
    place_of,
    signed,
)


@dataclass(frozen=True, repr=False)
class Time(JavaObject):
    """The library's class for a time of day."""

    hours: int
    minutes: int
    seconds: int
    microseconds: int

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return the time in words."""
        return (
            f"Time: {self.hours} hours, {self.minutes} minutes, {self.seconds} seconds, "
            f"{self.microseconds} microseconds"
        )

    def hash_code(self) -> int:
        """Combine the fields, in the library's order."""
        return _combined(self.hours, self.microseconds, self.minutes, self.seconds)

    def equality(self) -> Hashable:
        """Return all fields."""
        return self


@dataclass(frozen=True, repr=False)
class Timedelta(JavaObject):
    """The library's class for a duration."""

    days: int
    seconds: int
    microseconds: int

    @property
    def _total(self) -> float:
        # Java's `int` overflows after 68 years.
        return signed(signed(self.days * 86_400) + self.seconds) + self.microseconds / 1_000_000.0

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return the duration in words."""
        total = Decimal(self._total).quantize(Decimal("1e-6"), ROUND_HALF_EVEN)
        seconds = f"{total:f}".rstrip("0").rstrip(".")
        return (
            f"Timedelta: {self.days} days, {self.seconds} seconds, {self.microseconds} "
            f"microseconds (total: {seconds} seconds)"
        )

    def hash_code(self) -> int:
        """Combine the fields, in the library's order."""
        return _combined(self.days, self.microseconds, self.seconds, hash_of(self._total))

    def equality(self) -> Hashable:
        """Return all fields."""
        return self


@dataclass(frozen=True, repr=False)
class ComplexNumber(JavaObject):
    """The library's class for a complex number."""

    real: float
    imaginary: float

    def text(self, version: int) -> str:
        """Return both parts; a NaN has no sign."""
        sign = "+" if self.imaginary >= 0 else ""
        return f"{double_text(self.real, version)}{sign}{double_text(self.imaginary, version)}i"

    def hash_code(self) -> int:
        """Combine both parts."""
        return hash_of(self.real) ^ hash_of(self.imaginary)

    def equality(self) -> Hashable:
        """Return both parts: zeros are equal, and a NaN equals nothing."""
        return self if self == self else id(self)  # noqa: PLR0124 - NaN


def _combined(*fields: int) -> int:
    code = 1
    for field in fields:
        code = 31 * code + field
    return signed(code)


@dataclass(frozen=True, repr=False)
class Zone(JavaObject):
    """A ``TimeZone``: its id, and its text and hash code, which Python knows for UTC only.

    Another zone than UTC and the JVM's own has a text that is like Java's.
    """

    name: str
    description: str
    code: int

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return the text."""
        return self.description

    def hash_code(self) -> int:
        """Return the hash code."""
        return self.code

    def equality(self) -> Hashable:
        """Return the id."""
        return ("zone", self.name)


def zone_of(name: str, runtime: JavaRuntime) -> Zone:
    """Return ``TimeZone.getTimeZone(name)``."""
    if name == runtime.zone:
        return own_zone(runtime)
    standard, summer = _standard_and_summer(name)
    text = (
        f'sun.util.calendar.ZoneInfo[id="{name}",offset={standard},dstSavings={summer},'
        f"useDaylight={'true' if summer else 'false'},transitions=0,lastRule=null]"
    )
    return Zone(name, text, 0 if name == "UTC" else place_of(name))


def own_zone(runtime: JavaRuntime) -> Zone:
    """Return the JVM's default time zone."""
    return Zone(runtime.zone, runtime.zone_text, runtime.zone_hash)


_THIS_YEAR: Final = 2026
"""A year of the rules that zones have at present."""


def _standard_and_summer(zone: str) -> tuple[int, int]:
    """Return a zone's offset from UTC, and what summer time adds to it, in milliseconds."""
    noons = (dt.datetime(_THIS_YEAR, month, 1, 12, tzinfo=dt.UTC) for month in (1, 7))
    offsets = [_offset(zone, int(noon.timestamp()) * 1000) for noon in noons]
    return min(offsets), max(offsets) - min(offsets)


_FIRST_GREGORIAN: Final = dt.date(1582, 10, 15)

_CUTOVER: Final = 577_736
"""The day of that date, as Java's calendars count days; a part of their hash codes."""


_FIRST_OFFSETS: Final = -2_208_988_800_000
"""The start of 1900 as milliseconds; before, Java's zones have but their present standard time."""

_RAW_OFFSET: Final = re.compile(r"offset=(-?\d+)")


@dataclass(frozen=True, repr=False)
class Calendar(JavaObject):
    """A ``GregorianCalendar`` whose fields were set and not yet computed.

    ``month`` counts from 0, and has 128 more for the second of two equal local times;
    ``milliseconds`` are None for a date.
    """

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    milliseconds: int | None
    zone: Zone
    runtime: JavaRuntime

    def text(self, version: int) -> str:
        """Return all that Java writes of a calendar: what it has not computed is ``?``."""
        fields = {
            "ERA": None,
            "YEAR": self.year,
            "MONTH": self.month,
            "WEEK_OF_YEAR": None,
            "WEEK_OF_MONTH": None,
            "DAY_OF_MONTH": self.day,
            "DAY_OF_YEAR": None,
            "DAY_OF_WEEK": None,
            "DAY_OF_WEEK_IN_MONTH": None,
            "AM_PM": self.hour // 12,
            "HOUR": self.hour % 12,
            "HOUR_OF_DAY": self.hour,
            "MINUTE": self.minute,
            "SECOND": self.second,
            "MILLISECOND": self.milliseconds,
            "ZONE_OFFSET": None,
            "DST_OFFSET": None,
        }
        told = ",".join(f"{k}={'?' if v is None else v}" for k, v in fields.items())
        return (
            "java.util.GregorianCalendar[time=?,areFieldsSet=false,areAllFieldsSet=false,"
            f"lenient=true,zone={self.zone.text(version)},"
            f"firstDayOfWeek={self.runtime.first_day_of_week},"
            f"minimalDaysInFirstWeek={self.runtime.days_in_first_week},{told}]"
        )

    def hash_code(self) -> int:
        """Combine the instant, the zone and the settings of the calendar."""
        settings = (
            1
            | self.runtime.first_day_of_week << 1
            | self.runtime.days_in_first_week << 4
            | self.zone.hash_code() << 7
        )
        return signed(long_hash(self._instant) ^ settings ^ _CUTOVER)

    def equality(self) -> Hashable:
        """Return the instant and the zone."""
        return ("calendar", self._instant, self.zone.equality())

    @property
    def _instant(self) -> int:
        """Milliseconds since 1970, UTC."""
        years, month = divmod(self.month, 12)
        local = _days_before(self.year + years, month, self.day) * 86_400_000
        local += (self.hour * 3600 + self.minute * 60 + self.second) * 1000
        local += self.milliseconds or 0
        if local < _FIRST_OFFSETS and (raw := _RAW_OFFSET.search(self.zone.description)):
            return local - int(raw[1])
        return local - _offset(self.zone.name, local)


def _days_before(year: int, month: int, day: int) -> int:
    """Return the days since 1970 of a date of Java's calendar; ``month`` counts from 0."""
    cycles, year = divmod(year - 1, 400)  # years beyond Python's
    first = dt.date(year + 1, month + 1, 1)
    days = first.toordinal() - 1 + day + cycles * 146_097
    if days < _FIRST_GREGORIAN.toordinal():  # Java has the Julian calendar before
        start = year + cycles * 400
        days = 365 * start + start // 4 - 1
        leap = (start + 1) % 4 == 0
        days += (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)[month]
        days += day - 1 + (1 if leap and month > 1 else 0)
    return days - dt.date(1970, 1, 1).toordinal()


def _offset(zone: str, local: int) -> int:
    """Return the milliseconds by which a zone's local time is ahead of UTC."""
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=ZoneInfo(zone)) + dt.timedelta(milliseconds=local)
        offsets = [moment.replace(fold=fold).utcoffset() for fold in (0, 1)]
    except (KeyError, OSError, OverflowError, ValueError):
        return 0
    # Of two equal local times, and for one that is left out, Java takes standard time.
    return min(offset or dt.timedelta() for offset in offsets) // dt.timedelta(milliseconds=1)
