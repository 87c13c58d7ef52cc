"""One task of a join block: its eddy, and what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.blocks.column_types import returned_type, spark_type
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.functions.remembered_function import MemoryStatistics
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.join_results import Joined
from eddyline.engine.join.join_statistics import JoinStatistics
from eddyline.engine.relation import CallStatistics
from eddyline.engine.signature import Signature
from eddyline.exchange.blobs import together
from eddyline.expressions import Call, calls_in
from eddyline.expressions.value_types import relabelled
from eddyline.reports.merging import compacted
from eddyline.reports.records import (
    FunctionRecord,
    JoinRecord,
    OrderSlice,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
)
from eddyline.tasks.block_task import BlockTask, explored, with_policies
from eddyline.tasks.filter_task import Orders
from eddyline.tasks.our_functions import send_results
from eddyline.tasks.task_lookups import TaskLookups, job_of
from eddyline.tasks.task_records import function_records, predicate_record, stem_record


class JoinOrders(Orders):
    """Counts rows by the order meant for them, each row once.

    A row counts on its first visit to a predicate or to another relation's SteM; one that is only
    built, since its matches come later, has no order. The order begins with the SteM of the row's
    own relation.
    """

    def __init__(self, first_stem: int) -> None:
        """``first_stem`` is the module that is relation 0's SteM."""
        super().__init__()
        self._first_stem = first_stem
        # Tuples that were counted and come again. Their signature does not tell: others
        # arrive with the same one, having passed predicates before they came.
        self._counted: Counter[Signature] = Counter()

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,
        seconds: float,  # noqa: ARG002 - only tuples are counted
    ) -> None:
        """Count the tuples of a visit whose way begins with it."""
        if self.between_visits is not None:
            self.between_visits()
        spanned = signature.spanned
        if self.policy is None or spanned & (spanned - 1) or signature.probed or not tuples_in:
            return
        known = min(self._counted[signature], tuples_in)
        self._counted[signature] -= known
        own = self._first_stem + spanned.bit_length() - 1
        if module == own:
            built = signature._replace(built=spanned)
            self._counted[built] += known * tuples_out // tuples_in
            return
        if tuples_in > known:
            order = self.policy.order(signature)
            others = (other for other in order if other not in (own, module))
            self._shares[own, module, *others] += tuples_in - known
        if module < self._first_stem:
            self._counted[signature.after(module)] += tuples_out


OUTPUT_ROWS = 1 << 16
"""Rows of a batch that is handed back to Spark, at the most by a little."""


