"""Which types can be joined on, and how."""

from __future__ import annotations

import pyarrow as pa

MOST_FIELDS = 63
"""Fields of a struct in a key: one word says which of them are NULL."""


def is_joinable(a_type: pa.DataType) -> bool:
    """Return whether keys of a type have words.

    >>> is_joinable(pa.struct([("a", pa.int32()), ("b", pa.string())]))
    True
    >>> is_joinable(pa.list_(pa.int32()))
    False
    """
    if pa.types.is_struct(a_type):
        fields = a_type.num_fields
        return fields <= MOST_FIELDS and all(is_joinable(field.type) for field in a_type)
    return bool(
        is_text_like(a_type)
        or pa.types.is_boolean(a_type)
        or pa.types.is_signed_integer(a_type)
        or pa.types.is_float32(a_type)
        or pa.types.is_float64(a_type)
        or pa.types.is_date32(a_type)
        or pa.types.is_decimal128(a_type)
        or pa.types.is_timestamp(a_type)
        or pa.types.is_duration(a_type)
    )


def same_but_for_labels(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether two types are one, or structs that differ in labels only.

    Labels are names of fields and whether these may be NULL. Spark compares structs without
    a look at them.

    >>> whole = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    >>> same_but_for_labels(whole, pa.struct([("A", pa.int32())]))
    True
    """
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return one.num_fields == other.num_fields and all(
            same_but_for_labels(mine.type, its.type) for mine, its in zip(one, other, strict=True)
        )
    return bool(one == other)


def is_text_like(a_type: pa.DataType) -> bool:
    """Return whether values of a type are bytes of any number."""
    text = pa.types.is_string(a_type) or pa.types.is_large_string(a_type)
    return bool(text or is_binary(a_type))


def is_binary(a_type: pa.DataType) -> bool:
    """Return whether values of a type are bytes that need not be text."""
    return bool(pa.types.is_binary(a_type) or pa.types.is_large_binary(a_type))


def is_ordered(a_type: pa.DataType) -> bool:
    """Return whether values of a type have words of the same order."""
    return bool(
        pa.types.is_signed_integer(a_type)
        or pa.types.is_float32(a_type)
        or pa.types.is_float64(a_type)
        or pa.types.is_date32(a_type)
        or pa.types.is_timestamp(a_type)
        or pa.types.is_duration(a_type)
        or (pa.types.is_decimal128(a_type) and a_type.precision <= 18)  # noqa: PLR2004 - digits of a word
    )


def is_one_value(a_type: pa.DataType) -> bool:
    """Return whether equal values of a type are one value: not so for -0.0 and 0.0.

    >>> is_one_value(pa.string()), is_one_value(pa.float64())
    (True, False)
    """
    return not pa.types.is_nested(a_type) and not pa.types.is_floating(a_type)
