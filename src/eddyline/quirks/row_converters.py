"""PySpark's own converters between values of Arrow's and those that a user's function sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.types import DataType

from eddyline.quirks.pyspark_at_hand import MINOR

Converter: TypeAlias = Callable[[Any], Any] | None
"""Converts a value; None where each stays as it is."""


def to_python(kind: DataType, *, binary_as_bytes: bool) -> Converter:
    """Return what makes Python's value of one of Arrow's, in ``to_pylist``'s form."""
    rows: Any = ArrowTableToRowsConversion
    if MINOR >= (4, 1):
        made: Converter = rows._create_converter(  # noqa: SLF001 - no public way
            kind, none_on_identity=True, binary_as_bytes=binary_as_bytes
        )
        return made
    if not rows._need_converter(kind):  # noqa: SLF001 - likewise
        return None
    convert: Converter = rows._create_converter(kind)  # noqa: SLF001 - likewise
    return convert


def to_arrow(kind: DataType, *, integers_as_decimals: bool) -> Converter:
    """Return what makes of Python's value one that Arrow takes."""
    values: Any = LocalDataToArrowConversion
    if MINOR >= (4, 1):
        made: Converter = values._create_converter(  # noqa: SLF001 - no public way
            kind, none_on_identity=True, int_to_decimal_coercion_enabled=integers_as_decimals
        )
        return made
    if not values._need_converter(kind, True):  # noqa: FBT003, SLF001 - likewise
        return None
    convert: Converter = values._create_converter(kind)  # noqa: SLF001 - likewise
    return convert
