"""The fused function: a filter block as one Arrow iterator UDF that is an eddy.

Spark hands it the arguments of all the block's predicates, batch by batch, and
gets back for each row whether it is kept, and for kept rows the values that are
needed above the block. The rows themselves never leave the JVM.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    StringType,
    StructField,
    StructType,
)

from eddyline.blocks.column_types import returned_type, spark_type
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan, FilterStatistics
from eddyline.engine.policies.adaptive import AdaptivePolicy, NoticedChange
from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.engine.policies.guarded import unguarded
from eddyline.engine.policies.policy import Policy
from eddyline.engine.signature import ENTERING, Signature
from eddyline.expressions import call_of
from eddyline.expressions.program import spread
from eddyline.expressions.terms import conjuncts_of
from eddyline.expressions.value_types import relabelled
from eddyline.quirks import arrow_columns
from eddyline.reports.merging import compacted
from eddyline.reports.records import (
    Change,
    FunctionRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    TaskRecord,
    ToldApartRecord,
)
from eddyline.tasks.block_task import BlockTask, with_policies
from eddyline.tasks.live_news import live_news
from eddyline.tasks.our_functions import (
    ending_quietly,
    packed,
    pickled,
    send_last_results,
    send_results,
    unpacked,
)
from eddyline.tasks.rounds import Rounds
from eddyline.tasks.task_records import (
    RecordsSink,
    function_records,
    of_action,
    predicate_record,
    record_key,
)


class ErrorTexts:
    """The errors of one task; the first comes with its traceback, the others with their message.

    A predicate may fail on every row, and a traceback has a kilobyte.
    """

    def __init__(self) -> None:
        self._told = False

    def column(self, failed: Mapping[int, Exception], rows: int) -> pa.Array:
        """Return a column of texts, NULL for the rows for which nothing failed."""
        if not failed:
            return pa.nulls(rows, pa.string())
        texts: list[str | None] = [None] * rows
        for row, error in failed.items():
            texts[row] = self._text(error)
        return pa.array(texts, pa.string())

    def _text(self, error: Exception) -> str:
        parts = traceback.format_exception_only if self._told else traceback.format_exception
        self._told = True
        return writable("".join(parts(error)).strip())


def writable(text: str) -> str:
    r"""Return a text with what is no valid UTF-8 in it escaped.

    >>> writable("a\ud800b")
    'a\\ud800b'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


NOTEWORTHY_SELECTIVITY = 0.1
"""Change of a predicate's selectivity that goes into the report."""

NOTEWORTHY_COST = 0.2
"""Change of a predicate's cost, as a part of it, that does so if the order changed with it.

Smaller ones come and go with whatever else the machine does.
"""

KEEP = "keep"
"""Field of the fused function's result that says whether the row passes."""

ERROR = "error"
"""Field with the error of a row for which a predicate failed, where the block hands errors on."""


def result_type(block: FilterBlock) -> StructType:
    """Return the Spark type of the fused function: ``keep``, then a field for each output.

    Of a block that hands errors on, the errors are the field after ``keep``.
    """
    fields = [StructField(KEEP, BooleanType(), nullable=False)]
    if block.hands_on_errors:
        fields.append(StructField(ERROR, StringType()))
    for position, output in enumerate(block.outputs):
        declared = block.functions[call_of(output).function].return_type
        fields.append(StructField(f"v{position}", spark_type(declared)))
    return StructType(fields)


def fused_command(block: FilterBlock, options: RoutingOptions, records: RecordsSink) -> bytes:
    """Return the fused function of a block, pickled as Spark keeps user functions."""
    fused = FusedFilter(block, options, records)
    return pickled(arrow_columns.by_task(fused), result_type(block))


class FusedFilter:
    """The callable that Spark runs, once a task."""

    def __init__(self, block: FilterBlock, options: RoutingOptions, records: RecordsSink) -> None:
        """Bind a block to the way it is routed, and where its tasks report."""
        self._block = block
        self._options = options
        self._records = records

    def __reduce__(self) -> tuple[object, ...]:
        """Travel with the block packed by itself, which tasks of one process unpickle once."""
        content = packed((self._block, self._options))
        return _fused_filter, (content, self._records)

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.StructArray]:
        """Filter the batches of one task: arrays of one argument, or tuples of several."""
        key = record_key(self._block.identity, self._options)
        task = FilterTask(self._block, self._options)
        rounds = Rounds.of_filter(self._block)
        news = live_news(key)
        if news.wanted:
            task.between_visits(lambda: news.glance(task.record))
            if self._block.server is not None:
                news.begin(task.record)
        try:
            with ending_quietly():
                for batch in batches:
                    columns = batch if isinstance(batch, tuple) else (batch,)
                    yield from task.filtered(columns, rounds)
        except BaseException as error:
            task.end(error)
            raise
        else:
            task.end(None)
        finally:
            record = of_action(task.record())
            self._records.add({key: record})
            news.end(record)


