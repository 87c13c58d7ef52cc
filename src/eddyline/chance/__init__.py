"""Tells whether a function looks as if its results hang on chance, the time, or earlier calls.

Spark takes every function for deterministic that is not declared otherwise, and people forget to
declare those that make identities or draw numbers. Their code shows it: it names ``uuid.uuid4``, or
a function of ``random``. None of the code is run.

It can err both ways: a function that only measures its own time looks as if it hung on the time,
and a name that is put together at run time is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from eddyline.chance.inert_pickle import load_inert
from eddyline.chance.search import chance_in
from eddyline.digest import digest
from eddyline.latest import Latest

__all__ = ["ADVICE", "chance_in", "chance_in_pickles", "looks_non_deterministic"]

ADVICE: Final = "declare it with asNondeterministic(), or mark it with @eddyline.deterministic"
"""What to do about a function that looks so."""

_REMEMBERED: Final = 1_000  # functions for which the answer is kept
_PICKLE_MOST: Final = 1 << 20  # bytes; PySpark broadcasts longer ones

_known: Final = Latest[bytes, tuple[str | None]](_REMEMBERED)


def looks_non_deterministic(commands: Sequence[bytes]) -> str | None:
    """Return that a nest of pickled functions looks so, why, and what to do; else None."""
    why = chance_in_pickles(commands)
    return why and f"looks non-deterministic: {why}; {ADVICE}"


def chance_in_pickles(commands: Sequence[bytes]) -> str | None:
    """Return what a nest of pickled functions calls so that it looks so, as "calls uuid.uuid4".

    None where it does not. A small function takes 140 to 300 us when it is new, and a microsecond
    when it is known. Nothing is known here of one that PySpark broadcasts because it is large: a
    worker will see.
    """
    return next(filter(None, map(_chance_in_pickle, commands)), None)


def _chance_in_pickle(command: bytes) -> str | None:
    key = digest(command)
    known = _known.get(key)
    if known is None:
        loaded: object = None
        if len(command) <= _PICKLE_MOST:
            with suppress(Exception):  # a pickle may be of any form
                loaded = load_inert(command)
        known = (chance_in(loaded[0]) if isinstance(loaded, tuple) and loaded else None,)
        _known.put(key, known)
    return known[0]
