"""Arrays that grow at the back: what a row store keeps its columns in.

A gather reads one piece of memory, and appending costs the same however long they are.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, as_array
from eddyline.engine.storage.on_first_use import OnFirstUse
from eddyline.expressions.value_types import is_binary, is_text_like

text_kernels = OnFirstUse("eddyline.engine.storage.text_kernels")

FIRST_ROOM = 1024
"""Elements that a growing array has room for at first."""


def room_for(count: int, dtype: npt.DTypeLike, width: tuple[int, ...] = ()) -> npt.NDArray[Any]:
    """Return an array with room for so many elements, whatever is in it.

    The memory is Arrow's: its allocator keeps what is freed at hand for a while, where
    NumPy asks the system for new pages every time. A table of 16 MB takes 4 ms to fill
    instead of 5 to 70.
    """
    shape = (count, *width)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(pa.allocate_buffer(size), dtype).reshape(shape)


class GrowingArray:
    """A NumPy array that grows at the back; ``dtype`` and any further dimension stay.

    What is added is kept in pieces until somebody looks: rows that are all there before the
    first probe are copied once, into an array of just their size. After that room is doubled
    whenever it runs out.
    """

    __slots__ = ("_buffer", "_dtype", "_pieces", "_size", "_used", "_width")

    def __init__(self, dtype: npt.DTypeLike, width: tuple[int, ...] = ()) -> None:
        """``width`` is the shape of one element."""
        self._dtype = np.dtype(dtype)
        self._width = width
        self._buffer: npt.NDArray[Any] | None = None
        self._used = 0  # of the buffer
        self._pieces: list[npt.NDArray[Any]] = []
        self._size = 0

    def __reduce__(self) -> tuple[object, ...]:
        """Leave out the unused room."""
        return _restored, (self._dtype, self._width, self.values)

    def __len__(self) -> int:
        """Return the number of elements."""
        return self._size

    @property
    def values(self) -> npt.NDArray[Any]:
        """All elements: a view, which later appends may leave behind."""
        if self._pieces or self._buffer is None:
            return self._put_together()
        return self._buffer[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes held, unused room included."""
        held = 0 if self._buffer is None else self._buffer.nbytes
        return held + sum(piece.nbytes for piece in self._pieces)

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add a copy of elements at the back."""
        self.adopt(np.array(values, dtype=self._dtype))

    def adopt(self, values: npt.NDArray[Any]) -> None:
        """Add elements at the back that nobody will change any more, so that they may be kept."""
        if len(values):
            self._pieces.append(values)
            self._size += len(values)

    def extend(self, count: int, value: object) -> None:
        """Add ``value`` so many times."""
        if count > 0:
            self.adopt(np.full((count, *self._width), value, self._dtype))

    def lengthen(self, count: int) -> None:
        """Add so many elements with whatever is in them, to be filled in."""
        if count > 0:
            self.adopt(room_for(count, self._dtype, self._width))

    def drop_first(self, count: int) -> None:
        """Forget the oldest elements."""
        kept = self.values[count:].copy()
        self._buffer, self._used, self._pieces, self._size = None, 0, [], 0
        self.adopt(kept)

    def _put_together(self) -> npt.NDArray[Any]:
        buffer = self._buffer
        if buffer is None and len(self._pieces) == 1 and self._pieces[0].dtype == self._dtype:
            # Kept as it is: it is full, so that nothing will be written into it.
            buffer = unlocked(self._pieces[0])
        elif buffer is None or self._size > len(buffer):
            room = self._size if buffer is None else max(2 * len(buffer), self._size, FIRST_ROOM)
            grown = room_for(room, self._dtype, self._width)
            if buffer is not None:
                grown[: self._used] = buffer[: self._used]
            self._fill(grown)
            buffer = grown
        else:
            self._fill(buffer)
        self._buffer = buffer
        self._used = self._size
        self._pieces = []
        return buffer[: self._size]

    def _fill(self, buffer: npt.NDArray[Any]) -> None:
        at = self._used
        for piece in self._pieces:
            buffer[at : at + len(piece)] = piece
            at += len(piece)


def _restored(
    dtype: np.dtype[Any], width: tuple[int, ...], values: npt.NDArray[Any]
) -> GrowingArray:
    array = GrowingArray(dtype, width)
    array.adopt(values)
    return array


class _Unlocked:
    """Lends the memory of an array that must not be written to, without saying so."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array  # keeps the memory alive
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def unlocked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same memory as an array that NumPy takes for writable.

    For kernels, which only read: Numba would compile each of them once more for every
    combination of arguments that are read-only.
    """
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class GrowingColumn(Protocol):
    """A column of a row store."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...

    def append(self, values: pa.Array) -> None:
        """Add values of the column's type at the back."""
        ...

    def take(self, rows: Rows) -> pa.Array:
        """Return the values at places from 0 on."""
        ...

    def drop_first(self, count: int) -> None:
        """Forget the oldest values."""
        ...


