"""The static plan of symmetric hash joins gives what the eddy gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from bench.figures.cost_of_adaptive_joins import StarQuery
from bench.fixed_plan import FixedPlan
from bench.wisconsin import COLUMNS, UNIQUE2
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.join_results import Joined
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.modules.scan_access import HeldScan
from eddyline.engine.policies.naive import NaivePolicy
from eddyline.simulation.virtual_clock import VirtualClock


def _bag(results: Iterable[Joined]) -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    for joined in results:
        rows.update(zip(*(column.to_pylist() for column in joined.outputs), strict=True))
    return rows


@pytest.mark.parametrize("relations", [3, 4])
def test_plan_and_eddy_join_the_same_rows(relations: int) -> None:
    star = StarQuery(relations, everything=True)
    pieces = star.pieces(100, 30)
    orders = [[other for other in range(relations) if other != r] for r in range(relations)]
    planned = _bag(FixedPlan(star.query(), orders, VirtualClock()).run(pieces))
    eddy = JoinEddy(
        star.query(),
        (),
        NaivePolicy,
        VirtualClock(),
        np.random.default_rng(0),
    )
    eddy.reading.goal = Goal.INTERACTIVE
    assert planned == _bag(eddy.run([HeldScan(arrivals) for arrivals in pieces]))
    assert sum(planned.values()) == 100
    keys = [[row[r * len(COLUMNS) + UNIQUE2] for row in planned] for r in range(relations)]
    assert all(of_one == keys[0] for of_one in keys)


def test_only_what_is_counted_is_read() -> None:
    star = StarQuery(3, everything=False)
    plan = FixedPlan(star.query(), [[1, 2], [0, 2], [0, 1]], VirtualClock())
    results = list(plan.run(star.pieces(100, 30)))
    assert sum(joined.rows for joined in results) == 100
    assert not any(joined.outputs for joined in results)
