"""Parts of aggregates put together: rows that agree in some keys become one.

Most parts are sums and extremes, which Arrow puts together. Sets of values and central moments,
which it does not know, are put together here, by the numbers of the groups that it has found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.standing.engine.aggregation.aggregate_functions import MEAN, PARTS, SQUARES

_ROW: Final = "row"


def put_together(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return parts of aggregates with a row for each distinct tuple of keys."""
    values = [name for name in rows.column_names if name not in keys]
    operations = [(name, how) for name in values if (how := PARTS.get(_last_word(name)))]
    others = [name for name in values if _last_word(name) not in PARTS]
    if others:
        numbered = rows.append_column(_ROW, pa.array(np.arange(len(rows))))
        groups = numbered.group_by(list(keys), use_threads=False)
        groups = groups.aggregate([*operations, (_ROW, "list")])
        members = groups.column(f"{_ROW}_list").combine_chunks()
        of_rows = np.empty(len(rows), np.int64)
        of_rows[members.flatten().to_numpy()] = pc.list_parent_indices(members).to_numpy()
    else:
        groups = rows.group_by(list(keys), use_threads=False).aggregate(operations)
    by_name = {
        **{key: groups.column(key) for key in keys},
        **{name: groups.column(f"{name}_{how}") for name, how in operations},
    }
    for name in others:
        match _last_word(name):
            case "set":
                by_name[name] = _united(rows.column(name), of_rows, len(groups))
            case "squares":
                label = name.removesuffix(SQUARES)
                by_name |= dict(_moments(rows, label, of_rows, len(groups)))
    table = pa.table({name: by_name[name] for name in [*keys, *values]})
    return table.cast(_summed_as(rows.schema, table.schema)).combine_chunks()


def _distinct_by_group(
    groups: npt.NDArray[np.int64], values: pa.Array, number: int
) -> pa.ListArray:
    """Return for each of so many groups its distinct values; of NULL there is none."""
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


def _moments(
    rows: pa.Table, label: str, of_rows: npt.NDArray[np.int64], groups: int
) -> Iterator[tuple[str, pa.Array]]:
    """Yield means, and sums of squared distances from these, by group (Chan and others, 1979)."""
    count, mean, squares = (
        rows.column(f"{label}{part}").combine_chunks().cast(pa.float64()).fill_null(0.0).to_numpy()
        for part in (" rows", MEAN, SQUARES)
    )
    every = np.bincount(of_rows, count, groups)
    with np.errstate(invalid="ignore"):  # infinite values, whose distance is unknown, as in Spark
        sums = np.bincount(of_rows, np.where(count > 0, count * mean, 0.0), groups)
        means = np.divide(sums, every, out=np.zeros(groups), where=every > 0)
        apart = np.where(count > 0, count * (mean - means[of_rows]) ** 2, 0.0)
    yield f"{label}{MEAN}", pa.array(means)
    yield f"{label}{SQUARES}", pa.array(np.bincount(of_rows, squares + apart, groups))


def _last_word(name: str) -> str:
    return name.rsplit(" ", maxsplit=1)[-1]


def _summed_as(before: pa.Schema, after: pa.Schema) -> pa.Schema:
    """Return the schema of sums in the types of what was summed."""
    return pa.schema([before.field(field.name) for field in after])
