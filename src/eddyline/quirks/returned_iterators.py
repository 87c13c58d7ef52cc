"""What a function from an iterator to an iterator may return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from eddyline.quirks.pyspark_at_hand import MINOR

COUNTED_FIRST: Final = MINOR < (4, 3)
"""Whether Spark refuses a Series with too many rows before it converts it; else afterwards."""


def as_iterator(result: Any) -> Any:  # noqa: ANN401 - anything may be returned
    """Return an iterator over what Spark takes for one, anything else as it is.

    Up to PySpark 4.2 that is whatever has ``__iter__``, such as a list.
    """
    if MINOR < (4, 3) and hasattr(result, "__iter__") and not isinstance(result, Iterator):
        return iter(result)
    return result
