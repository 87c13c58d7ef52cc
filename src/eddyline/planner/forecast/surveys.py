"""Spark's jobs of a forecast: how many arguments there are, and which sampled ones are needed.

Arguments are sampled by their hash: each that is in the sample comes with all its rows, of all
partitions, so that it is known whether any of these needs the call. The hash is one of Spark's own,
over native expressions, and so it is computed below whatever functions Spark runs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.errors import EddylineError
from eddyline.expressions import Argument, Call, Expression, calls_in, with_children
from eddyline.planner.forecast.paid_blocks import PaidBlock
from eddyline.planner.forecast.paid_calls import PaidCall, is_paid, over_columns, paid_calls
from eddyline.quirks import arrow_columns
from eddyline.quirks.collected_tables import collected
from eddyline.reports.expected import Expected, roughly
from eddyline.tasks.survey import NEEDED, KnownAnswers, SurveyBlock, known_answers, survey_command

COUNTING_ERROR: Final = 0.01
"""Relative standard error with which distinct arguments are counted: in one pass, without a
shuffle of all of them."""

KEY: Final = "key"

ROWS_EACH: Final = 25
"""Rows that are looked at for an argument that is wanted in a sample, on average.

Where arguments have more, some by chance are: a key with millions of rows would keep free
predicates busy for hours.
"""

FAILURES: Final = (PySparkException, EddylineError, pa.ArrowException)
"""What ends the forecast of a function, and not that of the others, nor the explanation."""

_MOST_OF_ALL: Final = 0.7
"""Where a sample would have this part of all arguments, it has all: then nothing is estimated."""

_HASHES: Final = 1 << 64
"""How many hashes there are; half of them are below 0."""

Answers = Mapping[str, dict[bytes, tuple[pa.Array, str | None]]]
"""What is known of each method of the driver's, by the keys of arguments."""


@dataclass(frozen=True, eq=False)
class PaidUse:
    """A paid call where it stands in a block, whose terms are asked in an ``order``."""

    block: PaidBlock
    paid: PaidCall
    order: tuple[int, ...]

    @property
    def method(self) -> str:
        """The name under which the server knows the function with these arguments."""
        driver = self.block.block.functions[self.paid.call.function].driver
        if driver is None:
            raise AssertionError("a paid call is one of the driver's")
        return driver.method

    @property
    def columns(self) -> tuple[int, ...]:
        """The arguments of the block that are those of the call."""
        return over_columns(self.paid.call) or ()

    @property
    def earlier(self) -> list[PaidUse]:
        """The calls that this one depends on, in the order in which their answers are needed."""
        made = {paid.call: paid for paid in paid_calls(self.block.block, self.order)}
        return [PaidUse(self.block, made[call], self.order) for call in self.paid.before]


@dataclass(frozen=True, slots=True)
class CountedArguments:
    """How many rows there are, and how many distinct arguments."""

    rows: int
    arguments: Expected


def slice_with(counted: CountedArguments, wanted: int) -> SampleSlice:
    """Return a slice with about so many arguments; all, where these are not many."""
    part = max(1, wanted) / max(1.0, counted.arguments.likely)
    part = part if part < _MOST_OF_ALL else 1.0
    rows = ROWS_EACH * wanted / max(1.0, counted.rows * part)
    return SampleSlice(part, rows=min(1.0, rows))


