"""A micro-batch with queries that go on above windows: Spark takes their steps, query by query.

See ``docs/decisions/0085-spark-goes-on-above-windows.md``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    SparkRuntimeException,
)
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType
from pyspark.sql.window import Window

from eddyline import catalyst
from eddyline.blocks.column_types import spark_type
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.host.classic import classic
from eddyline.planner.read.chains import EvaluationLink, read_link
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.log.engine_inputs import Layout, Source
from eddyline.standing.outputs import (
    QUERY,
    BatchResults,
    StepResults,
    columns_as_read,
    quoted,
    results,
)
from eddyline.standing.query_reading import ReadQuery
from eddyline.standing.tasks.failed_queries import QueryFailure
from eddyline.standing.tasks.selecting import LAYOUT
from eddyline.standing.tasks.selecting import QUERY as NAME

_RAISED: Final = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    SparkRuntimeException,
)
"""What an expression raises; anything else is no query's fault."""

_IN_A_TASK: Final = re.compile(
    r"org\.apache\.spark\.Spark(?:Arithmetic|ArrayIndexOutOfBounds|DateTime|IllegalArgument"
    r"|NumberFormat|Runtime)Exception: (.*)"
)
"""The same as earlier releases of Spark tell it, as the cause of a job's failure."""

MOST_TRIES: Final = 200
"""Runs of steps to find whose fault an error is, some tenths of a second each: 34 find one of
100,000 queries. Then all that are left are paused together."""

_PLACE: Final = "eddyline_place"


def results_with_steps(
    rows: ClassicDataFrame,
    names: Mapping[tuple[Source, int], str],
    readings: Mapping[Layout, ReadQuery],
    time_zone: str,
    most: int | None,
) -> BatchResults:
    """Return the results of queries some of which go on above windows.

    All is as for :func:`~eddyline.standing.outputs.results`; ``most`` results of a query pass.
    Where windows have closed the steps are taken here: what fails is known before a sink sees a
    row.
    """
    steps = StepResults()
    try:
        rows = classic(steps.hold(rows))
        plainly = {layout: r for layout, r in readings.items() if r.step is None}
        with_step = F.col(LAYOUT) >= len(plainly)  # these have the last numbers
        came = {row[0] for row in rows.where(with_step).select(LAYOUT).distinct().collect()}
        plain = results(classic(rows.where(~with_step)), names, plainly, time_zone)
        every = _with_columns(plain.rows, [layout for layout in readings if layout not in plainly])
        if came:
            chosen = [item if n in came else None for n, item in enumerate(readings.items())]
            taken = _Steps(rows, names, chosen, every.schema, steps, most)
            every = _union([every, *taken.frames()])
    except BaseException:
        steps.release()
        raise
    return BatchResults(classic(every), plain.failing, steps)


