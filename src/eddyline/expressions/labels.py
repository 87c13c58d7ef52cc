"""Arrow types that differ in labels only.

Labels are the names of nested fields, whether these may be NULL, and the time zones of
timestamps: they say nothing about how values are stored. Spark gives one column now this
label and now that: of a union it sends each part as the part is declared, and from a function
it takes the declared ones alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def relabelled(values: pa.Array, declared: pa.DataType) -> pa.Array:
    """Return values under the labels of a type; what they are made of is not copied.

    Arrow's cast refuses a NULL in a field that is declared NOT NULL. Below a struct that is NULL
    itself such a one is right: it has to be something, and means nothing.

    Raises ``TypeError`` where nested types differ in more. Others are cast as Arrow casts them.

    >>> whole = pa.array([{"a": 1}, None])
    >>> declared = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    >>> relabelled(whole.take(pa.array([0, 1, None])), declared).to_pylist()
    [{'a': 1}, None, None]
    """
    found = values.type
    if found == declared:
        return values
    if pa.types.is_struct(found) and found.num_fields == _fields(declared):
        children = [relabelled(values.field(n), field.type) for n, field in enumerate(declared)]
        buffers = [_validity(values)]
        return pa.Array.from_buffers(declared, len(values), buffers, children=children)
    if _holds_lists(found) and _holds_lists(declared) and found.id == declared.id:
        inner = relabelled(values.values, _inner(declared))
        buffers = values.buffers()[:2]
        return pa.Array.from_buffers(
            declared, len(values), buffers, offset=values.offset, children=[inner]
        )
    if pa.types.is_nested(found) or pa.types.is_nested(declared):
        raise TypeError(f"values of {found} are none of {declared} under other labels")
    return values.cast(declared)


def _fields(a_type: pa.DataType) -> int:
    return int(a_type.num_fields) if pa.types.is_struct(a_type) else -1


def _holds_lists(a_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(a_type) or pa.types.is_large_list(a_type) or pa.types.is_map(a_type)
    )


def _inner(a_type: pa.DataType) -> pa.DataType:
    """Return the type of what the lists hold: of a map its entries."""
    if pa.types.is_map(a_type):
        return pa.struct([a_type.key_field, a_type.item_field])
    return a_type.value_type


def _validity(values: pa.StructArray) -> pa.Buffer | None:
    """Return the bits of a struct's rows from its first one on; its fields are cut to these."""
    if not values.offset:
        return values.buffers()[0]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
