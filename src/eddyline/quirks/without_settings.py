"""What a Spark that lacks a setting does in its place."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from eddyline.quirks.pyspark_at_hand import MINOR

ALWAYS_ON: Final[AbstractSet[str]] = (
    frozenset() if MINOR >= (4, 1) else frozenset({"legacy_pandas_conversion"})
)
"""Settings of a block that are always on; others that are lacking are off.

Up to PySpark 4.0 the rows of plain functions over Arrow came by way of pandas, without a choice.
"""

ALWAYS_OFF: Final[AbstractSet[str]] = (
    frozenset()
    if MINOR >= (4, 1)
    else frozenset({"binary_as_bytes", "int_to_decimal_coercion", "integer_extension_types"})
)
"""Settings of a block that are always off, also where somebody sets what that Spark ignores."""