class JoinTask(BlockTask):
    """One task's eddy over joins."""

    def __init__(
        self, block: JoinBlock, options: RoutingOptions, prepared: JoinEddy | None = None
    ) -> None:
        """Make the eddy, or take one that an earlier task of this process has prepared."""
        super().__init__(block.identity, block.functions, block.settings, options)
        self._block = block
        self._orders = JoinOrders(len(block.graph.predicates))
        self._lookups = TaskLookups(block, job_of(options), SharedAgenda())
        try:
            self.eddy = self._eddy(prepared)
        except BaseException:
            self._lookups.close()
            raise
        self._orders.policy = self.eddy.eddy.policy
        self._enough = OUTPUT_ROWS
        self._before = _Before.of(self.eddy) if prepared is not None else None

    def _eddy(self, prepared: JoinEddy | None) -> JoinEddy:
        if prepared is not None:
            prepared.renew(self.functions, self.work_clock, self._orders)
            return prepared
        predicates = self._block.graph.predicates
        routed = [n for n, predicate in enumerate(predicates) if calls_in(predicate)]
        told = self.told_by_others(self._block, len(predicates), routed)
        block = self._block.with_priors(told) if told else self._block
        return JoinEddy(
            block.query,
            self.functions,
            self._options.policy.make,
            self.work_clock,
            self.generator,
            lookups=self._lookups.sources,
            instrument=self._orders,
            learned=None if told else self.known(),
        )

    def end(self, error: BaseException | None) -> None:
        """End the user's iterators and lookups; leave what was learned for the next task."""
        self._lookups.close()
        self.finish(self.eddy.learned(), error, sum(self.came()))

    def between_visits(self, do: Callable[[], None]) -> None:
        """Have something done after each visit to a module."""
        self._orders.between_visits = do

    def give_first_rows_soon(self) -> None:
        """Send first results in small batches: a reader who needs no others ends the task."""
        self._enough = 1

    def load(self, joined: Iterable[Joined]) -> None:
        """Let the eddy take rows that join with nothing yet."""
        for _ in self.timed(joined):
            raise AssertionError("small inputs alone cannot join")

    def results(self, joined: Iterable[Joined]) -> Iterator[pa.RecordBatch]:
        """Yield joined rows in batches of a good size."""
        types = [returned_type(spark_type(text)) for text in self._block.output_types]
        names = [f"c{number}" for number in range(len(types))]
        held: list[pa.RecordBatch] = []
        rows = 0
        for result in self.timed(joined):
            columns = list(map(relabelled, result.outputs, types))
            held.append(pa.record_batch(columns, names=names))
            rows += result.rows
            if rows >= self._enough:
                yield from together(held)
                held, rows = [], 0
                if self._enough < OUTPUT_ROWS:
                    self._enough *= 2
                    send_results()
        yield from together(held)

    def came(self) -> tuple[int, ...]:
        """Return how many rows of each input came in this task."""
        now = self.eddy.statistics().read
        if self._before is None:
            return now
        return tuple(one - two for one, two in zip(now, self._before.done.read, strict=True))

    def record(
        self, read: Sequence[int] | None = None, came: Sequence[int] | None = None
    ) -> TaskRecord:
        """Return what this task did.

        ``read`` are the rows of each input that this task counts and no other, ``came`` those that
        came in all; none where others report them.
        """
        now = self.eddy.statistics()
        before = self._before
        made = now.calls if before is None else _calls_since(now.calls, before.done.calls)
        counted = reading(self._block, read, came, made, self.memories())
        stems = [
            stem_record(stem, seconds)
            for stem, seconds in zip(now.stems, _stem_seconds(self.eddy), strict=True)
        ]
        record = replace(
            with_policies(self.times(now.eddy), self.eddy.learned()),
            rows_in=counted.rows_in,
            rows_out=now.rows_out,
            predicates=_named(self._block, map(predicate_record, now.predicates)),
            functions=counted.functions,
            join=counted.join,
        )
        if before is not None:
            record, stems = _since(record, before), _stems_since(stems, before)
        if counted.join is not None:
            record = replace(record, join=replace(counted.join, stems=tuple(stems)))
        return compacted(record)

    def timed(self, joined: Iterable[Joined]) -> Iterator[Joined]:
        """Pass joined rows on, and note how long they took and in which orders they came."""
        source = iter(joined)
        while True:
            started, began = self.clock.now(), self.work_clock.now()
            result = next(source, None)
            ended, done = self.clock.now(), self.work_clock.now()
            self.spent(ended - started, done - began)
            taken = self._orders.taken()
            if taken:
                span = OrderSlice(
                    self.epoch + started, self.epoch + ended, sum(n for _, n in taken), taken
                )
                self.slices.append(span)
            if result is None:
                return
            yield result


def reading(
    block: JoinBlock,
    read: Sequence[int] | None = None,
    came: Sequence[int] | None = None,
    made: Sequence[CallStatistics] = (),
    memories: Sequence[MemoryStatistics | None] = (),
) -> TaskRecord:
    """Return the record of rows that were read and not joined; ``made`` are calls on them.

    ``memories`` are what the functions have remembered.
    """
    query = block.query
    nothing = (0,) * len(query.relations)
    read = nothing if read is None else tuple(read)
    return TaskRecord(
        block=block.identity,
        tasks=0,
        rows_in=sum(read),
        predicates=tuple(
            PredicateRecord(text=text) for text in block.steps[: -len(query.relations)]
        ),
        functions=_functions(block, read, made, memories),
        join=JoinRecord(
            stems=tuple(SteMRecord(relation=relation.name) for relation in query.relations),
            read=read,
            came=nothing if came is None else tuple(came),
            late=tuple(n for n, mask in enumerate(block.graph.masks) if mask & (mask - 1)),
        ),
    )


