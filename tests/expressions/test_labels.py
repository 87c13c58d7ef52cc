"""Values under other labels: the same ones, whatever may be NULL and whatever fields are called."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.expressions.value_types import relabelled, same_but_for_labels
from tests.nested_types import arrays, types


def with_labels(kind: pa.DataType, prefix: str, *, nullable: bool) -> pa.DataType:
    """Return a type with other names of fields, all of which may be NULL, or none."""

    def field(name: str, inner: pa.DataType) -> pa.Field:
        return pa.field(prefix + name, with_labels(inner, prefix, nullable=nullable), nullable)

    if pa.types.is_struct(kind):
        return pa.struct([field(inner.name, inner.type) for inner in kind])
    if pa.types.is_map(kind):
        key = pa.field("key", with_labels(kind.key_type, prefix, nullable=nullable), nullable=False)
        return pa.map_(key, field("value", kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(field("element", kind.value_type))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", "Asia/Tokyo")
    return kind


@given(data=st.data(), nullable=st.booleans())
def test_labels_change_nothing_else(data: st.DataObject, nullable: bool) -> None:  # noqa: FBT001 - drawn
    kind = data.draw(types)
    values = data.draw(arrays(kind, 5))
    other = with_labels(kind, "x", nullable=nullable)
    found = relabelled(values, other)
    assert found.type == other
    assert same(relabelled(found, kind), values)
    cut = found.slice(2)
    assert same(relabelled(cut, kind), values.slice(2))
    doubled = pa.concat_arrays([cut, found]).take(pa.array([0, 7, 3]))
    assert same(relabelled(doubled, kind), values.take(pa.array([2, 4, 0])))


def same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays hold the same, NaN being equal to itself and -0.0 not to 0.0."""
    return one.type == other.type and repr(one.to_pylist()) == repr(other.to_pylist())


@given(kind=types, data=st.data())
def test_what_has_the_labels_is_handed_on(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(arrays(kind, 3))
    assert relabelled(values, kind) is values


def test_null_is_right_below_a_null_struct() -> None:
    """Arrow's cast takes it for a NULL in a field that must not be."""
    whole = pa.array([{"a": 1}, {"a": 2}]).take(pa.array([1, None]))
    declared = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        whole.cast(declared)
    found = relabelled(whole, declared)
    assert found.type == declared
    assert found.to_pylist() == [{"a": 2}, None]


@pytest.mark.parametrize(
    ("found", "declared"),
    [
        (pa.struct([("a", pa.int64())]), pa.int64()),
        (pa.struct([("a", pa.int64())]), pa.struct([])),
        (pa.struct([("a", pa.int64())]), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.list_(pa.int64()), pa.large_list(pa.int64())),
        (pa.list_(pa.int64()), pa.list_(pa.struct([]))),
        (pa.int64(), pa.struct([])),
    ],
    ids=str,
)
def test_other_values_are_not_taken_for_them(found: pa.DataType, declared: pa.DataType) -> None:
    with pytest.raises(TypeError, match="under other labels"):
        relabelled(pa.nulls(2, found), declared)


@given(kind=types)
def test_structs_are_compared_whatever_their_labels(kind: pa.DataType) -> None:
    whole = pa.struct([pa.field("a", kind, nullable=False), pa.field("b", pa.int8())])
    other = pa.struct([pa.field("A", kind), pa.field("", pa.int8(), nullable=False)])
    assert same_but_for_labels(whole, other)
    assert same_but_for_labels(pa.struct([("v", whole)]), pa.struct([("w", other)]))
    assert not same_but_for_labels(whole, pa.struct([("a", kind)]))
    assert not same_but_for_labels(whole, pa.struct([("a", kind), ("b", pa.int16())]))
    assert not same_but_for_labels(whole, kind)
