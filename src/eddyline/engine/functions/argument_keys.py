"""One key for each row's tuple of arguments, as a column that Arrow can tell values apart in.

Two rows have equal keys exactly if a function cannot tell their arguments apart. That is finer
than equality in SQL or Python: -0.0 is not 0.0, and a NaN is itself only, bit by bit; NULL is
a value like others, in lists and structs too. A single column of numbers or texts is its own
key. Several are packed into bytes: words for what has a fixed width and for which of it is NULL,
then texts and nested values, with their sizes where these are needed to tell where one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_INTEGERS: Final = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}
_WORD: Final = 8  # bytes

LARGEST: Final = 1 << 30
"""Bytes of arguments in a visit that are packed; a column of Arrow's texts holds twice as many."""

_Words = npt.NDArray[np.int64]


def keys_of(columns: Sequence[pa.Array], rows: int) -> pa.Array | None:
    """Return a key for each row, in a type that ``dictionary_encode`` takes.

    ``columns`` have ``rows`` values each, of any type but intervals, unions and extensions.
    Without columns all rows have the same key. None where the arguments are too large to be packed.

    >>> keys = keys_of([pa.array([1, 1, None]), pa.array(["a", "a", "a"])], 3)
    >>> keys.dictionary_encode().indices.to_pylist()
    [0, 0, 1]
    """
    if not columns:
        return pa.nulls(rows)
    if len(columns) == 1 and (own := _plain(columns[0])) is not None:
        return own
    if sum(column.nbytes for column in columns) > LARGEST:
        return None
    return _packed(list(columns), rows)


def _plain(column: pa.Array) -> pa.Array | None:
    """Return a column that is not nested as one whose equality is that of bits; None if it is."""
    kind = column.type
    if pa.types.is_nested(kind):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # As bytes: nobody needs to decode a key.
        return column.view(pa.binary() if pa.types.is_string(kind) else pa.large_binary())
    if pa.types.is_boolean(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    if pa.types.is_decimal(kind):
        return column.view(pa.binary(kind.byte_width))
    return column.view(_INTEGERS[kind.bit_width // 8])


def _packed(columns: list[pa.Array], rows: int) -> pa.Array:
    """Return bytes that tell the rows of several columns apart, none of them NULL."""
    words: list[_Words] = []
    texts: list[pa.Array] = []
    nulls = np.zeros(rows, np.int64)
    number = 0
    for column in columns:
        for part in _parts(column):
            if number and number % 63 == 0:  # the next word of flags
                words.append(nulls)
                nulls = np.zeros(rows, np.int64)
            whole = part
            if part.null_count:
                missing = part.is_null().to_numpy(zero_copy_only=False)
                nulls |= missing.astype(np.int64) << np.int64(number % 63)
                whole = _without_nulls(part)
            number += 1
            if pa.types.is_binary(part.type) or pa.types.is_large_binary(part.type):
                texts.append(whole)
            else:
                words += _words(whole)
    words.append(nulls)
    words += [_lengths(text) for text in texts[:-1]]  # the last one ends where the key does
    prefix = _fixed(words, rows)
    if not texts:
        return prefix
    large = any(pa.types.is_large_binary(text.type) for text in texts)
    kind = pa.large_binary() if large else pa.binary()
    joined = [piece.cast(kind) for piece in (prefix, *texts)]
    return pc.binary_join_element_wise(*joined, pa.scalar(b"", kind))


def _parts(column: pa.Array) -> list[pa.Array]:
    """Return columns that are plain and tell the values of a column apart."""
    kind = column.type
    if pa.types.is_struct(kind):
        inner = [part for field in column.flatten() for part in _parts(field)]
        return [column.is_valid(), *inner]  # NULL, or a struct of NULLs
    if pa.types.is_nested(kind):
        return [_list_bytes(column)]
    plain = _plain(column)
    if plain is None:
        raise AssertionError(f"{kind} is nested, and taken for what it is not")
    return [plain]


def _list_bytes(column: pa.Array) -> pa.Array:
    """Return the elements of lists or maps as bytes, end to end; NULL where the list is."""
    if pa.types.is_map(column.type):  # has no kernels of its own
        column = pa.Array.from_buffers(
            pa.list_(column.values.type),
            len(column),
            column.buffers()[:2],
            offset=column.offset,
            children=[column.values],
        )
    elements = column.flatten()
    packed = _packed([elements], len(elements))
    if pa.types.is_fixed_size_binary(packed.type):
        ends = np.arange(len(elements) + 1, dtype=np.int64) * packed.type.byte_width
        data = packed.buffers()[1]
    else:  # each with its size before it
        sizes = _fixed([_lengths(packed)], len(packed)).cast(packed.type)
        packed = pc.binary_join_element_wise(sizes, packed, pa.scalar(b"", packed.type))
        large = packed.cast(pa.large_binary())
        ends = np.frombuffer(large.buffers()[1], np.int64)[: len(elements) + 1]
        data = large.buffers()[2]
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    places = np.zeros(len(column) + 1, np.int64)
    np.cumsum(counts, out=places[1:])
    offsets = ends[places] if len(elements) else np.zeros(len(column) + 1, np.int64)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), data or pa.py_buffer(b"")]
    lists = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    if column.null_count:
        return pc.if_else(column.is_valid(), lists, pa.scalar(None, pa.large_binary()))
    return lists


def _without_nulls(part: pa.Array) -> pa.Array:
    kind = part.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return part.fill_null(b"")
    if pa.types.is_boolean(kind):
        return part.fill_null(fill_value=False)
    if pa.types.is_fixed_size_binary(kind):
        return part.fill_null(bytes(kind.byte_width))
    return part.fill_null(0)


def _words(part: pa.Array) -> list[_Words]:
    """Return the words of a column of fixed width without NULLs."""
    kind = part.type
    if pa.types.is_fixed_size_binary(kind):
        data = part.buffers()[1]
        width = kind.byte_width // _WORD
        table = np.frombuffer(data, np.int64) if data is not None else np.empty(0, np.int64)
        table = table.reshape(-1, width)[part.offset : part.offset + len(part)]
        return [table[:, word] for word in range(width)]
    return [part.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)]


def _lengths(texts: pa.Array) -> _Words:
    sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    lengths: _Words = sizes.astype(np.int64)
    return lengths


def _fixed(words: Sequence[_Words], rows: int) -> pa.Array:
    """Return the words of each row end to end as bytes of one width."""
    table = np.empty((rows, len(words)), np.int64)
    for number, column in enumerate(words):
        table[:, number] = column
    kind = pa.binary(_WORD * len(words))
    return pa.FixedSizeBinaryArray.from_buffers(kind, rows, [None, pa.py_buffer(table)])