def _functions(
    block: JoinBlock,
    read: Sequence[int],
    made: Sequence[CallStatistics],
    memories: Sequence[MemoryStatistics | None],
) -> tuple[FunctionRecord, ...]:
    """Return how often functions were called, and how often plain Spark would have.

    That is once for every row of a call's input; over several inputs, and where only a value is
    wanted, perhaps above the joins, nobody knows, so that the calls made stand for it (see
    :class:`~eddyline.reports.records.FunctionRecord`).
    """
    query = block.query
    asked = {call for predicate in block.graph.predicates for call in calls_in(predicate)}
    by_call = {counts.call: counts for counts in made}
    distinct_calls = {
        node: None
        for expression in (*block.graph.predicates, *query.outputs)
        for node in expression.walk()
        if isinstance(node, Call)
    }
    calls = []
    joined = []
    for call in distinct_calls:
        done = by_call.get(call, CallStatistics(call, 0, 0, 0.0))
        mask = query.relations_in(call) or 1
        single = not mask & (mask - 1)
        below = single and call in asked
        calls.append(replace(done, possible=read[mask.bit_length() - 1] if below else done.calls))
        if not below:
            joined.append((calls[-1], not single))
    return tuple(
        replace(
            record,
            joined_calls=sum(
                counts.possible for counts, _ in joined if counts.call.function == number
            ),
            joined_places=sum(
                1 for counts, late in joined if late and counts.call.function == number
            ),
        )
        for number, record in enumerate(function_records(block.functions, calls, memories))
    )


def _named(block: JoinBlock, predicates: Iterable[PredicateRecord]) -> tuple[PredicateRecord, ...]:
    """Return predicates under the names that they have in the whole report."""
    return tuple(
        replace(predicate, text=text)
        for predicate, text in zip(predicates, block.steps, strict=False)
    )


@dataclass(frozen=True, slots=True)
class _Before:
    """What an eddy had done before a task took it."""

    done: JoinStatistics
    stem_seconds: tuple[float, ...]
    explored: int

    @classmethod
    def of(cls, eddy: JoinEddy) -> _Before:
        return cls(eddy.statistics(), _stem_seconds(eddy), explored(eddy.learned()))


def _stem_seconds(eddy: JoinEddy) -> tuple[float, ...]:
    count = len(eddy.query.relations)
    return tuple(eddy.eddy.seconds_in(eddy.routes.stem(relation)) for relation in range(count))


def _calls_since(
    calls: Sequence[CallStatistics], before: Sequence[CallStatistics]
) -> list[CallStatistics]:
    return [
        replace(now, calls=now.calls - then.calls, seconds=now.seconds - then.seconds)
        for now, then in zip(calls, before, strict=True)
    ]


def _since(record: TaskRecord, before: _Before) -> TaskRecord:
    done = before.done
    predicates = map(predicate_record, done.predicates)
    return replace(
        record,
        rows_out=record.rows_out - done.rows_out,
        work_seconds=record.work_seconds - done.eddy.work_seconds,
        routing_seconds=record.routing_seconds - done.eddy.routing_seconds,
        decisions=record.decisions - done.eddy.decisions,
        explored=record.explored - before.explored,
        predicates=tuple(
            _predicate_since(now, then)
            for now, then in zip(record.predicates, predicates, strict=True)
        ),
    )


def _predicate_since(now: PredicateRecord, then: PredicateRecord) -> PredicateRecord:
    return replace(
        now,
        rows_in=now.rows_in - then.rows_in,
        passed=now.passed - then.passed,
        rejected=now.rejected - then.rejected,
        null=now.null - then.null,
        errors_held=now.errors_held - then.errors_held,
        seconds=now.seconds - then.seconds,
        first_rows=now.first_rows - then.first_rows,
        first_seconds=now.first_seconds - then.first_seconds,
        nested=tuple(map(_predicate_since, now.nested, then.nested)),
    )


def _stems_since(stems: Sequence[SteMRecord], before: _Before) -> list[SteMRecord]:
    """Return what the SteMs did since; what they hold is of now."""
    return [
        replace(
            now,
            builds=now.builds - then.builds,
            probes=now.probes - then.probes,
            matches=now.matches - then.matches,
            bounced=now.bounced - then.bounced,
            killed=now.killed - then.killed,
            seconds=now.seconds - seconds,
        )
        for now, then, seconds in zip(stems, before.done.stems, before.stem_seconds, strict=True)
    ]