def _fused_filter(content: bytes, records: RecordsSink) -> FusedFilter:
    block, options = unpacked(content)
    return FusedFilter(block, options, records)


@dataclass(frozen=True, slots=True)
class OneValue:
    """The callable for a block of which only its one output is wanted, of every row."""

    fused: FusedFilter

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """Yield the values of each batch."""
        for result in self.fused(batches):
            yield result.field(1)


class FilterTask(BlockTask):
    """One task's eddy over filters."""

    def __init__(self, block: FilterBlock, options: RoutingOptions) -> None:
        """Make the eddy, which begins with what the last one of this process knew.

        Or, once, with what the driver says that all tasks have learned.
        """
        super().__init__(
            block.identity,
            block.functions,
            block.settings,
            options,
            block.server,
            always=block.repeats,
        )
        self._block = block
        self._fields = [
            pa.field(field.name, returned_type(field.dataType), field.nullable)
            for field in result_type(block)
        ]
        self._orders = Orders()
        conjuncts = len(conjuncts_of(block.predicate))
        routed = range(conjuncts if conjuncts > 1 else 0)
        told = self.told_by_others(block, conjuncts, routed)
        self._eddy = FilterEddy(
            FilterPlan(
                block.predicate,
                block.outputs,
                block.texts,
                tuple(function.name for function in block.functions),
                block.argument_names,
                block.waits,
                told or block.priors,
            ),
            self.functions,
            options.policy.make,
            self.work_clock,
            self.generator,
            instrument=self._orders,
            learned=None if told else self.known(),
            hands_on_errors=block.hands_on_errors,
        )
        self._errors = ErrorTexts()
        self._orders.policy = self._eddy.eddy.policy
        self._changes_seen = len(self._changes())
        self._changes_noticed: list[Change] = []
        self._order = self._eddy.eddy.policy.order(ENTERING)

    def filtered(self, columns: Sequence[pa.Array], rounds: Rounds) -> Iterator[pa.StructArray]:
        """Yield what :meth:`filter` returns for a batch, a round at a time.

        Rows that come once a limit above has all that it keeps are dropped, and nobody is asked.
        """
        rows, done = len(columns[0]), 0
        for start, count in rounds.of(rows):
            result = self.filter([column.slice(start, count) for column in columns])
            yield result
            if rounds.gave(result.field(0).true_count):
                send_last_results()
            elif rounds.limited and rounds.small:
                send_results()
            done = start + count
        if done < rows:
            none = pa.array(np.zeros(rows - done, dtype=np.bool_))
            fields = (pa.nulls(rows - done, field.type) for field in self._fields[1:])
            yield pa.StructArray.from_arrays([none, *fields], fields=self._fields)

    def filter(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        """Return ``keep`` and the outputs for one batch."""
        started, began = self.clock.now(), self.work_clock.now()
        rows = len(columns[0])
        kept = self._eddy.filter(columns, rows)
        routed = self.work_clock.now()
        mask = np.zeros(rows, dtype=np.bool_)
        mask[kept.kept] = True
        parts: list[pa.Array] = [pa.array(mask)]
        if self._block.hands_on_errors:
            parts.append(self._errors.column(kept.failed, rows))
        parts += (spread(values, kept.kept, rows) for values in kept.outputs)
        arrays = [
            relabelled(values, field.type)
            for values, field in zip(parts, self._fields, strict=True)
        ]
        result = pa.StructArray.from_arrays(arrays, fields=self._fields)
        ended, done = self.clock.now(), self.work_clock.now()
        self.spent(ended - started, done - began)
        self.put_together += max(done - routed, 0.0)
        self._notice_changes(self.epoch + ended)
        self.slices.append(self._orders.slice(self.epoch + started, self.epoch + ended, rows))
        return result

    def between_visits(self, do: Callable[[], None]) -> None:
        """Have something done after each visit to a predicate."""
        self._orders.between_visits = do

    def end(self, error: BaseException | None) -> None:
        """End the user's functions; leave what was learned for the next task."""
        self.finish(self._eddy.learned(), error, self._eddy.statistics().rows_in)

    def record(self) -> TaskRecord:
        """Return what this task did."""
        statistics = self._eddy.statistics()
        record = replace(
            with_policies(self.times(statistics.eddy), self._eddy.learned()),
            rows_in=statistics.rows_in,
            rows_out=statistics.rows_out,
            predicates=_predicates(statistics),
            functions=self._functions(statistics),
            changes=tuple(self._changes_noticed),
            told_apart=self._told_apart(),
        )
        return compacted(record)  # a long task has thousands of batches, each a slice

    def _told_apart(self) -> tuple[ToldApartRecord, ...]:
        """Return the columns by which rows were told apart, by their names."""
        names = self._block.argument_names
        return tuple(
            ToldApartRecord(
                column=names[told.column] if names else f"argument {told.column + 1}",
                classes=told.classes,
                rows=told.rows,
            )
            for told in self._eddy.told_apart
        )

    def _functions(self, statistics: FilterStatistics) -> tuple[FunctionRecord, ...]:
        """Return the calls made, and how many Spark makes behind its own filters.

        The rows that passed these are counted where the filters stand in one order; else they are
        estimated, as the others do not see a row that one of them drops.
        """
        after = dict(self._block.after)
        calls = [
            replace(counts, possible=_passing(statistics, after.get(counts.call, 0)))
            for counts in statistics.calls
        ]
        waits = self._block.waits
        estimated = {call.function for call, n in after.items() if waits[:n] != tuple(range(n))}
        return tuple(
            replace(record, estimated=number in estimated)
            for number, record in enumerate(
                function_records(self._block.functions, calls, self.memories())
            )
        )

    def _changes(self) -> Sequence[NoticedChange]:
        policy = unguarded(self._eddy.eddy.policy)
        return policy.changes if isinstance(policy, AdaptivePolicy) else ()

    def _notice_changes(self, when: float) -> None:
        """Keep what people should know of: not every hiccup of a machine with other work."""
        changes = self._changes()[self._changes_seen :]
        self._changes_seen += len(changes)
        order = self._eddy.eddy.policy.order(ENTERING)
        reordered = order != self._order
        self._order = order
        for change in changes:
            difference = abs(change.after - change.before)
            if change.quantity is ChangedQuantity.SELECTIVITY:
                noteworthy = difference >= NOTEWORTHY_SELECTIVITY
            else:
                noteworthy = reordered and difference >= NOTEWORTHY_COST * change.before
            if noteworthy:
                self._changes_noticed.append(
                    Change(when, change.module, change.quantity, change.before, change.after)
                )


class Orders:
    """Counts the tuples that entered the eddy by the order meant for them."""

    def __init__(self) -> None:
        """Set ``policy`` before anything is.

        ``between_visits`` is what is done after each visit.
        """
        self.policy: Policy | None = None
        self.between_visits: Callable[[], None] | None = None
        self._shares: Counter[tuple[int, ...]] = Counter()

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,  # noqa: ARG002 - only entries are counted
        seconds: float,  # noqa: ARG002 - likewise
    ) -> None:
        """Count the tuples of a visit, if they begin with it."""
        if self.policy is not None and not signature.done:
            order = self.policy.order(signature)
            if order[0] != module:  # exploration: this module first, then as planned
                order = (module, *(other for other in order if other != module))
            self._shares[order] += tuples_in
        if self.between_visits is not None:
            self.between_visits()

    def slice(self, start: float, end: float, rows: int) -> OrderSlice:
        """Return what was counted since the last time."""
        return OrderSlice(start, end, rows, self.taken())

    def taken(self) -> tuple[tuple[Order, int], ...]:
        """Return the tuples of each order since the last time."""
        shares = tuple(self._shares.items())
        self._shares.clear()
        return shares


def _passing(statistics: FilterStatistics, conjuncts: int) -> int:
    """Return how many rows pass that many of the first conjuncts, one after another."""
    rows = float(statistics.rows_in)
    for predicate in statistics.predicates[:conjuncts]:
        rows *= (
            (predicate.passed + predicate.errors) / predicate.rows_in if predicate.rows_in else 0
        )
    return round(rows)


def _predicates(statistics: FilterStatistics) -> tuple[PredicateRecord, ...]:
    return tuple(
        predicate_record(predicate, dropped)
        for predicate, dropped in zip(statistics.predicates, statistics.errors_dropped, strict=True)
    )
