"""Join keys as 64-bit words, so that one kernel serves every type that Spark joins on.

Equal keys give equal words. For numbers, dates, timestamps, booleans and decimals the
reverse holds too; for strings and binary values the word is a hash, and a match must be
confirmed by the bytes. Spark's rules for floating point are in the words: NaN is NaN, and
-0.0 is 0.0. A struct is the words of its fields and one word for which of them are NULL,
since inside a struct Spark takes two NULLs as equal. A key that is NULL itself has no
words: it matches nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.storage import kernels
from eddyline.engine.storage.growing import (
    GrowingArray,
    raw_values,
    room_for,
    text_parts,
    unlocked,
    validity,
)
from eddyline.errors import EddylineError
from eddyline.query.key_types import is_binary, is_joinable, is_text_like


class UnsupportedKeyError(EddylineError, TypeError):
    """Values of a type cannot be joined on."""


class KeyColumn:
    """The words of one column, growing with it; place by place as the column's rows."""

    def __init__(self, a_type: pa.DataType) -> None:
        """Make the words of an empty column; UnsupportedKeyError for a type without words."""
        if not is_joinable(a_type):
            raise UnsupportedKeyError(f"cannot join on values of type {a_type}")
        self._type = a_type
        self._words = [GrowingArray(np.int64) for _ in range(_count(a_type))]
        self._valid: GrowingArray | None = None
        # Which word is only a hash, and the texts that it stands for.
        self.texts = {word: PaddedTexts() for word in _hashed(a_type)}

    @property
    def words(self) -> tuple[npt.NDArray[np.int64], ...]:
        """One array a word, each with one entry a row."""
        return tuple(words.values for words in self._words)

    @property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which rows have a key at all; None where all do."""
        return None if self._valid is None else self._valid.values

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = sum(words.nbytes for words in self._words)
        return held + sum(text.nbytes for text in self.texts.values())

    def append(self, values: pa.Array) -> None:
        """Add the keys of further rows."""
        before = len(self._words[0])
        added = _words(values)
        for word, texts in _text_fields(values).items():
            hashes = self.texts[word].append(texts)
            added[word] = np.where(validity(texts), hashes, 0) if texts.null_count else hashes
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
        for text in self.texts.values():
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
        for word, text in self.texts.items():
            other = stored.texts[word]
            kernels.equal_texts(
                text.starts,
                text.words,
                places,
                positions,
                other.starts,
                other.words,
                matches,
                equal,
            )


class PaddedTexts:
    """Texts as whole words: the size in bytes, then the bytes, with zeros behind.

    Two of 11 bytes are compared in three steps; byte by byte a join on such keys takes
    twice as long.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._starts = GrowingArray(np.int64)
        self._words = GrowingArray(np.int64)

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each text starts in :attr:`words`."""
        return self._starts.values

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """All texts one behind the other."""
        return self._words.values

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._starts.nbytes + self._words.nbytes

    def append(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Add strings or binary values at the back and return their hashes."""
        if values.null_count:  # inside a struct two NULLs are equal: none may have bytes
            values = values.fill_null(b"" if is_binary(values.type) else "")
        offsets, data = text_parts(values)
        first = len(self._words)
        starts = np.empty(len(values), np.int64)
        stop = kernels.padded_starts(offsets, starts, first)
        words = room_for(stop - first, np.int64)
        hashes = np.empty(len(values), np.int64)
        held = unlocked(data)
        whole = held[: len(held) // 8 * 8].view(np.int64)
        kernels.pad_texts(offsets, held, whole, starts, first, words, hashes)
        self._starts.adopt(starts)
        self._words.adopt(words)
        return hashes

    def drop_first(self, count: int) -> None:
        """Forget the oldest texts."""
        first = int(self.starts[count]) if count < len(self._starts) else len(self._words)
        self._starts.drop_first(count)
        self._starts.values[:] -= first
        self._words.drop_first(first)


def _count(a_type: pa.DataType) -> int:
    if pa.types.is_struct(a_type):
        return 1 + sum(_count(field.type) for field in a_type)
    return 2 if pa.types.is_decimal128(a_type) and a_type.precision > 18 else 1  # noqa: PLR2004 - digits of a word


def _hashed(a_type: pa.DataType) -> list[int]:
    """Return which of a type's words are hashes."""
    if pa.types.is_struct(a_type):
        found: list[int] = []
        word = 1
        for field in a_type:
            found += [word + inner for inner in _hashed(field.type)]
            word += _count(field.type)
        return found
    return [0] if is_text_like(a_type) else []


def _text_fields(values: pa.Array) -> dict[int, pa.Array]:
    """Return the texts behind the words that are hashes, by word."""
    a_type = values.type
    if pa.types.is_struct(a_type):
        found: dict[int, pa.Array] = {}
        word = 1
        for child in values.flatten():  # NULL where the struct is, whatever the field says
            for inner, text in _text_fields(child).items():
                found[word + inner] = text
            word += _count(child.type)
        return found
    return {0: values} if is_text_like(a_type) else {}


def _words(values: pa.Array) -> list[npt.NDArray[np.int64]]:
    a_type = values.type
    if pa.types.is_struct(a_type):
        return _struct_words(values)
    if is_text_like(a_type):
        return [np.zeros(len(values), np.int64)]  # the hashes come with the texts
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
