"""Families of the Arrow types that carry Spark's values.

Narrower than Arrow's own families: Spark has no unsigned integers and no half
floats, so nothing here is known to be exact for them.
"""

from __future__ import annotations

import pyarrow as pa


def is_integer(a_type: pa.DataType) -> bool:
    """Return whether a type is a signed integer of 8 to 64 bits."""
    return bool(pa.types.is_signed_integer(a_type))


def is_floating(a_type: pa.DataType) -> bool:
    """Return whether a type is a float or a double."""
    return bool(pa.types.is_float32(a_type) or pa.types.is_float64(a_type))


def is_text(a_type: pa.DataType) -> bool:
    """Return whether a type is a string."""
    return bool(pa.types.is_string(a_type) or pa.types.is_large_string(a_type))


def is_comparable(a_type: pa.DataType) -> bool:
    """Return whether values of a type are compared exactly as Spark compares them."""
    return bool(
        pa.types.is_boolean(a_type)
        or is_integer(a_type)
        or is_floating(a_type)
        or is_text(a_type)
        or pa.types.is_decimal128(a_type)
        or pa.types.is_date32(a_type)
        or pa.types.is_binary(a_type)
        or pa.types.is_large_binary(a_type)
        or (pa.types.is_timestamp(a_type) and a_type.unit == "us")
    )


def has_equality(a_type: pa.DataType) -> bool:
    """Return whether values of a type are tested for equality exactly as Spark does it."""
    if pa.types.is_struct(a_type):
        return all(has_equality(field.type) for field in a_type)
    return is_comparable(a_type)
