"""Types of values: families of them, which can be joined on, and what differs in labels only.

The Arrow types here carry Spark's values, so the families are narrower than Arrow's own: Spark
has no unsigned integers and no half floats, and nothing here is known to be exact for them.

Labels are the names of nested fields, whether these may be NULL, and the time zones of
timestamps: they say nothing about how values are stored. Spark gives one column now this
label and now that: of a union it sends each part as the part is declared, and from a function
it takes the declared ones alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

MOST_FIELDS = 63
"""Fields of a struct in a key: one word says which of them are NULL."""


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


# ---------------------------------------------------------------- keys of joins


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


# ---------------------------------------------------------------- labels


def relabelled(values: pa.Array, declared: pa.DataType) -> pa.Array:
    """Return values under the labels of a type; what they are made of is not copied.

    Arrow's cast refuses a NULL in a field that is declared NOT NULL. Below a struct that is NULL
    itself such a NULL is right: the field has to hold something, and that means nothing.

    Raises ``TypeError`` where nested types differ in more. Others are cast as Arrow casts them.

    >>> whole = pa.array([{"a": 1}, None])
    >>> declared = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    >>> relabelled(whole.take(pa.array([0, 1, None])), declared).to_pylist()
    [{'a': 1}, None, None]
    """
    given = values.type
    if given == declared:
        return values
    if pa.types.is_struct(given) and given.num_fields == _fields(declared):
        children = [relabelled(values.field(n), field.type) for n, field in enumerate(declared)]
        buffers = [_validity(values)]
        return pa.Array.from_buffers(declared, len(values), buffers, children=children)
    if _holds_lists(given) and _holds_lists(declared) and given.id == declared.id:
        inner = relabelled(values.values, _inner(declared))
        buffers = values.buffers()[:2]
        return pa.Array.from_buffers(
            declared, len(values), buffers, offset=values.offset, children=[inner]
        )
    if pa.types.is_nested(given) or pa.types.is_nested(declared):
        raise TypeError(f"values of {given} are none of {declared} under other labels")
    return values.cast(declared)


def _fields(a_type: pa.DataType) -> int:
    return int(a_type.num_fields) if pa.types.is_struct(a_type) else -1


def _holds_lists(a_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(a_type) or pa.types.is_large_list(a_type) or pa.types.is_map(a_type)
    )


def _inner(a_type: pa.DataType) -> pa.DataType:
    """Return the type of the items of a list, or of the entries of a map."""
    if pa.types.is_map(a_type):
        return pa.struct([a_type.key_field, a_type.item_field])
    return a_type.value_type


def _validity(values: pa.StructArray) -> pa.Buffer | None:
    """Return the bits of a struct's rows from its first one on; its fields are cut to these."""
    if not values.offset:
        return values.buffers()[0]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
