"""Join keys as 64-bit words, so that one kernel serves every type that Spark joins on.

Equal keys give equal words. The reverse holds too, except for strings and binary values of over
15 bytes: their second word is a hash, and a match must be confirmed by the bytes. Spark's rules
for floating point are in the words: NaN is NaN, and -0.0 is 0.0. A struct is the words of its
fields and one word for which of them are NULL, since inside a struct Spark takes two NULLs as
equal. A key that is NULL itself has no words: it matches nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.storage.growing import (
    GrowingArray,
    raw_values,
    room_for,
    text_parts,
    unlocked,
    validity,
)
from eddyline.engine.storage.on_first_use import OnFirstUse
from eddyline.errors import UnsupportedKeyError
from eddyline.expressions.value_types import is_binary, is_joinable, is_text_like

text_kernels = OnFirstUse("eddyline.engine.storage.text_kernels")


class KeyColumn:
    """The words of one column, growing with it; place by place as the column's rows."""

    def __init__(self, a_type: pa.DataType) -> None:
        """UnsupportedKeyError for a type that has no words."""
        if not is_joinable(a_type):
            raise UnsupportedKeyError(f"cannot join on values of type {a_type}")
        self._type = a_type
        self._words = [GrowingArray(np.int64) for _ in range(_count(a_type))]
        self._valid: GrowingArray | None = None
        # The texts, by the first of their two words.
        self._texts = {word: Texts() for word in _text_words(a_type)}

    @property
    def words(self) -> tuple[npt.NDArray[np.int64], ...]:
        """One array a word, each with one entry a row."""
        return tuple(words.values for words in self._words)

    @property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which rows have a key at all; None where all do."""
        return None if self._valid is None else self._valid.values

    @property
    def hashed(self) -> bool:
        """Whether some word is only a hash, so that matches are to be confirmed."""
        return any(texts.starts is not None for texts in self._texts.values())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = sum(words.nbytes for words in self._words)
        return held + sum(text.nbytes for text in self._texts.values())

    def append(self, values: pa.Array) -> None:
        """Add the keys of further rows."""
        before = len(self._words[0])
        added = _words(values)
        for word, texts in _text_fields(values).items():
            added[word : word + 2] = self._texts[word].append(texts)
        for held, words in zip(self._words, added, strict=True):
            held.adopt(unlocked(words))
        if self._valid is None and values.null_count:
            self._valid = GrowingArray(np.bool_)
            self._valid.extend(before, value=True)
        if self._valid is not None:
            self._valid.append(validity(values))

    def drop_first(self, count: int) -> None:
        """Forget the oldest rows."""
        for words in self._words:
            words.drop_first(count)
        for text in self._texts.values():
            text.drop_first(count)
        if self._valid is not None:
            self._valid.drop_first(count)

    def confirm(
        self,
        stored: KeyColumn,
        places: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
        matches: npt.NDArray[np.int64],
        equal: npt.NDArray[np.bool_],
    ) -> None:
        """Clear ``equal`` for pairs whose words agree and whose texts do not.

        A pair is a place ``places[positions]`` of this column and one of ``matches`` in ``stored``.
        """
        for word, text in self._texts.items():
            other = stored._texts[word]
            if text.starts is None or other.starts is None:
                continue  # not both have long ones
            text_kernels.equal_texts(
                text.starts.values,
                text.kept.values,
                places,
                positions,
                other.starts.values,
                other.kept.values,
                matches,
                equal,
            )


class Texts:
    """Two words for each text, which hold short ones whole, and the long ones themselves.

    A long one is kept as whole words, the size in bytes first: two of 19 bytes are compared in
    four steps. While there are none nothing is kept.
    """

    def __init__(self) -> None:
        self.kept = GrowingArray(np.int64)
        self.starts: GrowingArray | None = None  # where each text starts, -1 for a short one
        self._rows = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.kept.nbytes + (0 if self.starts is None else self.starts.nbytes)

    def append(self, values: pa.Array) -> list[npt.NDArray[np.int64]]:
        """Add strings or binary values at the back and return their first and second words."""
        if values.null_count:  # inside a struct two NULLs are equal: none may have bytes
            values = values.fill_null(b"" if is_binary(values.type) else "")
        offsets, data = text_parts(values)
        held = unlocked(data)
        whole = held[: len(held) // 8 * 8].view(np.int64)
        firsts, seconds = (room_for(len(values), np.int64) for _ in range(2))
        room = text_kernels.text_words(offsets, held, whole, firsts, seconds)
        if room and self.starts is None:
            self.starts = GrowingArray(np.int64)
            self.starts.extend(self._rows, -1)
        self._rows += len(values)
        if self.starts is not None:
            starts, kept = room_for(len(values), np.int64), room_for(room, np.int64)
            text_kernels.keep_long_texts(offsets, held, whole, starts, len(self.kept), kept)
            self.starts.adopt(starts)
            self.kept.adopt(kept)
        return [firsts, seconds]

    def drop_first(self, count: int) -> None:
        """Forget the oldest texts."""
        self._rows -= count
        if self.starts is None:
            return
        self.starts.drop_first(count)
        starts = self.starts.values
        long = starts >= 0
        first = int(starts[long.argmax()]) if long.any() else len(self.kept)
        starts[long] -= first
        self.kept.drop_first(first)


def _count(a_type: pa.DataType) -> int:
    """Return the number of words of a value."""
    if pa.types.is_struct(a_type):
        return 1 + sum(_count(field.type) for field in a_type)
    if is_text_like(a_type):
        return 2
    return 2 if pa.types.is_decimal128(a_type) and a_type.precision > 18 else 1  # noqa: PLR2004 - digits of a word


def _text_words(a_type: pa.DataType) -> list[int]:
    """Return which of a type's words are the first ones of texts."""
    if pa.types.is_struct(a_type):
        places: list[int] = []
        word = 1
        for field in a_type:
            places += [word + inner for inner in _text_words(field.type)]
            word += _count(field.type)
        return places
    return [0] if is_text_like(a_type) else []


