"""Keys of arguments are equal exactly where a function could not tell the arguments apart."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.functions import argument_keys
from eddyline.engine.functions.argument_keys import keys_of

_VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1],
    pa.int8(): [0, 1, -128],
    pa.float64(): [0.0, -0.0, float("nan"), 1.5],
    pa.float32(): [0.0, -0.0, float("nan")],
    pa.string(): ["", "a", "b", "ab", "\0", "e\u0301", "é"],
    pa.binary(): [b"", b"\0", b"a", b"\0\0"],
    pa.bool_(): [True, False],
    pa.decimal128(30, 2): [decimal.Decimal("0.00"), decimal.Decimal("-123456789012345678901.00")],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2020, 2, 29)],
    pa.timestamp("us", "UTC"): [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
}

TYPES = st.recursive(
    st.sampled_from(list(_VALUES)),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"f{n}", each) for n, each in enumerate(types)])
        ),
        inner.map(lambda item: pa.map_(pa.string(), item)),
    ),
    max_leaves=4,
)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    some: st.SearchStrategy[Any]
    if pa.types.is_list(kind):
        some = st.lists(values_of(kind.value_type), max_size=2)
    elif pa.types.is_map(kind):
        pairs = st.tuples(st.sampled_from("ab"), values_of(kind.item_type))
        some = st.lists(pairs, max_size=2)
    elif pa.types.is_struct(kind):
        some = st.fixed_dictionaries({each.name: values_of(each.type) for each in kind})
    else:
        some = st.sampled_from(_VALUES[kind])
    return st.none() | some


def seen(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return what a function can tell of a value."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return tuple(sorted((name, seen(each)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return [seen(each) for each in value]
    return (type(value), value)


@given(data=st.data())
def test_keys_are_equal_exactly_where_arguments_are(data: st.DataObject) -> None:
    types = data.draw(st.lists(TYPES, max_size=3))
    rows, skipped = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 2))
    drawn = [
        data.draw(st.lists(values_of(kind), min_size=rows + skipped, max_size=rows + skipped))
        for kind in types
    ]
    columns = [
        pa.array(values, type=kind).slice(skipped)
        for kind, values in zip(types, drawn, strict=True)
    ]
    keys = keys_of(columns, rows)
    assert keys is not None
    assert len(keys) == rows
    codes = keys.dictionary_encode(null_encoding="encode").indices.to_pylist()
    bare = keys.to_pylist()
    arguments = [[str(seen(values[skipped + row])) for values in drawn] for row in range(rows)]
    for one in range(rows):
        for other in range(one):
            same = arguments[one] == arguments[other]
            assert (codes[one] == codes[other]) == same
            assert (bare[one] == bare[other]) == same  # also from one visit to the next


def test_more_columns_than_a_word_has_flags_are_told_apart() -> None:
    for missing in (0, 62, 63, 64, 129):
        columns = [
            pa.array([0, None if number == missing else 0], pa.int32()) for number in range(130)
        ]
        keys = keys_of(columns, 2)
        assert keys is not None
        assert keys[0] != keys[1]


def test_texts_of_two_columns_do_not_run_into_each_other() -> None:
    keys = keys_of([pa.array(["ab", "a"]), pa.array(["c", "bc"])], 2)
    assert keys is not None
    assert keys[0] != keys[1]


def test_payloads_of_nan_are_told_apart() -> None:
    bits = pa.array([0x7FF8000000000000, 0x7FF8000000000001], pa.int64())
    keys = keys_of([bits.view(pa.float64())], 2)
    assert keys is not None
    assert keys[0] != keys[1]


def test_what_is_too_large_to_be_packed_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argument_keys, "LARGEST", 10)
    columns = [pa.array(["abc", "def"]), pa.array([1, 2])]
    assert keys_of(columns, 2) is None
    assert keys_of(columns[:1], 2) is not None  # is its own key
