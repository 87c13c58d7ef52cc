"""A micro-batch of the queries on one stream."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)
from pyspark.sql.udf import UserDefinedFunction

from eddyline.blocks.column_types import arrow_type, can_travel, returned_type
from eddyline.host.classic import classic
from eddyline.quirks import arrow_columns
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.analysis import Analysis
from eddyline.standing.derived_plans import DerivedPlans, derived_in, names_with, types_with
from eddyline.standing.log.batch_log import BatchRun
from eddyline.standing.log.engine_inputs import Source
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.log.rule_limits import NO_LIMITS, RuleLimits
from eddyline.standing.outputs import BatchResults, Readings, quoted, results, shown_columns
from eddyline.standing.tasks.counts import CountsByBatch
from eddyline.standing.tasks.sampled_rows import SAMPLE, SAMPLE_TYPE
from eddyline.standing.tasks.selecting import LAYOUT, QUERY, SelectingWork, wanted_by
from eddyline.tasks.our_functions import sent

_MATCH = (
    StructField(QUERY, StringType(), nullable=False),
    StructField(LAYOUT, IntegerType(), nullable=False),
)


class SelectingBatches:
    """Turns micro-batches of a stream into the results of the queries on it."""

    def __init__(
        self,
        analysis: Analysis,
        job: Job,
        schema: StructType,
        log: str,
        counts: Accumulator[CountsByBatch],
        *,
        remember: bool,
        samples: bool = False,
        limits: RuleLimits = NO_LIMITS,
    ) -> None:
        """Take where the queries are, the directory of their log, and where tasks report.

        With ``remember`` results of functions are kept for further events. ``samples`` says
        whether rows may be dropped, ``limits`` what a query may take.
        """
        self._remember = remember
        self._limits = limits
        self._samples = samples
        self._counts = counts
        self._job = job
        self._log = log
        self._names = [field.name for field in schema.fields]
        kinds = [field.dataType.json() for field in schema.fields]
        self._types = tuple(
            arrow_type(kind, analysis.time_zone) if can_travel(kind) else None for kind in kinds
        )
        self._readings = Readings(analysis)
        self._derived = DerivedPlans(analysis)
        self._time_zone = analysis.time_zone

    def lacks(self, queries: Sequence[StandingQuery]) -> bool:  # noqa: ARG002 - as for joins
        """Return False: the derived columns are in the plan of each batch."""
        return False

    def results(
        self, rows: ClassicDataFrame, queries: Sequence[StandingQuery], run: BatchRun, batch: int
    ) -> BatchResults:
        """Return the results of the queries that a batch runs for its rows."""
        templates = {id(query.template): query.template for query in queries}.values()
        self._readings.keep(self._job.inputs, queries)
        used = sorted({column for template in templates for column in template.selected[0]})
        columns = tuple(used or [_narrowest(self._types)])
        derived = derived_in(self._job.streams[0], templates)
        types = types_with(
            self._types, {n: column for n, (column, _) in derived.items()}, self._time_zone
        )
        rows = self._derived.over(rows, derived)
        of_columns = dict(enumerate(self._names)) | {n: c.name for n, (c, _) in derived.items()}
        shown = shown_columns(templates)
        work = SelectingWork(
            self._log,
            self._job,
            run.version,
            batch,
            run.kept,
            types,
            columns,
            self._counts,
            names_with(self._names, (column for column, _ in derived.values())),
            tuple((name, returned_type(kind)) for name, kind in shown.items()),
            self._remember,
            self._limits,
        )
        fields = [*_MATCH, *(StructField(name, kind) for name, kind in shown.items())]
        match = ArrayType(StructType(fields), containsNull=False)
        wanted = UserDefinedFunction(
            sent(arrow_columns.by_task(wanted_by(work))), match, "wanted", arrow_columns.BY_TASK
        )
        matches = F.inline(wanted(*[F.col(quoted(of_columns[number])) for number in columns]))
        rows_and_matches = rows.select("*", matches)
        if self._samples:
            rows_and_matches = rows_and_matches.withColumn(SAMPLE, _sample(run.kept))
        names: dict[tuple[Source, int], str] = {
            (0, number): name for number, name in enumerate(self._names)
        }
        return results(classic(rows_and_matches), names, self._readings.by_layout, self._time_zone)


def _sample(kept: float) -> Column:
    """Return what rows that were taken with such a share say of their sample."""
    known = {"exact": F.lit(kept >= 1), "kept": F.lit(kept)}
    columns = [known.get(field.name, F.lit(None)).alias(field.name) for field in SAMPLE_TYPE]
    return F.struct(*columns).cast(from_arrow_type(SAMPLE_TYPE))


def _narrowest(types: Sequence[pa.DataType | None]) -> int:
    """Return a column to send where none is needed: the rows have to be counted."""

    def width(kind: pa.DataType | None) -> int:
        if kind is None:
            return 1 << 20
        return kind.bit_width if pa.types.is_primitive(kind) else 1 << 10

    return min(range(len(types)), key=lambda number: width(types[number]))
