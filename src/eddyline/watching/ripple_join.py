"""A join of which one relation, or two, are read in random units, with estimates after each.

With two it is a ripple join (Haas and Hellerstein, Ripple Joins for Online Aggregation, 1999): each
unit is joined with all units of the other relation that have been read. How many units of each
come next is decided round by round, by what each adds to the variance of the estimates and by the
seconds that its units have taken (:mod:`eddyline.engine.join.reading_rates`).
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from eddyline.engine.join.join_results import Joined
from eddyline.engine.join.reading_rates import ROUND, Rates, narrowing_rates
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import Arrival
from eddyline.expressions import Argument, Expression, with_arguments
from eddyline.watching.running_aggregates import Estimates, RunningAggregates
from eddyline.watching.watched_values import Values

LATELY: Final = 9
"""Units whose median time tells what the next one takes: a pause in one of them tells nothing."""

UNIT_TYPE: Final = pa.int32()


class UnitScan(Protocol):
    """A scan whose arrivals are whole units, each as soon as it is wanted."""

    @property
    def ended(self) -> bool:
        """Whether no unit is left that has a row."""
        ...

    def want(self, units: int) -> None:
        """Ask for so many more units."""
        ...

    def poll(self) -> Arrival | None:
        """Return the next unit; None where none is there now."""
        ...


class UnitJoin(Protocol):
    """What joins units: a :class:`~eddyline.engine.join.join_eddy.JoinEddy`."""

    def push(self, relation: int, arrival: Arrival) -> Iterable[Joined]:
        """Take rows of a relation, and yield what they join to with those that came before."""
        ...

    def end(self, relation: int) -> Iterable[Joined]:
        """Take note that a relation has no more rows, and yield what waited for that."""
        ...

    def finish(self) -> Iterable[Joined]:
        """Yield what lookups have still to answer."""
        ...


@dataclass
class SampledInput:
    """A relation that is read in units.

    ``units`` there are; ``wanted`` of these were asked for, and ``done`` are joined. ``rate`` is
    the part that it has of the round that was decided last, and ``seconds`` are what its last
    units took.
    """

    relation: int
    scan: UnitScan
    units: int
    wanted: int = 0
    done: int = 0
    rate: float = 0.0
    held: int = 0  # bytes
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATELY))

    @property
    def is_complete(self) -> bool:
        """Whether all units are joined."""
        return self.done == self.units


class RippleJoin:
    """Reads one or two relations of a join unit by unit; all others have been read before."""

    def __init__(
        self,
        eddy: UnitJoin,
        inputs: Sequence[SampledInput],
        values: Values,
        running: RunningAggregates,
        now: Callable[[], float],
        *,
        room: float = float("inf"),
        rates: Rates = narrowing_rates,
    ) -> None:
        """``eddy`` is over the query that :func:`with_units` returns, if there are two inputs.

        ``values`` are what ``running`` aggregates, ``now`` is a clock in seconds. Where rows of two
        inputs take more than ``room`` bytes the smaller one is read to its end, for then rows of
        the other need not be kept.
        """
        self.inputs = tuple(inputs)
        self._eddy = eddy
        self._values = values
        self._running = running
        self._now = now
        self._room = room
        self._rates = rates
        self._contributions = (0.0,) * len(inputs)
        self._wanted: list[int] = []  # whose units were asked for and have not come, in turns

    def run(self, wait: Callable[[], None]) -> Iterator[Estimates]:
        """Yield the estimates after each unit; ``wait`` is called where none is there."""
        while not all(source.is_complete for source in self.inputs):
            while len(self._wanted) < ROUND and self._decide():
                pass
            began = self._now()
            number, unit = self._next(wait)
            source = self.inputs[number]
            if unit.rows:
                self._add(self._eddy.push(source.relation, self._marked(source, unit)))
                self._add(self._eddy.finish())
            source.held += sum(column.nbytes for column in unit.columns)
            if source.done == source.units - 1:
                self._add(self._eddy.end(source.relation))
                self._add(self._eddy.finish())
            source.done += 1
            self._running.end_unit(number)
            estimates = self._running.estimates()
            self._contributions = estimates.contributions
            source.seconds.append(self._now() - began)
            yield estimates

    def _decide(self) -> bool:
        """Ask for the units of another round; tell whether there are any."""
        given = self._round()
        if not any(given):  # what is read now was decided before
            return False
        for source, units in zip(self.inputs, given, strict=True):
            source.rate = units / sum(given)
            if units:
                source.wanted += units
                source.scan.want(units)
        # In turns, as fits their numbers.
        turns = sorted(((i + 0.5) / n, r) for r, n in enumerate(given) for i in range(n))
        self._wanted += [number for _, number in turns]
        return True

    def _round(self) -> Sequence[int]:
        left = [source.units - source.wanted for source in self.inputs]
        if self._is_full():
            # What is left of each, in bytes.
            smaller = min(
                (number for number, units in enumerate(left) if units),
                key=lambda n: self.inputs[n].held / self.inputs[n].done * left[n],
            )
            return [min(ROUND, n) if r == smaller else 0 for r, n in enumerate(left)]
        return self._rates(
            [source.units for source in self.inputs],
            [source.wanted for source in self.inputs],
            [
                # What a unit adds to the variance: the part of all that are done, times these.
                part * source.done / (1.0 - source.done / source.units) if part else 0.0
                for part, source in zip(self._contributions, self.inputs, strict=True)
            ],
            [
                statistics.median(source.seconds) if source.seconds else 0.0
                for source in self.inputs
            ],
        )

    def _is_full(self) -> bool:
        return (
            len(self.inputs) > 1
            and all(source.done for source in self.inputs)
            and all(source.wanted < source.units for source in self.inputs)
            and sum(source.held for source in self.inputs) > self._room
        )

    def _next(self, wait: Callable[[], None]) -> tuple[int, Arrival]:
        """Return a unit that is there: the one that was asked for first."""
        while True:
            for number in dict.fromkeys(self._wanted):
                scan = self.inputs[number].scan
                unit = scan.poll()
                if unit is None and scan.ended:
                    unit = Arrival((), 0)
                if unit is not None:
                    self._wanted.remove(number)
                    return number, unit
            wait()

    def _marked(self, source: SampledInput, unit: Arrival) -> Arrival:
        if len(self.inputs) == 1:
            return unit
        numbers = pa.array(np.full(unit.rows, source.done, np.int32), UNIT_TYPE)
        return replace(unit, columns=(*unit.columns, numbers))

    def _add(self, joined: Iterable[Joined]) -> None:
        marks = len(self.inputs) if len(self.inputs) > 1 else 0
        for result in joined:
            outputs = result.outputs[: len(result.outputs) - marks]
            units = result.outputs[len(outputs) :] if marks else None
            self._running.add(self._values.of(outputs, result.rows), result.rows, units)


def with_units(query: JoinQuery, sampled: Sequence[int]) -> JoinQuery:
    """Return a query whose sampled relations have the number of a row's unit as another column.

    It is the last one of each, and the query's last outputs are these.
    """
    relations = tuple(
        replace(relation, types=(*relation.types, UNIT_TYPE)) if r in sampled else relation
        for r, relation in enumerate(query.relations)
    )
    moved = JoinQuery(relations)

    def placed(expression: Expression) -> Expression:
        return with_arguments(
            expression, lambda column: moved.column(*query.place_of(column.index))
        )

    names: list[str] = []
    if query.column_names:
        for r, (start, end) in enumerate(zip(query.offsets, query.offsets[1:], strict=False)):
            names += [*query.column_names[start:end], *(["unit"] if r in sampled else [])]
    marks: list[Argument] = [moved.column(r, len(relations[r].types) - 1) for r in sampled]
    return replace(
        query,
        relations=relations,
        predicates=tuple(map(placed, query.predicates)),
        outputs=(*map(placed, query.outputs), *marks),
        column_names=tuple(names),
    )


def rates_of(inputs: Sequence[SampledInput]) -> Mapping[int, tuple[tuple[int, int], float | None]]:
    """Return by relation its units that are joined, all of them, and its part of what is read now.

    The part is None where one relation is sampled, or one is left.
    """
    going_on = [source for source in inputs if not source.is_complete]
    return {
        source.relation: (
            (source.done, source.units),
            source.rate if len(going_on) > 1 else None,
        )
        for source in inputs
    }
