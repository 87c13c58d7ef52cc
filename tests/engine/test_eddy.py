"""The inline eddy: whom it serves next, how large its visits are, what watching it costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from bench.simulation.known_costs import Known
from eddyline.engine.batch import TupleBatch
from eddyline.engine.eddy import Eddy
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.policy import Allotment
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.engine.signature import ENTERING, Signature
from eddyline.expressions import And, Argument, Call
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock

COLUMN = Argument(0, pa.int64())


class Watch:
    """Writes down signature and size of every visit."""

    def __init__(self) -> None:
        self.visits: list[tuple[int, int, int]] = []

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,  # noqa: ARG002 - sizes are enough
        seconds: float,  # noqa: ARG002 - likewise
    ) -> None:
        self.visits.append((signature.done, module, tuples_in))


class Threefold:
    """A module that returns every tuple three times, as one that joins may."""

    name = "threefold"

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        signature = batch.signature.after(0)
        return [TupleBatch(signature, batch.rows) for _ in range(3)]


def watched(
    costs: Sequence[float], passing: Sequence[float], quantum: Quantum, rows: int = 10_000
) -> Watch:
    clock, watch = VirtualClock(), Watch()
    draws = np.random.default_rng(3).random((len(costs), rows))
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(i, (COLUMN,), pa.bool_()) for i in range(len(costs))))),
        [Known(clock, np.full(rows, cost), draws[i] < passing[i]) for i, cost in enumerate(costs)],
        StaticPolicy,
        clock,
        np.random.default_rng(0),
        quantum=quantum,
        instrument=watch,
    )
    eddy.filter([pa.array(np.arange(rows))], rows)
    return watch


def test_survivors_wait_until_they_are_worth_a_visit() -> None:
    watch = watched([5e-5, 5e-5], [0.02, 0.5], FixedQuantum(100))
    second = [tuples for _, module, tuples in watch.visits if module == 1]
    assert sum(second) == pytest.approx(200, abs=50)
    assert len(second) <= 4, "two of a hundred pass, and do not each time have a visit of their own"


def test_tuples_that_come_back_go_before_new_ones() -> None:
    watch = watched([5e-5, 5e-5], [1.0, 1.0], FixedQuantum(100))
    assert [module for _, module, _ in watch.visits] == [0, 1] * 100


def test_dear_modules_get_small_quanta_and_cheap_ones_large() -> None:
    watch = watched([1e-6, 1e-3], [0.9, 0.9], MeasuredQuantum(), rows=40_000)
    largest = [
        max(tuples for _, visited, tuples in watch.visits if visited == module) for module in (0, 1)
    ]
    assert largest[0] > 500
    assert largest[1] < 20


def test_a_module_may_return_more_than_it_got() -> None:
    eddy = Eddy([Threefold()], StaticPolicy(), VirtualClock(), np.random.default_rng(0))
    finished = eddy.run(TupleBatch(ENTERING, (range(5),)))
    assert sum(map(len, finished)) == 15
    (use,) = eddy.statistics().visits.values()
    assert (use.rows_in, use.rows_out, use.selectivity) == (5, 15, 3.0)


def test_an_instrument_that_raises_is_dropped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Watch):
        def visited(self, *visit: object) -> None:
            self.visits.append((0, 0, 0))
            raise OSError(f"no more room for {visit}")

        def __repr__(self) -> str:
            return "Broken()"

    eddy = Eddy(
        [Threefold()],
        StaticPolicy(),
        VirtualClock(),
        np.random.default_rng(0),
        instrument=(broken := Broken()),
    )
    for _ in range(2):
        assert sum(map(len, eddy.run(TupleBatch(ENTERING, (range(5),))))) == 15
    assert len(broken.visits) == 1
    (record,) = caplog.records
    assert record.getMessage() == "An instrument raised an error and is dropped: Broken()"
    assert record.exc_info is not None
    assert "no more room" in str(record.exc_info[1])


class Slow:
    """A clock that tells nothing below a second."""

    resolution = 1.0

    def now(self) -> float:
        return 0.0


def test_no_visit_costs_less_than_the_clock_can_tell() -> None:
    eddy = Eddy([Threefold()], StaticPolicy(), Slow(), np.random.default_rng(0))
    eddy.run(TupleBatch(ENTERING, (range(5),)))
    assert eddy.seconds_in(0) == 1.0


def test_no_tuples_no_visit() -> None:
    assert watched([1.0], [1.0], MeasuredQuantum(), rows=0).visits == []


def test_a_policy_that_waits_where_nothing_else_works_is_found_out() -> None:
    class Waits(StaticPolicy):
        name = "idle"

        def route(
            self,
            signature: Signature,  # noqa: ARG002 - the same for all
            candidates: tuple[int, ...],  # noqa: ARG002
            open_: tuple[int, ...],  # noqa: ARG002
            tuples: int,  # noqa: ARG002
        ) -> Allotment | None:
            return None

    eddy = Eddy([Threefold()], Waits(), VirtualClock(), np.random.default_rng(0))
    with pytest.raises(RuntimeError, match="policy idle waits"):
        eddy.run(TupleBatch(ENTERING, (range(5),)))