def _with_columns(rows: DataFrame, layouts: Sequence[Layout]) -> DataFrame:
    """Return rows with the columns of layouts, NULL where they have them not."""
    known = {name.casefold() for name in rows.columns}
    more = {}
    for column in (column for layout in layouts for column in layout.outputs):
        if column.name.casefold() not in known:
            known.add(column.name.casefold())
            more[column.name] = F.lit(None).cast(spark_type(column.type))
    return rows.select("*", *[value.alias(name) for name, value in more.items()])


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all, which have the same columns."""
    if len(frames) == 1:
        return frames[0]
    plans = [catalyst.analyzed_plan(frame) for frame in frames]
    return catalyst.dataframe_over(frames[0].sparkSession, catalyst.union(plans))


class _Steps:
    """The steps of a micro-batch, each taken for all queries of a layout at once."""

    def __init__(
        self,
        rows: DataFrame,
        names: Mapping[tuple[Source, int], str],
        readings: Sequence[tuple[Layout, ReadQuery] | None],
        columns: StructType,
        steps: StepResults,
        most: int | None,
    ) -> None:
        """Take the rows, which are held, and readings by number; None for those not asked for.

        ``columns`` are those of results, whatever the letters of their names.
        """
        self._rows = rows
        self._names = names
        self._readings = readings
        self._columns = columns
        self._steps = steps
        self._most = most
        self._tries = 0

    def frames(self) -> list[DataFrame]:
        """Return the results, for some queries in each frame; those that fail have none."""
        return self._taken(None)

    def _taken(self, queries: Sequence[str] | None) -> list[DataFrame]:
        """Take the steps for some queries, or for all; where one raises, for half of them each."""
        self._tries += 1
        frame = self._steps.hold(self._frame(queries))
        try:
            counted = {row[0]: row[1] for row in frame.groupBy(QUERY).count().collect()}
        except Exception as error:
            text = _raised(error)
            if text is None:
                raise
            queries = self._queries() if queries is None else queries
            if len(queries) == 1 or self._tries >= MOST_TRIES:
                self._steps.failures |= dict.fromkeys(queries, QueryFailure(text))
                return []
            half = len(queries) // 2
            return self._taken(queries[:half]) + self._taken(queries[half:])
        self._steps.counts.update(counted)
        return [self._limited(frame, counted)]

    def _queries(self) -> list[str]:
        numbers = [n for n, reading in enumerate(self._readings) if reading is not None]
        own = self._rows.where(F.col(LAYOUT).isin(numbers)).select(NAME).distinct()
        return sorted(row[0] for row in own.collect())

    def _limited(self, frame: DataFrame, counted: Mapping[str, int]) -> DataFrame:
        """Return the results without those of a query beyond the most that it may have."""
        most = self._most
        if most is None or max(counted.values(), default=0) <= most:
            return frame
        floods = {query: number - most for query, number in counted.items() if number > most}
        self._steps.left_out.update(floods)
        self._steps.counts.subtract(floods)
        place = F.row_number().over(Window.partitionBy(QUERY).orderBy(F.lit(0)))
        kept = ~F.col(QUERY).isin(*floods) | (F.col(_PLACE) <= most)
        return frame.withColumn(_PLACE, place).where(kept).drop(_PLACE)

    def _frame(self, queries: Collection[str] | None) -> DataFrame:
        rows = self._rows if queries is None else self._rows.where(F.col(NAME).isin(*queries))
        branches = [
            self._branch(classic(rows.where(F.col(LAYOUT) == number)), *reading)
            for number, reading in enumerate(self._readings)
            if reading is not None
        ]
        return _union(branches)

    def _branch(self, rows: ClassicDataFrame, layout: Layout, reading: ReadQuery) -> DataFrame:
        """Return the results of the queries of a layout, whose groups these rows are."""
        if reading.step is None:
            raise ValueError(f"{reading.template.sql} is no step")
        plan = catalyst.analyzed_plan(rows)
        attributes = dict(zip(rows.columns, catalyst.outputs(plan), strict=True))
        query = catalyst.named(attributes[NAME], QUERY)
        aliases = columns_as_read(attributes, self._names, {layout: reading})
        carried = {
            column: catalyst.named(attributes[column], column) for _, column in reading.shown
        }
        plan = catalyst.projected([*aliases, query, *carried.values()], plan)
        beside = {column: catalyst.attribute_of(value) for column, value in carried.items()}
        own = catalyst.attribute_of(query)
        if reading.native:
            plan = catalyst.filtered(
                catalyst.conjunction([catalyst.aliased(condition) for condition in reading.native]),
                plan,
            )
        given = zip(catalyst.outputs(reading.step.below), reading.outputs, strict=True)
        outputs = [_as_nullable_as(attribute, output) for attribute, output in given]
        plan = catalyst.projected([*outputs, own, *beside.values()], plan)
        shown = {catalyst.identity_number(one): beside[column] for one, column in reading.shown}
        for node in reading.step.nodes:
            plan = _over(plan, node, own, list(beside.values()), shown)
        names = [column.name.casefold() for column in layout.outputs]
        found = catalyst.outputs(reading.step.result)
        items = [catalyst.named(output, name) for name, output in zip(names, found, strict=True)]
        plan = catalyst.projected([catalyst.named(own, QUERY), *items], plan)
        return self._with_all_columns(catalyst.dataframe_over(rows.sparkSession, plan))

    def _with_all_columns(self, frame: DataFrame) -> DataFrame:
        known = {*frame.columns}
        columns = [
            F.col(quoted(field.name.casefold())).alias(field.name)
            if field.name.casefold() in known
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in self._columns
        ]
        return frame.select(*columns)


def _raised(error: Exception) -> str | None:
    """Return what an expression has raised, as one line; None for any other error."""
    if isinstance(error, _RAISED):
        return str(error).strip().split("\n", 1)[0]
    within = _IN_A_TASK.search(str(error))
    return None if within is None else within[1]


def _as_nullable_as(
    attribute: CatalystExpression, output: CatalystExpression
) -> CatalystExpression:
    """Return an output that is marked as never NULL where the attribute that it is was."""
    if catalyst.is_nullable(attribute):
        return output
    return catalyst.attribute_like(output, catalyst.known_not_null(catalyst.aliased(output)))


def _over(
    rows: Plan,
    node: Plan,
    query: CatalystExpression,
    beside: Sequence[CatalystExpression],
    shown: Mapping[int, CatalystExpression],
) -> Plan:
    """Return a node over the rows of several queries, each of which is answered for itself.

    The attributes ``query`` and ``beside``, which is the same for all rows of a query, are kept;
    ``shown`` are those among them that stand for the results of functions, by number.
    """
    kind = catalyst.class_name(node).rpartition(".")[2]
    if kind == "WindowGroupLimit":  # Spark infers it again
        return rows
    if kind == "Window":
        return catalyst.window_by(node, query, rows)
    if kind == "Aggregate":
        return catalyst.aggregate_by(node, [query, *beside], rows)
    if kind == "Project":
        return catalyst.project_over(node, rows, [query, *beside])
    link, _ = read_link(node)
    if not isinstance(link, EvaluationLink):
        return catalyst.with_children(node, [rows])
    parameters = [
        catalyst.attribute_like(result.handle, shown[result.identity[0]]) for result in link.results
    ]
    return catalyst.projected([*catalyst.outputs(rows), *parameters], rows)
