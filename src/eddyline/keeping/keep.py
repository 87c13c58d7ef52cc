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
    return Keep(str(Path(place).expanduser().absolute()), version, seconds_of(valid))


def seconds_of(valid: str | dt.timedelta | None) -> float | None:
    """Return a time in seconds, above 0; None for none. TypeError, ValueError."""
    if valid is None:
        return None
    if not isinstance(valid, str | dt.timedelta):
        raise TypeError(f'a time is given as "30 days", not {valid!r}')
    try:
        seconds = pd.Timedelta(valid).total_seconds()
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f'a time is given as "30 days", not {valid!r}')
    return float(seconds)
