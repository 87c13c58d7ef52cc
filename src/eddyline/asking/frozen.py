"""Values as keys: equal where a function cannot tell them apart."""

from __future__ import annotations

import datetime as dt
import math


def frozen(value: object) -> object:
    """Return what stands for a value in a dictionary, lists and dictionaries in it included.

    0.0 and -0.0 are two values to a function, and any NaN is the same to it. Python takes two
    moments for one whose clocks show the same at the end of summer time.

    >>> frozen(0.0) == frozen(-0.0), frozen(math.nan) == frozen(math.nan), frozen([1, None])
    (False, True, ('list', 1, None))
    """
    if isinstance(value, float) and (value == 0 or math.isnan(value)):
        return "float", repr(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, list | tuple):
        return ("list", *map(frozen, value))
    if isinstance(value, dict):
        return ("dict", *((key, frozen(each)) for key, each in value.items()))
    return value
