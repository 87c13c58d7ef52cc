"""What standing queries are given: streams, tables, names and intervals, as they must be."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast
from urllib.parse import quote

import pandas as pd
from pyspark.sql import DataFrame

from eddyline.host.classic import classic
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.engine.shared_query import NEVER

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


def checked_frames(
    streams: object, tables: object
) -> tuple[dict[str, ClassicDataFrame], dict[str, ClassicDataFrame]]:
    """Return the streams and the tables of standing queries; TypeError, ValueError for others."""
    given = {"streams": streams, "tables": {} if tables is None else tables}
    for what, frames in given.items():
        if not isinstance(frames, Mapping):
            raise TypeError(f'{what} are DataFrames by name, as {{"events": df}}, not {frames!r}')
        for name in frames:
            if not str(name).isidentifier():
                raise ValueError(f"{name!r} is no name for SQL: letters, digits and _ make one")
    named, others = (cast("Mapping[str, DataFrame]", mapping) for mapping in given.values())
    if not named:
        raise ValueError("standing queries need a stream")
    checked = {name: checked_stream(name, df) for name, df in named.items()}
    checked_others = {name: checked_table(name, df) for name, df in others.items()}
    if both := checked.keys() & checked_others.keys():
        raise ValueError(f"{min(both)} is a stream and a table")
    return checked, checked_others


def checked_state(state: object) -> Path:
    """Return the directory of a state; TypeError and ValueError for what names none."""
    if not isinstance(state, str | os.PathLike):
        raise TypeError(f"state is the path of a directory, not {state!r}")
    if not os.fspath(state):
        raise ValueError(f"state is the path of a directory, not {state!r}")
    return Path(os.fspath(state)).absolute()


def checked_names(names: tuple[object, ...], what: str) -> tuple[str, ...]:
    """Return names of queries; TypeError where there is none, or one is no text."""
    texts = tuple(name for name in names if isinstance(name, str))
    if not texts or len(texts) < len(names):
        given = ", ".join(map(repr, names)) or "nothing"
        raise TypeError(f"{what} takes the names of queries, one at least, not {given}")
    return texts


def checked_name(name: object) -> str:
    """Return the name of a query; ValueError for what is none, or too long for a directory."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a query's name is a text, not {name!r}")
    if "\0" in name:
        raise ValueError(f"a query's name becomes that of a directory, which has no NUL: {name!r}")
    if len(quote(name, safe="")) > LONGEST_NAME:
        raise ValueError(
            f"a query's name becomes that of a directory, and {name[:20]!r}... is too long: "
            f"at most {LONGEST_NAME} characters, as they stand in a URL"
        )
    return name


FOREVER: Final = "forever"
"""What ``keep`` says where all rows are stored for good."""


def kept_for(keep: str | dt.timedelta | None) -> int | None:
    """Return how far apart the times of joined rows may be, in microseconds.

    :data:`~eddyline.standing.engine.shared_query.NEVER` for ``"forever"``; ValueError and TypeError
    for what is no interval.
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
    microseconds = interval // dt.timedelta(microseconds=1)
    if microseconds < 0:
        raise ValueError(f"an interval is from 0 on, not {interval}")
    return microseconds
