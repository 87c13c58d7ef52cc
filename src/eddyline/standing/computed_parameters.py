"""Computed parameters: what Spark makes of ``:markers`` alone, once, when queries are added.

``message ILIKE :pattern`` compares with ``lower(:pattern)``, and people write ``concat('%', :word,
'%')``. What Eddyline does not evaluate of that has a value for each row of parameters, which Spark
computes; from then on it is a parameter like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type, spark_type
from eddyline.catalyst import CatalystExpression
from eddyline.errors import NotShareableError
from eddyline.host.classic import classic
from eddyline.standing.query_template import QueryTemplate


class ComputedSource(NamedTuple):
    """A computed parameter in the JVM: over attributes that stand for parameters, by their names.

    ``type`` is Spark's as JSON.
    """

    expression: CatalystExpression
    type: str
    attributes: tuple[tuple[CatalystExpression, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that it is made of."""
        return tuple(sorted({name for _, name in self.attributes}))


def with_computed(
    spark: SparkSession,
    template: QueryTemplate,
    sources: Sequence[ComputedSource],
    table: pa.Table,
    names: Sequence[str],
) -> pa.Table:
    """Return the parameters of a template's queries with the computed ones after them.

    ``names`` are those of the queries, a row each. NotShareableError, with the query's name and in
    Spark's words, where computing a value raises.
    """
    kinds = [spark_type(kind) for _, kind in template.parameters]
    fields = [StructField(f"p{n}", kind) for n, kind in enumerate(kinds)]
    renamed = table.rename_columns([field.name for field in fields])
    places = {name: place for place, (name, _) in enumerate(template.parameters)}

    def computed(rows: pa.Table) -> pa.Table:
        frame = classic(spark.createDataFrame(rows, StructType(fields)))
        plan = catalyst.analyzed_plan(frame)
        columns = catalyst.outputs(plan)
        aliases = {
            catalyst.identity_number(attribute): catalyst.attribute_like(
                attribute, columns[places[name]]
            )
            for source in sources
            for attribute, name in source.attributes
        }
        plan = catalyst.projected([*columns, *aliases.values()], plan)
        values = [
            catalyst.named(source.expression, f"eddyline_computed_{n}")
            for n, source in enumerate(sources)
        ]
        return catalyst.dataframe_over(spark, catalyst.projected(values, plan)).toArrow()

    try:
        found = computed(renamed)
    except PySparkException as error:
        if len(table) == 1:
            told = str(error).strip().split("\n", 1)[0]
            raise NotShareableError(
                f"the parameters of {names[0]} give no value: {told}: {template.sql}"
            ) from error
        half = len(table) // 2
        parts = [
            with_computed(spark, template, sources, table.slice(*part), names[part[0] :])
            for part in ((0, half), (half, len(table) - half))
        ]
        return pa.concat_tables(parts)
    for source, name in zip(sources, found.column_names, strict=True):
        kind = arrow_type(source.type, template.settings.time_zone)
        table = table.append_column(name, found[name].cast(kind))
    return table
