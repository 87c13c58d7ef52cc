"""A micro-batch with queries that go on above windows: Spark takes their steps, query by query.

See ``docs/decisions/0085-spark-goes-on-above-windows.md`` and
``docs/decisions/0088-aggregates-are-joined-by-window.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

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
from eddyline.standing.existences import over_rows
from eddyline.standing.log.engine_inputs import Layout, Source
from eddyline.standing.outputs import (
    QUERY,
    BatchResults,
    StepResults,
    columns_as_read,
    quoted,
    results,
)
from eddyline.standing.plan_sources import name_of
from eddyline.standing.query_reading import ReadQuery
from eddyline.standing.query_template import OutputColumn
from eddyline.standing.step_tree import StepItem, StepNode, StepPart, StepTable
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
    rows_of: Callable[[str], Plan],
    failed: Callable[[], Collection[str]],
) -> BatchResults:
    """Return the results of queries some of which go on above windows.

    All is as for :func:`~eddyline.standing.outputs.results`; ``most`` results of a query pass, and
    ``rows_of`` gives the rows of tables. Where windows have closed the steps are taken here: what
    fails is known before a sink sees a row. Queries that ``failed`` as the rows were computed miss
    some of their groups, and so have no results.
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
            chosen = [step for step in _steps_in(readings) if came & {*step.numbers}]
            incomplete = failed()
            whole = rows.where(~F.col(NAME).isin(*incomplete)) if incomplete else rows
            taken = _Steps(whole, names, chosen, every.schema, steps, most, rows_of)
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


class _Step(NamedTuple):
    """A step as it was read, the names of the columns that it gives, and its parts.

    Of these the numbers of their layouts, and what they are made of.
    """

    reading: ReadQuery
    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    layouts: tuple[Layout, ...]


def _steps_in(readings: Mapping[Layout, ReadQuery]) -> list[_Step]:
    """Return the steps of readings, of whose parts each has a layout of its own."""
    numbers = {layout: number for number, layout in enumerate(readings)}
    by_step: dict[tuple[str, tuple[OutputColumn, ...]], list[Layout]] = {}
    for layout, reading in readings.items():
        if reading.step is not None:
            by_step.setdefault((layout.further, layout.outputs), []).append(layout)
    return [
        _Step(
            readings[layouts[0]],
            tuple(column.name.casefold() for column in outputs),
            tuple(numbers[layout] for layout in sorted(layouts, key=_part_of)),
            tuple(sorted(layouts, key=_part_of)),
        )
        for (_, outputs), layouts in by_step.items()
    ]


def _part_of(layout: Layout) -> int:
    return layout.part


class _Rows(NamedTuple):
    """Rows of many queries: a plan, and the attributes of it that say whose they are.

    ``query`` is None for rows of tables, which are any query's. ``beside`` has the columns that are
    the same for all rows of a query, by name.
    """

    plan: Plan
    query: CatalystExpression | None
    beside: Mapping[str, CatalystExpression]


