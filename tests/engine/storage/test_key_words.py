"""Words of keys: equal keys give equal words, and what only looks equal is found out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.ordered_index import OrderColumn
from eddyline.engine.storage.text_kernels import SHORT_TEXT
from eddyline.errors import EddylineError, UnsupportedKeyError
from eddyline.expressions.value_types import MOST_FIELDS, is_joinable, is_ordered
from tests.keys import (
    ORDERED,
    TYPES,
    VALUES,
    colliding,
    columns_of,
    same,
    sliced,
    with_rubbish,
)


def key_column(a_type: pa.DataType, *parts: pa.Array) -> KeyColumn:
    column = KeyColumn(a_type)
    for part in parts:
        column.append(part)
    return column


def equal_words(
    left: KeyColumn, right: KeyColumn, places: tuple[int, int], *, confirmed: bool = True
) -> bool:
    """Tell whether two places have a key each, with equal words, and equal texts behind them."""
    pairs = ((left, places[0]), (right, places[1]))
    if any(column.valid is not None and not column.valid[place] for column, place in pairs):
        return False
    if [word[places[0]] for word in left.words] != [word[places[1]] for word in right.words]:
        return False
    equal = np.ones(1, np.bool_)
    if confirmed:
        at = np.array([places[0]])
        left.confirm(right, at, np.array([0]), np.array([places[1]]), equal)
    return bool(equal[0])


@given(data=st.data())
def test_words_are_equal_where_keys_are(data: st.DataObject) -> None:
    a_type = data.draw(TYPES)
    left, right = data.draw(columns_of(a_type, 12)), data.draw(columns_of(a_type, 12))
    cut = data.draw(st.integers(0, len(left)))
    one = key_column(a_type, sliced(left[:cut], a_type, cut % 3), with_rubbish(left[cut:], a_type))
    other = key_column(a_type, with_rubbish(right, a_type))
    dropped = data.draw(st.integers(0, len(left)))
    one.drop_first(dropped)
    one.append(sliced(right, a_type, 1))
    left = left[dropped:] + right
    for i, value in enumerate(left):
        for j, compared in enumerate(right):
            assert equal_words(one, other, (i, j)) == same(value, compared), (value, compared)
            # Where words are hashes, they may agree by chance; here nobody is so unlucky.
            assert equal_words(one, other, (i, j), confirmed=False) == same(value, compared)


def test_only_long_texts_need_confirmation() -> None:
    for a_type, values in VALUES.items():
        longest = max((len(text) for value in values for text in _texts_in(value)), default=0)
        assert key_column(a_type, pa.array(values, a_type)).hashed == (longest > SHORT_TEXT)


def _texts_in(value: object) -> Iterator[bytes]:
    if isinstance(value, str):
        yield value.encode()
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for field in value.values():
            yield from _texts_in(field)


@pytest.mark.parametrize("size", range(20))
def test_words_of_texts_of_every_size(size: int) -> None:
    """Also where a zero byte is all that tells them apart, and at the end of their memory."""
    text = bytes(range(1, size + 1))
    others = [text + b"\0", text[:-1], b"\0" * size, text[:-1] + b"\xff", text + text]
    column = key_column(pa.binary(), pa.array([text, *others]))
    alone = key_column(pa.binary(), pa.array([text]))
    assert equal_words(alone, column, (0, 0))
    for n, other in enumerate(others, 1):
        assert equal_words(alone, column, (0, n)) == (text == other)


def test_long_texts_that_come_late_are_kept() -> None:
    """And those that are left when the oldest have gone."""
    texts = [b"short", *colliding(3), b"", *colliding(2)]
    column = key_column(pa.binary(), pa.array(texts[:1]))
    hashed = [column.hashed]
    column.append(pa.array(texts[1:]))
    assert [*hashed, column.hashed] == [False, True]
    for dropped in range(len(texts)):
        left = texts[dropped:]
        for i, one in enumerate(left):
            for j, other in enumerate(left):
                assert equal_words(column, column, (i, j)) == (one == other)
        column.drop_first(1)


@pytest.mark.parametrize("a_type", [pa.binary(), pa.struct([("n", pa.int8()), ("b", pa.binary())])])
def test_texts_of_one_hash_are_told_apart(a_type: pa.DataType) -> None:
    texts: list[Any] = [*colliding(4), b"another"]
    if pa.types.is_struct(a_type):
        texts = [{"n": 1, "b": text} for text in texts]
    column = key_column(a_type, pa.array(texts, a_type))
    assert len({word[:4].tobytes() for word in column.words}) == len(column.words)
    assert all((word[:4] == word[0]).all() for word in column.words)
    assert any(word[4] != word[0] for word in column.words)
    for i in range(4):
        for j in range(4):
            assert equal_words(column, column, (i, j)) == (i == j)


def test_null_is_no_key_but_a_null_field_is() -> None:
    a_type = pa.struct([("i", pa.int32()), ("s", pa.string())])
    values = [None, {"i": None, "s": None}, {"i": 0, "s": ""}, {"i": None, "s": ""}]
    column = key_column(a_type, with_rubbish(values, a_type), with_rubbish(values, a_type))
    assert column.valid is not None
    assert column.valid.tolist() == [False, True, True, True] * 2
    for i in range(8):
        for j in range(8):
            assert equal_words(column, column, (i, j)) == (i % 4 == j % 4 != 0)


def test_a_column_without_nulls_keeps_no_flags() -> None:
    whole = pa.array([1, 2])
    assert key_column(pa.int64(), whole).valid is None
    column = key_column(pa.int64(), whole, pa.array([None], pa.int64()))
    assert column.valid is not None
    assert column.valid.tolist() == [True, True, False]


@pytest.mark.parametrize("a_type", [pa.list_(pa.int32()), pa.uint8(), pa.decimal256(50, 2)])
def test_a_type_without_words_is_refused(a_type: pa.DataType) -> None:
    assert not is_joinable(a_type)
    assert not is_joinable(pa.struct([("inside", a_type)]))
    with pytest.raises(UnsupportedKeyError, match="cannot join on values of type") as refused:
        KeyColumn(a_type)
    assert isinstance(refused.value, EddylineError)
    assert isinstance(refused.value, TypeError)


def test_one_word_tells_which_fields_are_null() -> None:
    def struct(fields: int) -> pa.DataType:
        return pa.struct([(str(n), pa.bool_()) for n in range(fields)])

    widest = struct(MOST_FIELDS)
    names = [field.name for field in widest]
    rows = [dict.fromkeys(names, False) | ({name: None} if name else {}) for name in ["", *names]]
    column = key_column(widest, pa.array(rows, widest))
    assert len(set(zip(*(word.tolist() for word in column.words), strict=True))) == len(rows)
    assert not is_joinable(struct(MOST_FIELDS + 1))


@pytest.mark.parametrize("width", [32, 64])
def test_every_nan_is_nan(width: int) -> None:
    quiet = np.array([np.nan, -np.nan], f"f{width // 8}")
    loud = quiet.view(f"i{width // 8}") | 5  # what else stands in its bits
    values = pa.array(np.concatenate([quiet, loud.view(quiet.dtype)]))
    (words,) = key_column(values.type, values).words
    assert len(set(words.tolist())) == 1
    order = OrderColumn()
    order.append(pa.concat_arrays([values, pa.array([np.inf], values.type)]))
    *nans, infinity = order.words.tolist()
    assert len(set(nans)) == 1
    assert nans[0] > infinity


def test_what_is_ordered_can_be_joined_on() -> None:
    assert all(is_joinable(a_type) for a_type in VALUES)
    assert [a_type for a_type in VALUES if is_ordered(a_type)] == list(ORDERED)


def test_words_of_nothing() -> None:
    for a_type in VALUES:
        column = key_column(a_type, pa.array([], a_type))
        lengths: list[npt.NDArray[np.int64]] = list(column.words)
        assert not any(map(len, lengths))
        assert column.nbytes >= 0
