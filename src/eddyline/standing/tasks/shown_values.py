"""The values of parameters in SELECT lists, by the numbers of queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.blocks.column_types import returned_type, spark_type
from eddyline.expressions.value_types import relabelled
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_template import ShownParameter


def values_of(shown: ShownParameter, parameters: pa.Table) -> pa.Array:
    """Return a column of parameters in the type in which Spark takes it.

    TypeError, or Arrow's own, where it cannot.
    """
    column = parameters.column(shown.parameter).combine_chunks()
    return relabelled(column, returned_type(spark_type(shown.type)))


def shown_values(queries: Iterable[StandingQuery], count: int) -> dict[str, pa.Array]:
    """Return for each column that parameters travel in its value for each of ``count`` numbers.

    NULL for a query that shows nothing in it. Takes a microsecond a query.
    """
    groups: dict[int, list[StandingQuery]] = {}
    for query in queries:
        if query.template.shown:
            groups.setdefault(id(query.group), []).append(query)
    parts: dict[str, list[pa.Array]] = {}
    places: dict[str, npt.NDArray[np.int64]] = {}
    for members in groups.values():
        group = members[0].group
        numbers = np.array([query.number for query in members])
        positions = pa.array([query.position for query in members])
        for shown in group.template.shown:
            values = values_of(shown, group.parameters)
            before = parts.setdefault(shown.column, [])
            place = places.setdefault(shown.column, np.full(count, -1, np.int64))
            place[numbers] = sum(map(len, before)) + np.arange(len(members))
            before.append(values.take(positions))
    return {
        column: pa.concat_arrays(before).take(pa.array(places[column], mask=places[column] < 0))
        for column, before in parts.items()
    }
