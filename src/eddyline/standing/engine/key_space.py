"""The values of an attribute as whole numbers in their order, so that one kernel serves all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.engine.storage.ordered_index import order_words
from eddyline.expressions import is_text
from eddyline.standing.engine.ranges import Key, Position, Range, ordered_key

NULL_WORD: Final = np.iinfo(np.int64).min
"""Stands for NULL."""

LEAST: Final = NULL_WORD + 1
GREATEST: Final = np.iinfo(np.int64).max


class Bounds(NamedTuple):
    """The least and the greatest word of ranges, one each."""

    least: npt.NDArray[np.int64]
    greatest: npt.NDArray[np.int64]


class KeySpace(Protocol):
    """Turns values, and the ranges of predicates over them, into words."""

    def fits(self, ranges: Iterable[Range]) -> bool:
        """Tell whether further ranges can be told apart by the same words."""
        ...

    def words(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Return one word a value; :data:`NULL_WORD` for NULL."""
        ...

    def bounds(self, ranges: Sequence[Range]) -> Bounds:
        """Return the least and the greatest word of each range; it is empty if these cross."""
        ...


def key_space(a_type: pa.DataType, ranges: Iterable[Range]) -> KeySpace:
    """Return words for an attribute that is compared by these ranges and no others."""
    if _is_number(a_type):
        numbers = Numbers(a_type)
        if numbers.fits(ranges):
            return numbers
    return Places(a_type, _keys(ranges))


class Numbers:
    """Numbers, dates and times by their value."""

    def __init__(self, a_type: pa.DataType) -> None:
        self._type = a_type

    def fits(self, ranges: Iterable[Range]) -> bool:
        """Tell whether there are words just beside each constant too."""
        positions = [position for r in ranges for position in (r.lower, r.upper) if position]
        words = self._of_positions(positions)
        return bool(np.all((words > LEAST) & (words < GREATEST)))

    def words(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Return one word a value."""
        words = np.maximum(self._of(values), LEAST)
        if values.null_count:
            words[pc.is_null(values).to_numpy(zero_copy_only=False)] = NULL_WORD
        return words

    def bounds(self, ranges: Sequence[Range]) -> Bounds:
        """Return the least and the greatest word of each range."""
        return _bounds(ranges, self._of_positions)

    def _of_positions(self, positions: Sequence[Position]) -> npt.NDArray[np.int64]:
        if pa.types.is_floating(self._type):
            values = [np.nan if key[0] else key[1] for key, _ in positions]
        else:
            values = [key for key, _ in positions]
        return self._of(pa.array(values, self._type))

    def _of(self, values: pa.Array) -> npt.NDArray[np.int64]:
        return order_words(values.cast(pa.int8()) if self._type == pa.bool_() else values)


class Places:
    """Values of any type that has an order, by their place among the constants.

    Constant number i has the word 2i + 1, and what lies between it and the next 2i + 2. Each
    distinct value of a vector is looked for once.
    """

    def __init__(self, a_type: pa.DataType, keys: Iterable[Key]) -> None:
        self._type = a_type
        self._keys: Sequence[Key] = sorted(keys)

    def fits(self, ranges: Iterable[Range]) -> bool:
        """Tell whether there are no other constants in these."""
        return all(self._word(key) & 1 for key in _keys(ranges))

    def words(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Return one word a value."""
        if not self._keys:  # then NULLs are asked for alone, of values that may have no order
            return np.where(pc.is_null(values), NULL_WORD, 0)
        encoded = values.dictionary_encode()
        distinct = encoded.dictionary
        if is_text(self._type):  # which is compared by its bytes, and may be malformed
            wide = pa.types.is_large_string(self._type)
            distinct = distinct.cast(pa.large_binary() if wide else pa.binary())
        known = [self._word(ordered_key(value, self._type)) for value in distinct.to_pylist()]
        of_values = np.array([*known, NULL_WORD], np.int64)
        indices = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        words: npt.NDArray[np.int64] = of_values[indices]
        return words

    def bounds(self, ranges: Sequence[Range]) -> Bounds:
        """Return the least and the greatest word of each range."""
        words = {key: 2 * at + 1 for at, key in enumerate(self._keys)}
        return _bounds(ranges, lambda own: np.array([words[key] for key, _ in own], np.int64))

    def _word(self, key: Key) -> int:
        at = bisect_left(self._keys, key)
        return 2 * at + (at < len(self._keys) and self._keys[at] == key)


def _keys(ranges: Iterable[Range]) -> list[Key]:
    """Return the distinct constants of ranges."""
    return list(
        {position[0] for r in ranges for position in (r.lower, r.upper) if position is not None}
    )


def _bounds(
    ranges: Sequence[Range], words_of: Callable[[Sequence[Position]], npt.NDArray[np.int64]]
) -> Bounds:
    least = _side([range_.lower for range_ in ranges], LEAST, words_of)
    greatest = _side([range_.upper for range_ in ranges], GREATEST, words_of)
    null = np.array([range_.null for range_ in ranges], np.bool_)
    least[null] = greatest[null] = NULL_WORD
    return Bounds(least, greatest)


def _side(
    positions: Sequence[Position | None],
    unbounded: int,
    words_of: Callable[[Sequence[Position]], npt.NDArray[np.int64]],
) -> npt.NDArray[np.int64]:
    """Return the words of positions, and of those that are None what stands for no bound."""
    some = [position for position in positions if position is not None]
    words = words_of(some) + np.array([step for _, step in some], np.int64)
    if len(some) == len(positions):
        return words
    every = np.full(len(positions), unbounded, np.int64)
    every[[position is not None for position in positions]] = words
    return every


def _is_number(a_type: pa.DataType) -> bool:
    """Tell whether values of a type are 64-bit words already."""
    types = pa.types
    tests = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_date,
        types.is_timestamp,
        types.is_duration,
    )
    return any(test(a_type) for test in tests)