class _Validity:
    """Which values are not NULL; keeps nothing as long as none is."""

    __slots__ = ("_flags", "_size")

    def __init__(self) -> None:
        self._flags: GrowingArray | None = None
        self._size = 0

    @property
    def flags(self) -> npt.NDArray[np.bool_] | None:
        return None if self._flags is None else self._flags.values

    @property
    def nbytes(self) -> int:
        return 0 if self._flags is None else self._flags.nbytes

    def append(self, values: pa.Array) -> None:
        if self._flags is None and values.null_count:
            self._flags = GrowingArray(np.bool_)
            self._flags.extend(self._size, value=True)
        if self._flags is not None:
            self._flags.append(validity(values))
        self._size += len(values)

    def take(self, rows: Rows) -> pa.Buffer | None:
        """Return an Arrow validity bitmap for the rows; None where none is NULL."""
        if self._flags is None:
            return None
        flags = self._flags.values
        taken = flags[rows.start : rows.stop] if isinstance(rows, range) else flags[rows]
        if taken.all():
            return None
        return pa.py_buffer(np.packbits(taken, bitorder="little"))

    def drop_first(self, count: int) -> None:
        self._size -= count
        if self._flags is not None:
            self._flags.drop_first(count)


def validity(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values are not NULL."""
    flags: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return flags


class FixedWidthColumn:
    """Values of one width in bytes: numbers, dates, timestamps, decimals."""

    __slots__ = ("_type", "_validity", "_values")

    def __init__(self, a_type: pa.DataType) -> None:
        """``a_type`` is an Arrow type with a bit width of 8 or more."""
        self._type = a_type
        words, rest = divmod(a_type.bit_width, 64)
        wide = words > 1 and not rest
        self._values = (
            GrowingArray(np.int64, (words,)) if wide else GrowingArray(f"i{a_type.bit_width // 8}")
        )
        self._validity = _Validity()

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values as integers of their width; what stands for a NULL means nothing."""
        return self._values.values

    @property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which values are not NULL; None where all are."""
        return self._validity.flags

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._values.nbytes + self._validity.nbytes

    def append(self, values: pa.Array) -> None:
        """Add values at the back."""
        self._values.adopt(raw_values(values))
        self._validity.append(values)

    def take(self, rows: Rows) -> pa.Array:
        """Return the values at places from 0 on: without a copy where they are contiguous."""
        held = self._values.values
        taken = held[rows.start : rows.stop] if isinstance(rows, range) else held.take(rows, axis=0)
        buffers = [self._validity.take(rows), pa.py_buffer(np.ascontiguousarray(taken))]
        return pa.Array.from_buffers(self._type, len(rows), buffers)

    def drop_first(self, count: int) -> None:
        """Forget the oldest values."""
        self._values.drop_first(count)
        self._validity.drop_first(count)


def raw_values(values: pa.Array) -> npt.NDArray[Any]:
    """Return the values of a fixed-width array as integers, one row of them a value if wide."""
    width = values.type.bit_width // 8
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.empty((0, width // 8) if width > 8 else 0, f"i{min(width, 8)}")  # noqa: PLR2004 - bytes of a word
    if width > 8:  # noqa: PLR2004 - bytes of a word
        words = np.frombuffer(data, np.int64).reshape(-1, width // 8)
        return words[values.offset : values.offset + len(values)]
    return np.frombuffer(data, f"i{width}")[values.offset : values.offset + len(values)]


class TextColumn:
    """Strings or binary values: all bytes end to end, with int64 offsets."""

    __slots__ = ("_data", "_offsets", "_type", "_validity")

    def __init__(self, a_type: pa.DataType) -> None:
        """``a_type`` is one of strings or binary values, with offsets of either width."""
        self._type = a_type
        self._offsets = GrowingArray(np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        self._data = GrowingArray(np.uint8)
        self._validity = _Validity()

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each value starts, and where the last one ends."""
        return self._offsets.values

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes of all values."""
        return self._data.values

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._offsets.nbytes + self._data.nbytes + self._validity.nbytes

    def append(self, values: pa.Array) -> None:
        """Add values at the back."""
        offsets, data = text_parts(values)
        self._offsets.adopt(offsets[1:] + (len(self._data) - offsets[0]))
        self._data.adopt(data[offsets[0] : offsets[-1]])
        self._validity.append(values)

    def take(self, rows: Rows) -> pa.Array:
        """Return the values at places from 0 on."""
        if isinstance(rows, range):
            offsets, data = self.offsets[rows.start : rows.stop + 1], self.data
        else:
            offsets = np.empty(len(rows) + 1, np.int64)
            total = text_kernels.text_sizes(self.offsets, rows, offsets)
            data = np.empty(total, np.uint8)
            text_kernels.gather_texts(self.offsets, self.data, rows, offsets, data)
        wide = pa.Array.from_buffers(
            pa.large_binary() if is_binary(self._type) else pa.large_string(),
            len(rows),
            [self._validity.take(rows), pa.py_buffer(offsets), pa.py_buffer(data)],
        )
        return wide if wide.type == self._type else wide.cast(self._type)

    def drop_first(self, count: int) -> None:
        """Forget the oldest values."""
        first = int(self._offsets.values[count])
        self._offsets.drop_first(count)
        self._offsets.values[:] -= first
        self._data.drop_first(first)
        self._validity.drop_first(count)


def text_parts(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets of strings or binary values, one more than values, and the bytes."""
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    buffers = values.buffers()
    if not len(values) or buffers[1] is None:
        return np.zeros(len(values) + 1, np.int64), np.empty(0, np.uint8)
    narrow = np.frombuffer(buffers[1], np.int64 if wide else np.int32)
    offsets = narrow[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return offsets, data


class AnyColumn:
    """Values of any other type, as Arrow arrays that are merged as they grow."""

    __slots__ = ("_chunks", "_numbers", "_type")

    def __init__(self, a_type: pa.DataType) -> None:
        self._type = a_type
        self._chunks: list[pa.Array] = []
        # The values of the only chunk, where they are numbers and none is NULL: NumPy gathers
        # a few of them in 5 microseconds, Arrow in 30.
        self._numbers: npt.NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def append(self, values: pa.Array) -> None:
        """Add values at the back; neighbours of like size become one, so that few are left."""
        chunks = self._chunks
        chunks.append(values)
        while len(chunks) > 1 and len(chunks[-2]) <= 2 * len(chunks[-1]):
            last = chunks.pop()
            chunks[-1] = pa.concat_arrays([chunks[-1], last])
        self._numbers = None
        if len(chunks) == 1 and _are_numbers(chunks[0]):
            self._numbers = raw_values(chunks[0])

    def take(self, rows: Rows) -> pa.Array:
        """Return the values at places from 0 on."""
        if self._numbers is not None and not isinstance(rows, range):
            taken = pa.py_buffer(self._numbers[rows])
            return pa.Array.from_buffers(self._type, len(rows), [None, taken], 0)
        if not self._chunks:
            return pa.nulls(0, self._type)
        if len(self._chunks) == 1 and isinstance(rows, range):
            return self._chunks[0].slice(rows.start, len(rows))
        numbers = as_array(rows)
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(numbers))
        bounds = np.cumsum([len(chunk) for chunk in self._chunks])
        chunk_of = np.searchsorted(bounds, numbers, side="right")
        pieces = []
        where = np.empty(len(numbers), np.int64)
        done = 0
        for number, chunk in enumerate(self._chunks):
            places = np.flatnonzero(chunk_of == number)
            if len(places):
                start = bounds[number] - len(chunk)
                pieces.append(chunk.take(pa.array(numbers[places] - start)))
                where[places] = np.arange(done, done + len(places))
                done += len(places)
        return pa.concat_arrays(pieces).take(pa.array(where)) if pieces else pa.nulls(0, self._type)

    def drop_first(self, count: int) -> None:
        """Forget the oldest values."""
        whole = pa.concat_arrays(self._chunks)
        self._chunks = [pa.concat_arrays([whole.slice(count)])]
        self._numbers = None


def _are_numbers(values: pa.Array) -> bool:
    kind = values.type
    return pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) and not values.null_count


def growing_column(a_type: pa.DataType) -> FixedWidthColumn | TextColumn | AnyColumn:
    """Make an empty column of a type."""
    if is_text_like(a_type):
        return TextColumn(a_type)
    if pa.types.is_primitive(a_type) and not pa.types.is_boolean(a_type):
        return FixedWidthColumn(a_type)
    if pa.types.is_decimal128(a_type):
        return FixedWidthColumn(a_type)
    return AnyColumn(a_type)