class _Steps:
    """The steps of a micro-batch, each taken for all queries of a layout at once."""

    def __init__(
        self,
        rows: DataFrame,
        names: Mapping[tuple[Source, int], str],
        chosen: Sequence[_Step],
        columns: StructType,
        steps: StepResults,
        most: int | None,
        rows_of: Callable[[str], Plan],
    ) -> None:
        """Take the rows, which are held, and the steps that are to be taken.

        ``columns`` are those of results, whatever the letters of their names.
        """
        self._rows = rows
        self._names = names
        self._chosen = chosen
        self._rows_of = rows_of
        self._columns = columns
        self._steps = steps
        self._most = most
        self._tries = 0
        self._layouts: dict[str, set[int]] = {}
        """The numbers of the layouts of each query's rows, once somebody has to know."""

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
            if queries is None:
                self._find_layouts()
                queries = sorted(self._layouts, key=lambda name: (min(self._layouts[name]), name))
            if len(queries) == 1 or self._tries >= MOST_TRIES:
                self._steps.failures |= dict.fromkeys(queries, QueryFailure(text))
                return []
            half = len(queries) // 2
            return self._taken(queries[:half]) + self._taken(queries[half:])
        self._steps.counts.update(counted)
        return [self._limited(frame, counted)]

    def _find_layouts(self) -> None:
        """Find out which queries have rows, and of which layouts."""
        numbers = [number for step in self._chosen for number in step.numbers]
        own = self._rows.where(F.col(LAYOUT).isin(numbers)).select(NAME, LAYOUT).distinct()
        for name, number in own.collect():
            self._layouts.setdefault(name, set()).add(number)

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
        if queries is None:
            return _union([self._taken_by(step, self._rows) for step in self._chosen])
        rows = self._rows.where(F.col(NAME).isin(*queries))
        came = set[int]().union(*(self._layouts[query] for query in queries))
        chosen = [step for step in self._chosen if came & {*step.numbers}]
        return _union([self._taken_by(step, rows) for step in chosen])

    def _taken_by(self, step: _Step, rows: DataFrame) -> DataFrame:
        """Return the results of the queries of a step, some of whose groups these rows are."""
        whole = step.reading.step
        if whole is None:
            raise ValueError(f"{step.reading.template.sql} is no step")
        parts = [
            self._part(classic(rows.where(F.col(LAYOUT) == number)), layout, reading)
            for number, layout, reading in zip(
                step.numbers, step.layouts, step.reading.parts, strict=True
            )
        ]
        shown = {catalyst.identity_number(one): column for one, column in step.reading.shown}
        plan, query, _ = self._over(whole.top, parts, shown)
        if query is None:
            raise ValueError("rows of tables are nobody's results")
        found = zip(step.columns, catalyst.outputs(whole.result), strict=True)
        items = [catalyst.named(output, name) for name, output in found]
        plan = catalyst.projected([catalyst.named(query, QUERY), *items], plan)
        return self._with_all_columns(catalyst.dataframe_over(rows.sparkSession, plan))

    def _part(self, rows: ClassicDataFrame, layout: Layout, reading: ReadQuery) -> _Rows:
        """Return the groups that rows are, as the part of a step puts them out."""
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
        step = reading.step
        if step is None:
            raise ValueError(f"{reading.template.sql} is no step")
        given = catalyst.outputs(step.parts[reading.template.part])
        pairs = zip(given, reading.outputs, strict=True)
        outputs = [_as_nullable_as(attribute, output) for attribute, output in pairs]
        return _Rows(catalyst.projected([*outputs, own, *beside.values()], plan), own, beside)

    def _over(self, item: StepItem, parts: Sequence[_Rows], shown: Mapping[int, str]) -> _Rows:
        """Return what a step makes of its parts, up to an item of its.

        ``shown`` are the attributes that stand for parameters, by number.
        """
        match item:
            case StepPart(_, number):
                return parts[number]
            case StepTable(plan, leaves):
                return _Rows(over_rows(plan, leaves, self._rows_of), None, {})
            case StepNode(node, below):
                rows = [self._over(each, parts, shown) for each in below]
                return _joined(node, *rows) if len(rows) > 1 else _over(rows[0], node, shown)

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


def _over(rows: _Rows, node: Plan, shown: Mapping[int, str]) -> _Rows:
    """Return a node over the rows of several queries, each of which is answered for itself.

    What is beside the rows is kept; ``shown`` are the attributes that stand for it, by number.
    """
    plan, query, beside = rows
    if query is None:
        raise ValueError("rows of tables are read as a whole")
    kept = [query, *beside.values()]
    kind = name_of(node)
    if kind == "WindowGroupLimit":  # Spark infers it again
        return rows
    if kind == "Window":
        plan = catalyst.window_by(node, query, plan)
    elif kind == "Aggregate":
        plan = catalyst.aggregate_by(node, kept, plan)
    elif kind == "Project":
        plan = catalyst.project_over(node, plan, kept)
    else:
        link, _ = read_link(node)
        if isinstance(link, EvaluationLink):
            parameters = [
                catalyst.attribute_like(result.handle, beside[shown[result.identity[0]]])
                for result in link.results
            ]
            plan = catalyst.projected([*catalyst.outputs(plan), *parameters], plan)
        else:
            plan = catalyst.with_children(node, [plan])
    return rows._replace(plan=plan)


def _joined(node: Plan, left: _Rows, right: _Rows) -> _Rows:
    """Return a join of rows, each with those of the same query, or with rows of tables."""
    if left.query is None or right.query is None:
        whose = right if left.query is None else left
        return whose._replace(plan=catalyst.with_children(node, [left.plan, right.plan]))
    plan = catalyst.join_by(node, (left.query, right.query), left.plan, right.plan)
    match catalyst.join_type(node):
        case "RIGHT OUTER":
            return right._replace(plan=plan)
        case "FULL OUTER":
            query = _either(left.query, right.query)
            beside = {name: _either(one, right.beside[name]) for name, one in left.beside.items()}
            items = [*catalyst.outputs(plan), query, *beside.values()]
            names = {name: catalyst.attribute_of(one) for name, one in beside.items()}
            plan = catalyst.projected(items, plan)
            return _Rows(plan, catalyst.attribute_of(query), names)
    return left._replace(plan=plan)


def _either(one: CatalystExpression, other: CatalystExpression) -> CatalystExpression:
    return catalyst.named(catalyst.coalesced([one, other]), "either")