def _text_fields(values: pa.Array) -> dict[int, pa.Array]:
    """Return the texts of values, by the first of their two words."""
    a_type = values.type
    if pa.types.is_struct(a_type):
        texts: dict[int, pa.Array] = {}
        word = 1
        for child in values.flatten():  # NULL where the struct is, whatever the field says
            for inner, text in _text_fields(child).items():
                texts[word + inner] = text
            word += _count(child.type)
        return texts
    return {0: values} if is_text_like(a_type) else {}


def _words(values: pa.Array) -> list[npt.NDArray[np.int64]]:
    a_type = values.type
    if pa.types.is_struct(a_type):
        return _struct_words(values)
    if is_text_like(a_type):
        return [np.zeros(len(values), np.int64)] * 2  # they are put in afterwards
    if pa.types.is_boolean(a_type):
        return [values.fill_null(fill_value=False).to_numpy(zero_copy_only=False).astype(np.int64)]
    if pa.types.is_floating(a_type):
        return [_float_words(values)]
    raw = raw_values(values)
    if pa.types.is_decimal128(a_type):
        columns = [np.ascontiguousarray(raw[:, 0]) if len(raw) else np.empty(0, np.int64)]
        if _count(a_type) > 1:
            columns.append(np.ascontiguousarray(raw[:, 1]) if len(raw) else columns[0])
        return columns
    return [raw.astype(np.int64, copy=False)]


def _float_words(values: pa.Array) -> npt.NDArray[np.int64]:
    raw: npt.NDArray[Any] = raw_values(values)
    floats = raw.view(f"f{raw.dtype.itemsize}").astype(np.float64)
    floats[np.isnan(floats)] = np.nan
    return (floats + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0


def _struct_words(values: pa.Array) -> list[npt.NDArray[np.int64]]:
    nulls = np.zeros(len(values), np.int64)
    words: list[npt.NDArray[np.int64]] = [nulls]
    for index, child in enumerate(values.flatten()):
        own = _words(child)
        if child.null_count:
            missing = ~validity(child)
            nulls |= missing.astype(np.int64) << np.int64(index)
            own = [np.where(missing, 0, word) for word in own]
        words += own
    return words
