"""Between instants and naive datetimes in the local time of this process, a column at a time.

PySpark's converters ask Python about each value. Here the offset from UTC is asked for once for an
hour in which it does not change; values in other hours, and those that NumPy's or the platform's
calendar might not hold, are left to the converters. In UTC nothing is asked.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SECOND: Final = 1_000_000  # microseconds
_HOUR: Final = 3_600  # seconds
_DAY: Final = 24  # hours

FIRST: Final = np.datetime64("0002-01-01", "us")
LAST: Final = np.datetime64("9998-12-31", "us")
"""What NumPy and the platform's local time are sure to turn into Python's datetimes, and back.

Beyond, PySpark's converter decides what is an error."""

FEW_HOURS: Final = 4
"""Rows for each hour that is asked about, at least: that takes as long as two values by themselves.
"""

_Numbers = npt.NDArray[np.int64]
_Offset = Callable[[int], int | None]


def local_times(column: pa.Array) -> list[Any] | None:
    """Return naive datetimes for a column of instants; None if some are beyond Python's.

    By way of pyarrow's aware datetimes one takes 4,000 to 13,000 ns; here 40 in UTC, 100 in zones
    where many rows share an hour, and otherwise 700.
    """
    instants = column.cast(pa.int64())
    known = instants.drop_null().to_numpy() if instants.null_count else instants.to_numpy()
    if not within_calendar(known):
        return None
    if _is_utc():
        return _as_datetimes(column)
    offsets = _offsets(known, _offset_at)
    if offsets is None:
        return _one_by_one(instants)
    moved = np.zeros(len(column), np.int64)
    moved[_valid(column)] = known + offsets * _SECOND
    mask = np.asarray(column.is_null()) if column.null_count else None
    return _as_datetimes(pa.array(moved, pa.int64(), mask=mask))


def instants_of(results: Sequence[Any], arrow_type: pa.DataType) -> pa.Array | None:
    """Return the instants of naive datetimes in local time, a column of ``arrow_type``.

    None for anything else than these and None, and for times that may be skipped, come twice, or
    are beyond the calendar. One takes 200 to 300 ns, by way of an aware datetime 1,000.
    """
    if not {dt.datetime, NoneType}.issuperset(map(type, results)):
        return None
    if {result.tzinfo for result in results if result is not None} - {None}:
        return None
    column = pa.array(results, pa.timestamp("us"))
    local = column.cast(pa.int64())
    known = local.drop_null().to_numpy() if local.null_count else local.to_numpy()
    if not within_calendar(known):
        return None
    if _is_utc():
        return local.cast(arrow_type)
    offsets = _offsets(known, _offset_around)
    if offsets is None:
        return None
    moved = np.zeros(len(column), np.int64)
    moved[_valid(column)] = known - offsets * _SECOND
    mask = np.asarray(column.is_null()) if column.null_count else None
    return pa.array(moved, pa.int64(), mask=mask).cast(arrow_type)


def within_calendar(known: _Numbers) -> bool:
    """Whether all of these microseconds since 1970 are between the first and the last."""
    return not len(known) or bool(
        known.min() >= FIRST.astype(np.int64) and known.max() <= LAST.astype(np.int64)
    )


def _is_utc() -> bool:
    """Whether local time is UTC, and has always been: no other zone has that for both names."""
    return time.tzname == ("UTC", "UTC") and time.timezone == 0


def _as_datetimes(column: pa.Array) -> list[Any]:
    naive = column.cast(pa.int64()).cast(pa.timestamp("us"))
    return list(naive.to_numpy(zero_copy_only=False).tolist())


def _one_by_one(instants: pa.Array) -> list[Any]:
    local = dt.datetime.fromtimestamp
    return [
        # PySpark's way over an aware datetime never tells the second of two equal local
        # times apart (fold=1), so neither does this one.
        None
        if instant is None
        else local(instant // _SECOND).replace(microsecond=instant % _SECOND, fold=0)
        for instant in instants.to_pylist()
    ]


def _valid(column: pa.Array) -> slice | npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid()) if column.null_count else slice(None)


def _offsets(microseconds: _Numbers, offset_of: _Offset) -> _Numbers | None:
    """Return seconds that local time is ahead of UTC; None where that is not worth it, or unclear.

    ``offset_of`` tells it for an hour since 1970, None where it is not one for all the hour.
    """
    hours, places = np.unique(microseconds // (_HOUR * _SECOND), return_inverse=True)
    if FEW_HOURS * len(hours) > len(microseconds):
        return None
    offsets = [offset_of(hour) for hour in hours.tolist()]
    return None if None in offsets else np.array(offsets, np.int64)[places]


def _ahead(second: int) -> int:
    """Return seconds that local time is ahead of UTC at an instant."""
    return time.localtime(second).tm_gmtoff


def _offset_at(hour: int) -> int | None:
    """Return the offset in an hour of UTC, None if it changes: it never does twice in an hour."""
    first, last = _ahead(hour * _HOUR), _ahead((hour + 1) * _HOUR)
    return first if first == last else None


def _offset_around(hour: int) -> int | None:
    """Return the offset in an hour of local time, None if it changes within a day of it.

    Local time is at most a day from UTC, and never changes there and back within two days.
    """
    first, last = _ahead((hour - _DAY) * _HOUR), _ahead((hour + 1 + _DAY) * _HOUR)
    return first if first == last else None
