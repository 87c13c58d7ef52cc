"""Parts of aggregates put together: rows that agree in some keys become one.

Most parts are sums and extremes, which Arrow puts together. Sets and bags of values, central
moments and values of chosen rows, which it does not know, are put together here, by the numbers
of the groups that it has found. Keys that it does not group by, structs and lists, are numbered
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.standing.engine.aggregation import central_moments
from eddyline.standing.engine.aggregation.aggregate_functions import (
    BITS,
    CHOOSING,
    PARTS,
    AggregateFunction,
)
from eddyline.standing.engine.aggregation.alike_values import alike_numbers, ranks
from eddyline.standing.engine.aggregation.counted_values import joined_lists, united_bags

_ROW: Final = "row"


def put_together(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return parts of aggregates with a row for each distinct tuple of keys."""
    values = [name for name in rows.column_names if name not in keys]
    operations = [(name, how) for name in values if (how := PARTS.get(_last_word(name)))]
    others = [name for name in values if _last_word(name) not in PARTS]
    nested = {k: rows.column(k) for k in keys if pa.types.is_nested(rows.column(k).type)}
    numbered = rows
    for key, column in nested.items():
        numbers = pa.array(alike_numbers(column.combine_chunks()))
        numbered = numbered.set_column(numbered.column_names.index(key), key, numbers)
    of_rows = firsts = np.empty(0, np.int64)
    if others or nested:
        numbered = numbered.append_column(_ROW, pa.array(np.arange(len(rows))))
        groups = numbered.group_by(list(keys), use_threads=False)
        groups = groups.aggregate([*operations, (_ROW, "list")])
        members = groups.column(f"{_ROW}_list").combine_chunks()
        of_rows = np.empty(len(rows), np.int64)
        of_rows[members.flatten().to_numpy()] = pc.list_parent_indices(members).to_numpy()
        firsts = members.flatten().to_numpy()[members.offsets.to_numpy()[:-1]]
    else:
        groups = rows.group_by(list(keys), use_threads=False).aggregate(operations)
    by_name = {
        **{key: groups.column(key) for key in keys},
        **{key: column.take(pa.array(firsts)) for key, column in nested.items()},
        **{name: groups.column(f"{name}_{how}") for name, how in operations},
    }
    for name in others:
        by_name |= _put_together(rows, name, of_rows, len(groups))
    table = pa.table({name: by_name[name] for name in [*keys, *values]})
    return table.cast(_summed_as(rows.schema, table.schema)).combine_chunks()


def _put_together(  # noqa: PLR0911 - a line for each kind
    rows: pa.Table, name: str, of_rows: npt.NDArray[np.int64], groups: int
) -> dict[str, pa.Array]:
    """Return a part that Arrow does not put together, with others that belong to it."""
    word = _last_word(name)
    label = name.removesuffix(f" {word}")
    if word in BITS:
        return {name: _bits(AggregateFunction(word), rows.column(name), of_rows, groups)}
    if word in CHOOSING:
        return dict(_chosen(AggregateFunction(word), rows, label, of_rows, groups))
    match word:
        case "set":
            return {name: _united(rows.column(name), of_rows, groups)}
        case "bag":
            return {name: united_bags(rows.column(name).combine_chunks(), of_rows, groups)}
        case "list":
            return {name: joined_lists(rows.column(name).combine_chunks(), of_rows, groups)}
        case central_moments.SQUARES:
            return dict(central_moments.put_together(rows, label, of_rows, groups))
    return {}  # it came, or comes, with another


def _bits(
    function: AggregateFunction,
    column: pa.ChunkedArray,
    of_rows: npt.NDArray[np.int64],
    groups: int,
) -> pa.Array:
    nothing = BITS[function]
    bits = np.full(groups, nothing, np.int64)
    _BITWISE[function].at(bits, of_rows, column.combine_chunks().fill_null(nothing).to_numpy())
    return pa.array(bits)


_BITWISE: Final = {
    AggregateFunction.BIT_AND: np.bitwise_and,
    AggregateFunction.BIT_OR: np.bitwise_or,
    AggregateFunction.BIT_XOR: np.bitwise_xor,
}


def _chosen(
    function: AggregateFunction,
    rows: pa.Table,
    label: str,
    of_rows: npt.NDArray[np.int64],
    groups: int,
) -> Iterator[tuple[str, pa.Array]]:
    """Yield the value, and what it is chosen by, of one row of each group.

    Of several with the greatest it is the one with the least value: not by chance.
    """
    values, by = (
        rows.column(f"{label} {part}").combine_chunks() for part in ("value", function.value)
    )
    places = ranks(by)
    missing = by.is_null().to_numpy(zero_copy_only=False)
    falling = function is AggregateFunction.MAX_BY
    order = np.lexsort((ranks(values), -places if falling else places, missing, of_rows))
    some, first = np.unique(of_rows[order], return_index=True)
    chosen = np.zeros(groups, np.int64)
    chosen[some] = order[first]
    yield f"{label} value", values.take(pa.array(chosen))
    yield f"{label} {function.value}", by.take(pa.array(chosen))


def _distinct_by_group(
    groups: npt.NDArray[np.int64], values: pa.Array, number: int
) -> pa.ListArray:
    """Return for each of so many groups its distinct values; of NULL there is none."""
    if pa.types.is_nested(values.type):
        numbers = alike_numbers(values)
        keys = groups * (int(numbers.max(initial=0)) + 1) + numbers
        _, firsts = np.unique(keys, return_index=True)
        firsts = firsts[values.is_valid().to_numpy(zero_copy_only=False)[firsts]]
        ends = np.cumsum(np.bincount(groups[firsts], minlength=number))
        starts = np.concatenate(([0], ends)).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(starts), values.take(pa.array(firsts)))
    pairs = pa.table({"group": groups, "value": values}).filter(values.is_valid())
    distinct = pairs.group_by(["group", "value"], use_threads=False).aggregate([])
    of_values = distinct.column("group").to_numpy()
    order = np.argsort(of_values, kind="stable")
    ends = np.cumsum(np.bincount(of_values, minlength=number))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    sorted_values = distinct.column("value").combine_chunks().take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(offsets), sorted_values)


def _united(sets: pa.ChunkedArray, of_rows: npt.NDArray[np.int64], groups: int) -> pa.ListArray:
    """Return the unions of sets by group."""
    lists = sets.combine_chunks()
    parents = of_rows[pc.list_parent_indices(lists).to_numpy()]
    return _distinct_by_group(parents, lists.flatten(), groups)


def _last_word(name: str) -> str:
    return name.rsplit(" ", maxsplit=1)[-1]


def _summed_as(before: pa.Schema, after: pa.Schema) -> pa.Schema:
    """Return the schema of sums in the types of what was summed."""
    return pa.schema([before.field(field.name) for field in after])
