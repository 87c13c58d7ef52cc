"""The six plans: what each does twice, and what it makes for nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.sharing.sharing_plans import PLANS
from eddyline.standing.engine.shared_query import SharedQuery
from tests.standing.engine.shared import (
    ALIKE,
    PAPER,
    Push,
    Run,
    apart,
    joins,
    of_plan,
    pushes,
    queries,
    selects,
)

PRECISE = pytest.mark.parametrize("plan", ["tulip", "car"])


def zombies(run: Run, set_: Mapping[int, SharedQuery], came: Sequence[Push]) -> int:
    """Return how many joined tuples were made that no query can make anything of."""
    arrived = [[row for push in came if push.stream == s for row in push.rows] for s in range(3)]

    def is_wanted(spanned: int, arrivals: Sequence[int]) -> bool:
        streams = [s for s in range(3) if spanned >> s & 1]
        components = {s: arrived[s][at] for s, at in zip(streams, arrivals, strict=True)}
        return any(
            query.shape.streams & spanned == spanned
            and query.shape.connects(spanned)
            and joins(query, components)
            and all(selects(query, s, row) for s, row in components.items())
            for query in set_.values()
        )

    return sum(not is_wanted(*made) for made in run.audit.tuples)


@PRECISE
def test_no_operation_is_repeated_and_no_zombie_is_made(plan: str) -> None:
    """PS1 and PS2 (Krishnamurthy et al., 2004, Section 3), for TULIP and CAR."""

    @of_plan(plan)
    @given(
        st.dictionaries(st.integers(0, 300), queries(PAPER), min_size=1, max_size=6),
        pushes.map(lambda each: each[:8]),
    )
    def check(set_: dict[int, SharedQuery], came: list[Push]) -> None:
        run = Run(plan)
        run.eddy.add(set_)
        run.push(came)
        assert run.audit.precision().repeated == {}
        assert zombies(run, set_, came) == 0
        assert run.zombies == 0

    check()


@pytest.mark.parametrize(
    ("plan", "repeated", "has_zombies"),
    [
        # Section 3.2: "zombie tuples that have to be eliminated later"; predicates on a row
        # are asked for every joined tuple that it is part of.
        ("selection_pull_up", {"select", "output"}, True),
        ("filtered_pull_up", {"select", "output"}, True),
        # Section 4.1, problem 1: "the build and probe operations on the tuples are duplicated".
        ("selection_push_down", {"build", "probe", "output"}, False),
        ("tulip", set(), False),
        # Section 6.2: built "along with" the scan, rows in SteMs know nothing of selections.
        ("cacq", {"select"}, True),
        ("car", set(), False),
    ],
)
def test_each_plan_violates_what_the_paper_says(
    plan: str,
    repeated: set[str],
    has_zombies: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    set_ = apart((0, 4), (3, 8))
    run = Run(plan)
    run.eddy.add(set_)
    run.push(ALIKE)
    assert set(run.audit.precision().repeated) == repeated
    assert (zombies(run, set_, ALIKE) > 0) is has_zombies
    assert (run.zombies > 0) is has_zombies


def test_zombies_are_counted_where_they_are_found() -> None:
    set_ = apart((0, 1), (5, 6))
    for plan in PLANS:
        run = Run(plan)
        run.eddy.add(set_)
        run.push(ALIKE)
        assert run.zombies == zombies(run, set_, ALIKE)
        assert run.eddy.statistics().made == len(run.audit.tuples)
