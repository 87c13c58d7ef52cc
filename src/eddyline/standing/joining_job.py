"""The streaming query of a job that joins or aggregates streams, and its micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from eddyline.blocks.column_types import (
    arrow_type,
    can_travel,
    returned_type,
    spark_type,
)
from eddyline.exchange.blobs import SCHEMA
from eddyline.host.classic import classic
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.quirks.numbered_partitions import repartitioned
from eddyline.standing.analysis import Analysis
from eddyline.standing.derived_plans import (
    DerivedByNumber,
    DerivedPlans,
    derived_in,
    names_with,
    types_with,
)
from eddyline.standing.log.batch_log import BatchRun
from eddyline.standing.log.engine_inputs import (
    Source,
    aggregated_column,
    aggregation_of,
    aggregations_in,
    columns_put_out,
)
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.log.rule_limits import NO_LIMITS, RuleLimits
from eddyline.standing.outputs import BatchResults, Readings, quoted, results, shown_columns
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.tasks.cell import RESULTS, Cell
from eddyline.standing.tasks.counts import CountsByBatch
from eddyline.standing.tasks.dealing import Dealing
from eddyline.standing.tasks.old_windows import OldWindows
from eddyline.standing.tasks.putting_out import PuttingOut
from eddyline.standing.tasks.sampled_rows import SAMPLE, SAMPLE_TYPE
from eddyline.standing.tasks.selecting import LAYOUT, QUERY
from eddyline.standing.tasks.sent_cell import SentCell
from eddyline.standing.time_bounds import event_time
from eddyline.standing.window_results import results_with_steps
from eddyline.tasks.our_functions import sent


class JoiningBatches:
    """Makes the streaming query of a job, and turns its micro-batches into results."""

    def __init__(
        self,
        analysis: Analysis,
        job: Job,
        schemas: Mapping[str, StructType],
        log: str,
        counts: Accumulator[CountsByBatch],
        tables: Sequence[str],
        cells: Sequence[int],
        *,
        remember: bool,
        samples: bool = False,
        limits: RuleLimits = NO_LIMITS,
    ) -> None:
        """Take the columns of streams and tables, where the queries are, and where tasks report.

        ``tables`` are the files with the rows of the job's tables; ``cells`` are numbers by which
        Spark sends groups to different tasks. With ``remember`` results of functions are kept.
        ``samples`` says whether rows may be dropped, ``limits`` what a query may take.
        """
        self._counts = counts
        self._job = job
        self._schemas = [schemas[name] for name in job.inputs]
        self._analysis = analysis
        self._derived: list[DerivedByNumber] = [{} for _ in job.streams]  # as the plan has them
        self._streams = JoinedStreams(
            log,
            job,
            tuple(
                tuple(_travelling(field, analysis.time_zone) for field in schema.fields)
                for schema in self._schemas
            ),
            tuple(event_time(schema) for schema in self._schemas),
            tuple(tables),
            tuple(cells),
            remember,
            samples,
            tuple(tuple(field.name for field in schema.fields) for schema in self._schemas),
            limits,
        )
        self._readings = Readings(analysis)
        self._time_zone = analysis.time_zone
        self._own_types = self._streams.types
        self._had: Sequence[StandingQuery] | None = None
        self.begins: Mapping[int, int] = {}
        """When the first window begins that a query sees here, by its number; for all others that
        is any."""

    def lacks(self, queries: Sequence[StandingQuery]) -> bool:
        """Tell whether queries ask about derived columns that the stream's plan does not compute.

        Takes a microsecond a query where the list is another one than the last time.
        """
        if queries is self._had:
            return False
        templates = {id(query.template): query.template for query in queries}.values()
        for name, known in zip(self._job.streams, self._derived, strict=True):
            if not derived_in(name, templates).keys() <= known.keys():
                return True
        self._had = queries
        return False

    def streaming(
        self, streams: Mapping[str, DataFrame], templates: Sequence[QueryTemplate]
    ) -> DataFrame:
        """Return the stream of what the cells put out.

        With the derived columns that ``templates`` ask about.
        """
        self._derive(templates)
        cells = self._streams.cells
        parts = [
            self._dealt(streams[name], number) for number, name in enumerate(self._job.streams)
        ]
        every = reduce(DataFrame.unionAll, parts)
        labels = F.array(*map(F.lit, cells))
        watermark = any(time is not None for time in self._streams.times)
        return (
            every.select(F.get(labels, "cell").alias("cell"), "relation", "batch")
            .groupBy("cell")
            .transformWithStateInPandas(
                SentCell(Cell(self._streams, self._counts, watermark=watermark)),
                RESULTS,
                "append",
                "EventTime" if watermark else "None",
            )
        )

    def old_windows(
        self, rows: DataFrame, templates: Sequence[QueryTemplate], since: int, until: int
    ) -> DataFrame:
        """Return what one cell puts out for old events of a stream, which are in one partition.

        With the derived columns that ``templates`` ask about, and only windows that begin at a time
        from ``since`` on and before ``until``.
        """
        self._derive(templates)
        found = OldWindows(self._streams, self._counts, since, until)
        return self._dealt(rows, 0).mapInArrow(sent(found), RESULTS)

    def _derive(self, templates: Sequence[QueryTemplate]) -> None:
        """Have the derived columns that templates ask about in plans that are made from now on."""
        self._derived = [derived_in(name, templates) for name in self._job.streams]
        types = list(self._own_types)
        for number, derived in enumerate(self._derived):
            of_stream = {n: column for n, (column, _) in derived.items()}
            types[number] = types_with(types[number], of_stream, self._time_zone)
        shown = [tuple(schema.names) for schema in self._schemas]
        for number, derived in enumerate(self._derived):
            shown[number] = names_with(shown[number], (column for column, _ in derived.values()))
        self._streams = replace(self._streams, types=tuple(types), names=tuple(shown))

    def _dealt(self, rows: DataFrame, number: int) -> DataFrame:
        """Return the rows of a stream as blobs by cell."""
        schema = ", ".join(f"{field.name} {_DDL[str(field.type)]}" for field in SCHEMA)
        columns = tuple(
            place for place, kind in enumerate(self._streams.types[number]) if kind is not None
        )
        dealing = Dealing(self._streams, number, columns, len(self._streams.cells), self._counts)
        derived = self._derived[number]
        names = dict(enumerate(self._schemas[number].names))
        names |= {n: column.name for n, (column, _) in derived.items()}
        computed = DerivedPlans(self._analysis).over(classic(rows), derived)
        travelling = computed.select(*[F.col(quoted(names[place])) for place in columns])
        return travelling.mapInArrow(sent(dealing), schema)

    def results(
        self,
        packed: ClassicDataFrame,
        queries: Sequence[StandingQuery],
        run: BatchRun,  # noqa: ARG002 - the tasks know it from their job's properties
        batch: int,
    ) -> BatchResults:
        """Return the results of queries, which a batch has put out."""
        templates = {id(query.template): query.template for query in queries}.values()
        self._readings.keep(self._job.inputs, queries)
        put_out = columns_put_out(self._job.inputs, templates)
        streams = len(self._job.inputs)
        fields = [
            StructField(QUERY, StringType(), nullable=False),
            StructField(LAYOUT, IntegerType(), nullable=False),
        ]
        arrow = [pa.field(QUERY, pa.string()), pa.field(LAYOUT, pa.int32())]
        for number, column in put_out:
            kind = self._schemas[number % streams].fields[column].dataType
            fields.append(StructField(f"{number}_{column}", kind))
            arrow.append(
                pa.field(f"{number}_{column}", self._streams.types[number % streams][column])
            )
        names: dict[tuple[Source, int], str] = {
            (number, column): f"{number}_{column}" for number, column in put_out
        }
        aggregations = aggregations_in(self._job.inputs, queries)
        types = {
            aggregation: template.aggregated.types
            for template in templates
            if template.aggregated is not None
            and (aggregation := aggregation_of(self._job.inputs, template)) is not None
        }
        for aggregation, number in aggregations.items():
            for position, described in enumerate(types[aggregation]):
                name = names[aggregation, position] = aggregated_column(number, position)
                fields.append(StructField(name, spark_type(described)))
                arrow.append(pa.field(name, arrow_type(described, self._time_zone)))
        if self._streams.samples:
            fields.append(StructField(SAMPLE, from_arrow_type(SAMPLE_TYPE)))
            arrow.append(pa.field(SAMPLE, SAMPLE_TYPE))
        for name, shown in shown_columns(templates).items():
            fields.append(StructField(name, shown))
            arrow.append(pa.field(name, returned_type(shown)))
        if aggregations:  # what cells have of a group comes together
            packed = classic(repartitioned(packed, len(self._streams.cells), "part"))
        put = PuttingOut(self._streams, pa.schema(arrow), self._counts, self.begins)
        rows = classic(packed.mapInArrow(sent(put), StructType(fields)))
        readings = self._readings.by_layout
        if not any(layout.further for layout in readings):
            return results(rows, names, readings, self._time_zone)
        most = self._streams.limits.max_results

        def failed() -> list[str]:
            counts = self._counts.value.get((self._job.name, batch))
            numbers = {} if counts is None else counts.errors
            return [query.name for query in queries if query.number in numbers] if numbers else []

        tables = self._analysis.rows_of_table
        return results_with_steps(rows, names, readings, self._time_zone, most, tables, failed)


def _travelling(field: StructField, time_zone: str) -> pa.DataType | None:
    kind = field.dataType.json()
    return arrow_type(kind, time_zone) if can_travel(kind) else None


_DDL = {"int32": "int", "int64": "bigint", "binary": "binary"}
