"""The opponents of the SteM paper's figures do what the paper says of them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.access_methods.index_join import EitherJoin, IndexJoin, JoinsInTurn
from bench.access_methods.runs import Run, over_index_joins, over_stems
from bench.access_methods.sources import Index, q1, q3, stalled
from bench.access_methods.world import SleepingWorld, VirtualWorld, World
from eddyline.engine.modules.module import ConcurrentModule
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.static import StaticPolicy

R_ROWS = (np.arange(6), np.array([0, 1, 0, 2, 9, 1]))
"""R: its key, and a column that matches keys 0 to 3 of the other; 9 has no match."""

S_ROWS = (np.arange(4), np.arange(4))


def index_join(world: World, index: Index, cache: set[int] | None = None) -> Run:
    join = IndexJoin(0, "RS", (0, R_ROWS[1]), 1, index, world, cache)
    assert isinstance(join, ConcurrentModule)
    return over_index_joins(
        world, (R_ROWS, 0.1), [join], EitherJoin(1), StaticPolicy(), relations=2
    )


def test_an_index_join_looks_each_key_up_once_and_keeps_the_order() -> None:
    index = Index(S_ROWS, 0)
    run = index_join(VirtualWorld(), index)
    assert [row for _, row in run.rows] == [(0, 0), (1, 1), (2, 0), (3, 2), (5, 1)]
    assert [key for _, key in index.probes] == [0, 1, 2, 9]
    # The third tuple finds its match in the cache, but behind the second, which does not.
    assert run.times == pytest.approx([1.1, 2.1, 2.1, 3.1, 4.1])
    assert run.seconds == pytest.approx(4.1)


def test_a_shared_cache_is_used_by_all_that_share_it() -> None:
    index = Index(S_ROWS, 0)
    run = index_join(VirtualWorld(), index, cache={0, 1, 9})
    assert len(run.rows) == 5
    assert [key for _, key in index.probes] == [2]


def test_joins_in_turn_follow_the_tree() -> None:
    world = VirtualWorld()
    t, u = Index(S_ROWS, 0), Index(S_ROWS, 0)
    joins = [
        IndexJoin(0, "RT", (0, R_ROWS[1]), 1, t, world),
        IndexJoin(1, "TU", (1, S_ROWS[1]), 2, u, world),
    ]
    routes = JoinsInTurn([(0, 1), (1, 2)])
    run = over_index_joins(
        world, (R_ROWS, 0.1), joins, routes, StaticPolicy(), relations=3, partial={0b011: 1}
    )
    assert sorted(row for _, row in run.rows) == [
        (0, 0, 0), (1, 1, 1), (2, 0, 0), (3, 2, 2), (5, 1, 1)
    ]  # fmt: skip
    assert [key for _, key in u.probes] == [0, 1, 2]  # never one of which T knows nothing
    assert run.partial_between(0b011, 0.0, 10.0) == 5


def test_joins_and_stems_give_the_same_rows() -> None:
    stems = over_stems(
        VirtualWorld(), q1(), {0: (R_ROWS, 0.1)}, {(1, 0): Index(S_ROWS, 0)}, BenefitPolicy
    )
    assert sorted((row[0], row[2]) for _, row in stems.rows) == sorted(
        row for _, row in index_join(VirtualWorld(), Index(S_ROWS, 0)).rows
    )
    assert stems.area(10.0) > index_join(VirtualWorld(), Index(S_ROWS, 0)).area(10.0)


def test_partial_rows_are_counted_once() -> None:
    run = over_stems(
        VirtualWorld(),
        q3(),
        {0: (R_ROWS, 0.1)},
        {(1, 0): Index(S_ROWS, 0, stalled(0.0, 100.0)), (2, 0): Index(S_ROWS, 0)},
        BenefitPolicy,
        partial={0b101: 1},
        begin=lambda eddy: eddy.want_partial_rows(),
    )
    assert len(run.rows) == 5
    # One key was T's to begin with: while it stalls the others are joined with U alone.
    assert 3 <= run.partial_between(0b101, 0.0, 100.0) <= 5


@pytest.mark.parametrize(
    ("begun", "seconds"), [(10.0, 1.0), (99.5, 101.0 - 0.0), (150.0, 51.0), (200.0, 1.0)]
)
def test_a_source_that_stalls_answers_after_that(begun: float, seconds: float) -> None:
    assert stalled(100.0, 200.0)(begun) == pytest.approx(seconds, abs=0.51)
    assert begun + stalled(100.0, 200.0)(begun) >= (200.0 if 99.0 < begun < 200.0 else 0.0)


def test_in_real_time_the_same_rows_come() -> None:
    """Sources sleep in threads; what comes is the same, whenever it comes."""
    virtual = index_join(VirtualWorld(), Index(S_ROWS, 0))
    real = index_join(SleepingWorld(0.001), Index(S_ROWS, 0))
    assert sorted(row for _, row in real.rows) == sorted(row for _, row in virtual.rows)
    stems = over_stems(
        SleepingWorld(0.001), q1(), {0: (R_ROWS, 0.1)}, {(1, 0): Index(S_ROWS, 0)}, BenefitPolicy
    )
    assert sorted((row[0], row[2]) for _, row in stems.rows) == sorted(
        row for _, row in virtual.rows
    )
