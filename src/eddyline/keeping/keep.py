"""What users say of keeping answers: where, of which version, and for how long."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True, slots=True)
class Keep:
    """Answers are kept in ``folder``; those older than ``valid`` seconds are asked for anew.

    ``version`` is the user's name for what answers; without one, the function's code tells.
    """

    folder: str
    version: str | None = None
    valid: float | None = None


def keep_in(
    folder: str | os.PathLike[str] | None,
    version: str | None,
    valid: str | dt.timedelta | None,
) -> Keep | None:
    """Check what a user says; None where nothing is kept. TypeError, ValueError.

    >>> keep_in("/tmp/answers", "prompt-3", "30 days")
    Keep(folder='/tmp/answers', version='prompt-3', valid=2592000.0)
    """
    if folder is None:
        if version is not None or valid is not None:
            raise ValueError("version and valid say something of answers that are kept: keep=...")
        return None
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"keep is a folder, not {folder!r}")
    place = os.fspath(folder)
    if not place or "://" in place:
        raise ValueError(f"keep is a folder of the driver's machine, not {place!r}")
    if version is not None and not isinstance(version, str):
        raise TypeError(f"version is a text, not {version!r}")
    seconds = None if valid is None else span_of(valid, "valid")
    return Keep(str(Path(place).expanduser().absolute()), version, seconds)


def span_of(value: object, name: str) -> float:
    """Return a time in seconds, above 0; TypeError, ValueError for anything else.

    >>> span_of("2h", "patience"), span_of(dt.timedelta(minutes=1), "patience")
    (7200.0, 60.0)
    >>> span_of(30, "patience")
    Traceback (most recent call last):
    TypeError: patience is a time, as "30 days", not 30
    """
    wrong = f'{name} is a time, as "30 days", not {value!r}'
    if not isinstance(value, str | dt.timedelta):
        raise TypeError(wrong)
    try:
        seconds = float(pd.Timedelta(value).total_seconds())
    except (ValueError, OverflowError):
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(wrong)
    return seconds