@dataclass(frozen=True)
class SampledArguments:
    """Arguments of a sample: their hashes, rows, how many of these need them, and themselves.

    Of ``unknown`` rows it depends on answers that are not known.

    ``arguments`` are columns of the types in which tasks send them.
    """

    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    passing: npt.NDArray[np.int64]
    unknown: npt.NDArray[np.int64]
    arguments: tuple[pa.Array, ...]

    def __len__(self) -> int:
        """Return how many arguments there are."""
        return len(self.keys)

    @property
    def needed(self) -> npt.NDArray[np.bool_]:
        """Which of them are needed."""
        return self.passing > 0

    def values(self, places: Sequence[int]) -> list[tuple[object, ...]]:
        """Return arguments as the driver reads them."""
        chosen = pa.array(places, pa.int64())
        columns = [column.take(chosen).to_pylist() for column in self.arguments]
        return list(zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class SampleSlice:
    """The arguments with the lowest hashes: a ``part`` of all; or only those with some ``keys``.

    So each slice is in every larger one, and a call that was made for one is of use for others. Of
    their rows a part by chance is looked at, mostly all.
    """

    part: float = 1.0
    keys: tuple[int, ...] | None = None
    rows: float = 1.0

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.part >= 1.0 and self.keys is None and self.rows >= 1.0

    def holds(self, key: Column) -> Column | None:
        """Return the condition for a hash; None where all are in it."""
        if self.keys is not None:
            return key.isin(list(self.keys))
        if self.part >= 1.0:
            return None
        return key < F.lit(round(_HASHES * self.part) - _HASHES // 2)


@dataclass
class Surveys:
    """Runs the jobs of one forecast; another ``salt`` makes another sample."""

    spark: SparkSession
    options: RoutingOptions
    salt: int
    _frames: dict[PaidBlock, DataFrame] = field(default_factory=dict)

    def counted(self, uses: Sequence[PaidUse]) -> CountedArguments:
        """Count the rows and distinct arguments of all uses of one function, natively."""
        keys = _union([self._frame(use.block).select(self._key(use).alias(KEY)) for use in uses])
        distinct = F.approx_count_distinct(KEY, COUNTING_ERROR).alias("distinct")
        (row,) = keys.agg(F.count(F.lit(1)).alias("rows"), distinct).collect()
        return CountedArguments(int(row["rows"]), roughly(float(row["distinct"]), COUNTING_ERROR))

    def sampled(
        self, uses: Sequence[PaidUse], part: SampleSlice, answers: Answers, *, free: bool
    ) -> SampledArguments:
        """Return the arguments of a part, and which are needed.

        Where that is asked ``free``, those that may be, whatever paid calls say.
        """
        frames = []
        for use in uses:
            condition = use.paid.free if free else use.paid.condition
            frame = self._with_flag(use, part, condition, answers)
            frames.append(frame.select(self._key(use).alias(KEY), _given(use), "needed"))
        by_key = _union(frames).groupBy(KEY)
        table = collected(
            by_key.agg(
                F.count(F.lit(1)).alias("rows"),
                F.count(F.when(F.col("needed"), 1)).alias("passing"),
                F.count(F.when(F.col("needed").isNull(), 1)).alias("unknown"),
                F.first("given").alias("given"),
            )
        )
        return _sampled(table, uses[0])

    def arguments_in(self, uses: Sequence[PaidUse], part: SampleSlice) -> int:
        """Return how many arguments there are in a slice, counted natively."""
        frames = []
        for use in uses:
            chosen = part.holds(self._key(use))
            frame = self._frame(use.block)
            frame = frame if chosen is None else frame.where(chosen)
            frames.append(frame.select(self._key(use).alias(KEY)))
        (row,) = _union(frames).agg(F.countDistinct(KEY).alias("keys")).collect()
        return int(row["keys"])

    def pairs(
        self, use: PaidUse, earlier: PaidUse, part: SampleSlice, answers: Answers
    ) -> tuple[npt.NDArray[np.int64], SampledArguments]:
        """Return which answers of an ``earlier`` call of its block a use may need.

        For each pair of arguments of both, in a part of those of the use: the hash of the
        use's, and the earlier ones; all of these are needed.
        """
        frame = self._with_flag(use, part, earlier.paid.condition, answers)
        pairs = frame.where("needed IS NULL OR needed").select(
            self._key(use).alias("own"), self._key(earlier).alias(KEY), _given(earlier)
        )
        table = collected(
            pairs.groupBy("own", KEY).agg(
                F.count(F.lit(1)).alias("rows"),
                F.count(F.lit(1)).alias("passing"),
                F.lit(0).alias("unknown"),
                F.first("given").alias("given"),
            )
        )
        own = table.column("own").combine_chunks().to_numpy(zero_copy_only=False)
        return own, _sampled(table, earlier)

    def _key(self, use: PaidUse) -> Column:
        columns = (F.col(f"a{n}") for n in use.columns)
        return F.xxhash64(*columns, F.lit(self.salt))

    def _frame(self, block: PaidBlock) -> DataFrame:
        """Return the rows below a block, with its arguments as columns."""
        frame = self._frames.get(block)
        if frame is None:
            items = [catalyst.named(each, f"a{n}") for n, each in enumerate(block.arguments)]
            plan = catalyst.projected(items, block.base)
            frame = self._frames[block] = catalyst.dataframe_over(self.spark, plan)
        return frame

    def _with_flag(
        self, use: PaidUse, part: SampleSlice, condition: Expression, answers: Answers
    ) -> DataFrame:
        """Return the rows of a part of a use's arguments, with whether a condition may hold."""
        frame = self._frame(use.block)
        chosen = part.holds(self._key(use))
        if chosen is not None:
            frame = frame.where(chosen)
        if part.rows < 1.0:
            frame = frame.where(F.rand(self.salt) < part.rows)
        if condition == ALL_ROWS:
            return frame.withColumn("needed", F.lit(True))  # noqa: FBT003 - SQL's TRUE
        survey, columns = survey_of(use.block, condition, answers, self.options)
        plan = catalyst.analyzed_plan(frame)
        attributes = catalyst.outputs(plan)
        call = catalyst.python_call(
            name="forecast",
            command=survey_command(survey),
            like=[use.block.environment],
            return_type=NEEDED.json(),
            arguments=[attributes[n] for n in columns] or (catalyst.literal_true(),),
            kind=arrow_columns.BY_TASK,
        )
        needed = catalyst.new_attribute("needed", call)
        flagged = catalyst.arrow_evaluation(call, needed, arrow_columns.BY_TASK, plan)
        return catalyst.dataframe_over(self.spark, flagged)


def survey_of(
    paid: PaidBlock, condition: Expression, answers: Answers, options: RoutingOptions
) -> tuple[SurveyBlock, tuple[int, ...]]:
    """Return what evaluates a condition of a block, and the arguments of the block that it takes.

    Paid calls in it have the answers that are known.
    """
    block = paid.block
    columns = tuple(sorted({node.index for node in condition.walk() if isinstance(node, Argument)}))
    numbers = sorted({call.function for call in calls_in(condition)})

    def placed(expression: Expression) -> Expression:
        if isinstance(expression, Argument):
            return Argument(columns.index(expression.index), expression.type)
        over = with_children(expression, placed)
        if isinstance(over, Call):
            return Call(numbers.index(over.function), over.arguments, over.type)
        return over

    functions = tuple(block.functions[n] for n in numbers)
    known: list[KnownAnswers | None] = []
    for function in functions:
        driver = function.driver
        known.append(
            None
            if driver is None
            else known_answers(function, block.settings, answers.get(driver.method, {}))
        )
    survey = SurveyBlock(placed(condition), functions, tuple(known), block.settings, options)
    return survey, columns


def unforeseen(use: PaidUse) -> str:
    """Return why a call's arguments cannot be sampled; empty where they can."""
    if over_columns(use.paid.call) is None:
        paid = any(is_paid(use.block.block, call) for call in calls_in(use.paid.call)[:-1])
        whose = "another paid function" if paid else "a Python function"
        return f"its arguments are made by {whose}"
    if any(over_columns(call) is None for call in use.paid.before):
        return "it depends on answers for arguments that a Python function makes"
    return ""


def _given(use: PaidUse) -> Column:
    columns = [F.col(f"a{n}").alias(f"g{place}") for place, n in enumerate(use.columns)]
    return F.struct(*columns).alias("given")


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return functools.reduce(DataFrame.union, frames)


def _sampled(table: pa.Table, use: PaidUse) -> SampledArguments:
    function = use.block.block.functions[use.paid.call.function]
    zone = use.block.block.settings.time_zone
    return sampled_table(table, [arrow_type(kind, zone) for kind in function.argument_types])


def sampled_table(table: pa.Table, kinds: Sequence[pa.DataType]) -> SampledArguments:
    """Return arguments, of these types, as a job has collected them."""
    given = table.column("given").combine_chunks()
    if isinstance(given, pa.ChunkedArray):
        given = pa.concat_arrays(given.chunks)
    arguments = tuple(
        column.cast(kind) for column, kind in zip(given.flatten(), kinds, strict=True)
    )

    def numbers(name: str) -> npt.NDArray[np.int64]:
        column = table.column(name).combine_chunks()
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)

    rows, passing, unknown = map(numbers, ("rows", "passing", "unknown"))
    return SampledArguments(numbers(KEY), rows, passing, unknown, arguments)


def first_line(error: Exception) -> str:
    """Return what an error says first."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
