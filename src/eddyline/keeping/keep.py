"""What users say of keeping answers: where, of which version, and for how long."""

from __future__ import annotations

import datetime as dt
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # of two letters: C: is a drive


@dataclass(frozen=True, slots=True)
class Keep:
    """Answers are kept in ``folder``; those older than ``valid`` seconds are asked for anew.

    It is a folder of the driver's machine, or the URL of one that Hadoop knows. ``version`` is the
    user's name for what answers; without one, the function's code tells.
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
    >>> keep_in("s3a://bucket/answers/", None, None).folder
    's3a://bucket/answers'
    """
    if folder is None:
        if version is not None or valid is not None:
            raise ValueError("version= and valid= need keep=, which names a folder for answers")
        return None
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"keep is a folder, not {folder!r}")
    place = os.fspath(folder)
    if not place or "\0" in str(place):
        raise ValueError(f"keep is a folder, not {place!r}")
    url = is_url(place)
    if url and not isinstance(folder, str):
        raise ValueError(f"a URL is a text, of which a path has lost a part: {place!r}")
    if version is not None and not isinstance(version, str):
        raise TypeError(f"version is a text, not {version!r}")
    if version is not None and version != version.encode(errors="replace").decode():
        raise ValueError(f"version is a text that UTF-8 can encode, not {version!r}")
    seconds = None if valid is None else span_of(valid, "valid")
    if url:
        return Keep(place.rstrip("/") or place, version, seconds)
    return Keep(str(Path(place).expanduser().absolute()), version, seconds)


def is_url(folder: str) -> bool:
    """Whether a folder is named by a URL, of a file system that Hadoop knows.

    >>> is_url("hdfs://name/answers"), is_url("dbfs:/answers"), is_url("/answers")
    (True, True, False)
    """
    return _URL.match(folder) is not None


def span_of(value: object, name: str) -> float:
    """Return a time in seconds, above 0; TypeError, ValueError for anything else.

    >>> span_of("2h", "patience"), span_of(dt.timedelta(minutes=1), "patience")
    (7200.0, 60.0)
    >>> span_of(30, "patience")
    Traceback (most recent call last):
    TypeError: patience is a time above 0, as "30 days", not 30
    """
    wrong = f'{name} is a time above 0, as "30 days", not {value!r}'
    if not isinstance(value, str | dt.timedelta):
        raise TypeError(wrong)
    try:
        with warnings.catch_warnings():
            # What pandas 2 itself does with texts is deprecated from NumPy 2.5 on.
            warnings.simplefilter("ignore", DeprecationWarning)
            seconds = float(pd.Timedelta(value).total_seconds())
    except (ValueError, OverflowError):
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(wrong)
    return seconds
