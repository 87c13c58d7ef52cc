"""Types as Spark's columns have them in Arrow, nested ones among them, and arrays of them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

FLAT: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 0, 127],
    pa.int16(): [-(2**15), 0, 300],
    pa.int32(): [-1, 0, 2**31 - 1],
    pa.int64(): [-(2**63), 0, 7],
    pa.float32(): [0.0, -0.0, 1.5, math.nan, -math.inf],
    pa.float64(): [0.0, -0.0, 1e-300, math.nan, math.inf],
    pa.decimal128(5, 2): [decimal.Decimal("1.50"), decimal.Decimal("-0.25")],
    pa.decimal128(38, 10): [decimal.Decimal(1), decimal.Decimal("1e20")],
    pa.string(): ["", "a", "ü%", "sixteen letters!"],
    pa.binary(): [b"", b"\0", b"sixteen letters!"],
    pa.date32(): [dt.date(1, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): [0, -1],
    pa.timestamp("us", "Europe/Paris"): [0, 1_700_000_000_000_000],
    pa.timestamp("us"): [0, -(2**40)],
}
NAMES = ("a", "A", "a.b", " ", "", "ü", "key", "item")


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    """Return lists, maps and structs of some types, structs without fields among them."""

    def struct(kinds: list[pa.DataType], nullable: list[bool]) -> pa.DataType:
        labels = zip(NAMES, kinds, nullable, strict=False)
        return pa.struct([pa.field(name, kind, null) for name, kind, null in labels])

    flags = st.lists(st.booleans(), min_size=3, max_size=3)
    return st.one_of(
        st.builds(struct, st.lists(inner, max_size=3), flags),
        st.builds(
            lambda kind, null: pa.list_(pa.field("element", kind, null)), inner, st.booleans()
        ),
        st.builds(
            lambda key, kind, null: pa.map_(key, pa.field("value", kind, null)),
            st.sampled_from([pa.string(), pa.int32()]),
            inner,
            st.booleans(),
        ),
    )


flat_types = st.sampled_from(list(FLAT))
types = st.recursive(flat_types, nested, max_leaves=4)


def values_of(kind: pa.DataType, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Return values of a type, NULL among them where that is allowed."""
    whole = _valid_values(kind)
    return st.one_of(st.none(), whole, whole, whole) if nullable else whole


def _valid_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        fields = {field.name: values_of(field.type, nullable=field.nullable) for field in kind}
        return st.fixed_dictionaries(fields)
    if pa.types.is_map(kind):
        item = kind.item_field
        entry = st.tuples(
            values_of(kind.key_type, nullable=False), values_of(item.type, nullable=item.nullable)
        )
        return st.lists(entry, max_size=2)
    if pa.types.is_list(kind):
        field = kind.value_field
        return st.lists(values_of(field.type, nullable=field.nullable), max_size=2)
    return st.sampled_from(FLAT[kind])


@st.composite
def arrays(draw: st.DrawFn, kind: pa.DataType, rows: int) -> pa.Array:
    """Return columns of a type: cut out of longer ones, with NULLs put in as a join does it."""
    some = values_of(kind)
    values = draw(st.lists(some, min_size=rows + 2, max_size=rows + 2))
    column = pa.array(values, kind).slice(1, rows)
    places = draw(st.lists(st.one_of(st.none(), st.integers(0, rows - 1)), min_size=rows))
    taken = column.take(pa.array(places[:rows], pa.int64()))
    return draw(st.sampled_from([column, taken]))
