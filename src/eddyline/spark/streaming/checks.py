"""What standing queries are given: streams, tables, names and intervals, as they must be."""

from __future__ import annotations

import datetime as dt
from typing import Final
from urllib.parse import quote

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from eddyline.sharing.shared_query import NEVER
from eddyline.spark.classic import classic

LONGEST_NAME: Final = 200
"""Characters of a name as a directory has it, of 255 bytes: it stands behind ``query=``."""


def checked_stream(name: str, df: DataFrame) -> ClassicDataFrame:
    """Return a streaming DataFrame; ValueError for another, and for two columns of one name."""
    frame = classic(df)
    if not frame.isStreaming:
        raise ValueError(f"{name} is no streaming DataFrame: make it with spark.readStream")
    names = [column.casefold() for column in frame.columns]
    if len(set(names)) < len(names):
        raise ValueError(f"two columns of the stream {name} have the same name")
    return frame


def checked_table(name: str, df: DataFrame) -> ClassicDataFrame:
    """Return a DataFrame that does not stream; ValueError for one that does."""
    frame = classic(df)
    if frame.isStreaming:
        raise ValueError(f"{name} is a streaming DataFrame: it belongs to streams")
    return frame


def checked_name(name: object) -> str:
    """Return the name of a query; ValueError for what is none, or too long for a directory."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a query's name is a text, not {name!r}")
    if len(quote(name)) > LONGEST_NAME:
        raise ValueError(
            f"a query's name becomes that of a directory, and {name[:20]!r}... is too long: "
            f"at most {LONGEST_NAME} characters, as they stand in a URL"
        )
    return name


FOREVER: Final = "forever"
"""What ``keep`` says where all rows are stored for good."""


def kept_for(keep: str | dt.timedelta | None) -> int | None:
    """Return how far apart the times of joined rows may be, in microseconds.

    :data:`~eddyline.sharing.shared_query.NEVER` for ``"forever"``; ValueError and TypeError for
    what is no interval.
    """
    if keep is None:
        return None
    return NEVER if keep == FOREVER else microseconds_of(keep)


def keep_text(keep: int | None) -> str | None:
    """Return the same for people.

    >>> keep_text(90_000_000), keep_text(kept_for("forever"))
    ('0:01:30', 'forever')
    """
    if keep is None:
        return None
    return FOREVER if keep == NEVER else str(dt.timedelta(microseconds=keep))


def microseconds_of(interval: str | dt.timedelta) -> int:
    """Return an interval in microseconds; ValueError and TypeError for what is none, or below 0.

    >>> microseconds_of("1 hour 30 seconds")
    3630000000
    """
    if isinstance(interval, str):
        try:
            interval = pd.Timedelta(interval).to_pytimedelta()
        except ValueError as error:
            raise ValueError(f"{interval!r} is no interval such as '10 minutes'") from error
    if not isinstance(interval, dt.timedelta):
        raise TypeError(f"an interval is a text or a timedelta, not {interval!r}")
    found = interval // dt.timedelta(microseconds=1)
    if found < 0:
        raise ValueError(f"an interval is from 0 on, not {interval}")
    return found
