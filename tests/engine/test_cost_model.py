"""The cost of a visit apart from that of a tuple."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.cost_model import CostModel, TypicalVisit
from eddyline.engine.quantum import MeasuredQuantum
from eddyline.simulation.fixed_quantum import FixedQuantum


def warm_model(prior_per_visit: float) -> CostModel:
    model = CostModel(TypicalVisit(prior_per_visit))
    model.record(1, 1e9)  # the first visit: opens a connection, say
    return model


@given(
    in_tuples=st.floats(0.0, 50.0),
    per_tuple=st.floats(1e-3, 1e3),
    sizes=st.lists(st.integers(1, 10_000), min_size=2, max_size=60).filter(
        lambda sizes: max(sizes) >= 2 * min(sizes)
    ),
)
def test_exact_visits_are_fitted(in_tuples: float, per_tuple: float, sizes: list[int]) -> None:
    per_visit = in_tuples * per_tuple
    model = warm_model(0.0)
    for tuples in sizes:
        model.record(tuples, per_visit + per_tuple * tuples)
    assert model.per_tuple is not None
    for tuples in (min(sizes), max(sizes)):
        fitted = model.per_visit + model.per_tuple * tuples
        assert fitted == pytest.approx(per_visit + per_tuple * tuples, rel=1e-2)


def test_the_first_visit_is_not_believed() -> None:
    model = CostModel(TypicalVisit(15.0))
    model.record(8, 1e6)
    assert (model.per_visit, model.per_tuple) == (15.0, None)
    for tuples in (8, 100, 1000):
        model.record(tuples, 10.0 + tuples * 2.0)
    assert model.per_visit == pytest.approx(10.0)
    assert model.per_tuple == pytest.approx(2.0)


def test_equal_visits_leave_the_guess() -> None:
    model = CostModel(TypicalVisit(15.0))
    for _ in range(50):
        model.record(100, 15.0 + 100 * 2.0)
    assert model.per_visit == 15.0
    assert model.per_tuple == pytest.approx(2.0)


def test_a_wrong_cost_of_visits_goes_back_to_the_guess() -> None:
    model = CostModel(TypicalVisit(15.0))
    for _ in range(60):
        model.record(8, 8 * 50.0)
        model.record(800, 800 * 50.0)
    assert model.per_visit == pytest.approx(0.0, abs=1e-6)
    for _ in range(600):
        model.record(10, 15.0 + 10 * 5.0)
    assert model.per_visit == pytest.approx(15.0, rel=0.05)


def test_a_small_look_is_not_charged_with_the_whole_visit() -> None:
    model = warm_model(300.0)
    model.record(1000, 300.0 + 1000 * 1.0)
    assert model.fair_share(10, 310.0, usual=1000) == pytest.approx(13.0)
    assert model.fair_share(1000, 1300.0, usual=1000) == pytest.approx(1300.0)
    assert model.fair_share(10, 5.0, usual=10) <= 5.0, "never more than it took"


@given(cost=st.floats(1e-9, 1.0), visit=st.floats(0.0, 1e-2), routing=st.floats(1e-6, 1e-4))
def test_a_measured_quantum_keeps_overheads_small(
    cost: float, visit: float, routing: float
) -> None:
    tuples = MeasuredQuantum().size(cost, visit, routing)
    assert tuples >= 1
    if tuples < MeasuredQuantum().most:
        work = (tuples + 0.5) * cost  # half a tuple: sizes are rounded
        assert routing <= 0.0075 * work * 1.001
        assert visit <= 0.02 * work * 1.001
    if tuples > 1:  # and is no larger than that needs
        work = (tuples - 0.5) * cost
        assert (
            routing >= 0.0075 * work * 0.999
            or visit >= 0.02 * work * 0.999
            or (tuples == MeasuredQuantum().most)
        )


def test_quanta_of_the_unknown_and_the_free() -> None:
    assert MeasuredQuantum().size(None, 0.0, 1e-5) == 8
    assert MeasuredQuantum().size(0.0, 0.0, 1e-5) == 1 << 20
    assert FixedQuantum(3).size(1.0, 1.0, 1.0) == 3


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (FixedQuantum, {"tuples": 0}),
        (FixedQuantum, {"tuples": 1.5}),
        (MeasuredQuantum, {"first": 0}),
        (MeasuredQuantum, {"most": 0}),
        (MeasuredQuantum, {"most": -1}),
        (MeasuredQuantum, {"routing_share": 0.0}),
        (MeasuredQuantum, {"routing_share": 1.5}),
        (MeasuredQuantum, {"visit_share": float("nan")}),
    ],
)
def test_quanta_that_make_no_sense_are_refused(
    kind: type[FixedQuantum | MeasuredQuantum], wrong: dict[str, Any]
) -> None:
    (name, value) = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=rf"^{name} is a .*, not {value}$"):
        kind(**wrong)


def test_what_a_visit_costs_is_learned_from_modules_of_the_same_kind() -> None:
    """A module that is new is judged by what visits cost the others, not by the first guess."""
    typical = TypicalVisit(15.0)
    measured, new, alone = CostModel(typical), CostModel(typical), CostModel(TypicalVisit(15.0))
    for tuples in (1, 8, 50, 100, 400, 1000, 2000, 4000):
        measured.record(tuples, 100.0 + 0.2 * tuples)
    for model in (new, alone):
        model.record(1, 100.0)
        model.record(8, 100.0 + 0.2 * 8)
    assert new.per_visit == pytest.approx(100.0, rel=0.3)
    assert new.per_tuple is not None
    assert alone.per_tuple is not None
    assert new.per_tuple < 0.5 * alone.per_tuple


def test_one_module_of_costly_visits_does_not_speak_for_all() -> None:
    """What one measures counts as one measurement among many, and never as a huge one."""
    typical = TypicalVisit(15.0)
    for _ in range(20):
        typical.learn(100.0)
    typical.learn(1e6)
    assert typical.seconds < 120.0
    typical.learn(0.0)
    assert typical.seconds >= 15.0
