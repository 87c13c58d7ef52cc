"""Selections on the map side: predicates that are worth checking before rows travel.

A function that is asked on the map side is asked once for each row of its input. Asked later it is
asked only for rows that joins and other predicates have left, but a row that was copied to several
cells may be asked about in each of them. So:

* rows that are copied are checked here, by all predicates over their input;
* rows that go to one cell are checked here by a predicate that costs less than what it saves by
  not sending the rows that it drops. That is learned on the first rows of each task.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eddyline.engine.join.components import ColumnScope
from eddyline.engine.relation import Relation
from eddyline.evaluation.decide import decide
from eddyline.query.expressions import Call
from eddyline.query.terms import Term, terms_of
from eddyline.reports.records import PredicateRecord, TaskRecord
from eddyline.spark.blocks.join_block import JoinBlock
from eddyline.spark.worker.action_settings import settings_of_action
from eddyline.spark.worker.calling import WorkerFunction, make_function
from eddyline.spark.worker.join_task import reading
from eddyline.wall_clock import WorkClock

TRIAL = 64
"""Rows of a task on which a predicate is tried."""

SAVED = 1e-6
"""Seconds that a row costs which is sent, shuffled, built and probed.

Joining 5M with 5M rows of two integers over a shuffle took 1.2 µs a row in all, on two cores.
"""


@dataclass(frozen=True, slots=True)
class Checked:
    """Rows that go on, and the predicates that they have passed, as a mask."""

    batch: pa.RecordBatch
    done: int


@dataclass(slots=True)
class _Candidate:
    """One predicate and what is known of it."""

    number: int
    term: Term
    rows: int = 0
    passed: int = 0
    seconds: float = 0.0

    def is_worth(self, saved: float) -> bool:
        """Tell whether it costs less a row than it saves; yes as long as too little is known."""
        if self.rows < TRIAL:
            return True
        return self.seconds < (self.rows - self.passed) * saved


class EarlySelection:
    """The predicates over one input that call functions, checked as far as it pays."""

    def __init__(self, block: JoinBlock, relation: int) -> None:
        """Take the predicates of input number ``relation``."""
        graph = block.graph
        self._block = block
        self._number = relation
        self._offset = block.query.offsets[relation]
        self._candidates = [
            _Candidate(number, terms_of(predicate))
            for number, (predicate, mask) in enumerate(
                zip(graph.predicates, graph.masks, strict=True)
            )
            if mask == 1 << relation and any(isinstance(node, Call) for node in predicate.walk())
        ]
        self._uses = graph.predicates
        self._functions: list[WorkerFunction] = []
        self._relation: Relation | None = None
        self._clock: WorkClock | None = None

    def check(self, batch: pa.RecordBatch, *, copied: bool) -> Iterator[Checked]:
        """Yield the rows that go on; the first ones apart, since they are a trial.

        Rows that are ``copied`` are checked by all predicates. Columns of the batch behind
        those of the input are passed on.
        """
        if not self._candidates:
            yield Checked(batch, 0)
            return
        untried = min(candidate.rows for candidate in self._candidates) < TRIAL
        if untried and not copied and batch.num_rows > TRIAL:
            yield from self._check(batch.slice(0, TRIAL), copied=copied)
            batch = batch.slice(TRIAL)
        yield from self._check(batch, copied=copied)

    def record(self, read: int) -> TaskRecord:
        """Return what was done here with ``read`` rows, for the report."""
        rows = [0] * len(self._block.query.relations)
        rows[self._number] = read
        made = () if self._relation is None else self._relation.statistics()
        record = reading(self._block, rows, made=made)
        checked = {candidate.number: candidate for candidate in self._candidates}
        seconds = sum(candidate.seconds for candidate in self._candidates)
        return replace(
            record,
            seconds=seconds,
            work_seconds=seconds,
            predicates=tuple(
                _recorded(predicate.text, checked[number]) if number in checked else predicate
                for number, predicate in enumerate(record.predicates)
            ),
        )

    def close(self) -> None:
        """End the user's functions."""
        if self._clock is not None:
            self._clock.close()
        with contextlib.ExitStack() as functions:
            for function in self._functions:
                functions.callback(function.close)

    def _check(self, batch: pa.RecordBatch, *, copied: bool) -> Iterator[Checked]:
        chosen = [
            candidate for candidate in self._candidates if copied or candidate.is_worth(SAVED)
        ]
        if not chosen:
            yield Checked(batch, 0)
            return
        relation, clock = self._made()
        own = len(self._block.query.relations[self._number].types)
        numbers = relation.load(batch.columns[:own], batch.num_rows)
        left = np.arange(numbers.start, numbers.stop)
        failed = np.zeros(batch.num_rows, np.bool_)
        done = 0
        for candidate in sorted(chosen, key=_rank):
            started = clock.now()
            true, errors = decide(candidate.term, ColumnScope(relation, left, self._offset))
            candidate.seconds += clock.now() - started
            candidate.rows += len(left)
            candidate.passed += int(np.count_nonzero(true))
            done |= 1 << candidate.number
            stays = true.copy()
            for position in errors:
                # Whether the error counts is for the reduce side to say, which asks again.
                stays[position] = failed[left[position] - numbers.start] = True
            left = left[stays]
        places = left - numbers.start
        sound = places[~failed[places]]
        if len(sound):
            yield Checked(batch.take(pa.array(sound)), done)
        unsound = places[failed[places]]
        if len(unsound):
            yield Checked(batch.take(pa.array(unsound)), 0)

    def _made(self) -> tuple[Relation, WorkClock]:
        if self._relation is None or self._clock is None:
            self._clock = WorkClock()
            block = self._block
            settings = settings_of_action(block.settings)
            self._functions = [make_function(each, settings) for each in block.functions]
            self._relation = Relation(self._functions, self._uses, self._clock)
        return self._relation, self._clock


def _rank(candidate: _Candidate) -> float:
    """Return (selectivity - 1) / cost: the lower the sooner; unknown ones first."""
    if not candidate.seconds:
        return -np.inf
    return (candidate.passed - candidate.rows) / candidate.seconds


def _recorded(text: str, candidate: _Candidate) -> PredicateRecord:
    return PredicateRecord(
        text=text,
        rows_in=candidate.rows,
        passed=candidate.passed,
        rejected=candidate.rows - candidate.passed,
        seconds=candidate.seconds,
    )
