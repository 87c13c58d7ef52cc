"""The parameters of a template's queries, as a table of values that Spark would send."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, types
from pyspark.sql.pandas.types import from_arrow_schema

from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.errors import NotShareableError
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.tasks.shown_values import values_of


def as_table(parameters: object, time_zone: str) -> pa.Table:
    """Return a pandas or Spark DataFrame, or an Arrow table, as the last; TypeError for others.

    Times of pandas without a zone are in ``time_zone``, as in Spark's ``createDataFrame``.
    """
    if isinstance(parameters, pa.Table):
        return parameters
    if isinstance(parameters, DataFrame):
        return parameters.toArrow()
    if not isinstance(parameters, pd.DataFrame):
        raise TypeError(
            f"parameters are a DataFrame or an Arrow table, not {type(parameters).__name__}"
        )
    local = {
        str(name): column.dt.tz_localize(time_zone, ambiguous=False, nonexistent="shift_forward")
        for name, column in parameters.items()
        if pd.api.types.is_datetime64_dtype(column.dtype)
    }
    return pa.Table.from_pandas(parameters.assign(**local), preserve_index=False)


def kinds_of(table: pa.Table) -> dict[str, types.DataType]:
    """Return the types of a table's columns in Spark."""
    # Said, as up to some version PySpark takes times without a zone for instants by default.
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return {field.name: field.dataType for field in schema.fields}


def as_sent(table: pa.Table, kinds: Mapping[str, types.DataType], time_zone: str) -> pa.Table:
    """Return a table with its columns as Spark sends values of these types.

    The part of a time that is finer than a microsecond is cut. A column that cannot travel stays
    as it is: the code that needs it says so.
    """
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = kinds[name].json()
        columns.append(_sent(column, kind, time_zone) if can_travel(kind) else column)
    return pa.table(columns, table.column_names)


def check_shown(template: QueryTemplate, parameters: pa.Table) -> None:
    """Raise NotShareableError where parameters in the SELECT list cannot come back as they are."""
    for shown in template.shown:
        try:
            values_of(shown, parameters)
        except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            name, _ = template.parameters[shown.parameter]
            raise NotShareableError(
                f"the parameter {name} in the SELECT list cannot be sent: {error}: {template.sql}"
            ) from error


def _sent(column: pa.ChunkedArray, kind: str, time_zone: str) -> pa.ChunkedArray:
    wanted = arrow_type(kind, time_zone)
    column_type = column.type
    if column_type == wanted or pa.types.is_nested(column_type):
        return column
    # Plain Spark takes no notice of what is finer than a microsecond.
    return column.cast(wanted, safe=not pa.types.is_timestamp(column_type))
