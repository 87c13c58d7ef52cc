"""What classes are worth: told from older rows, and believed as far as newer ones bear it out."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.engine.filter.class_costs import BucketCosts
from eddyline.engine.filter.class_counts import BucketCounts
from eddyline.engine.filter.class_orders import MOST_CLASSES, ClassOrders


def counts(passes: list[list[float]], rows: float = 1000.0) -> BucketCounts:
    """Return counts of so many rows in each bucket, all asked everywhere."""
    shares = np.array(passes)
    buckets, modules = shares.shape
    return BucketCounts(
        np.full(buckets, rows),
        np.full((buckets, modules), rows),
        shares * rows,
        BucketCosts.none(buckets, modules),
    )


OPPOSED = [[0.1, 0.9], [0.9, 0.1]]
ALIKE = [[0.1, 0.9], [0.1, 0.9]]


def orders(modules: int = 2, precedence: dict[int, int] | None = None) -> ClassOrders:
    return ClassOrders(np.ones(modules), precedence or {})


def test_classes_are_worth_what_their_orders_save() -> None:
    split = orders().split(counts(OPPOSED), counts(OPPOSED))
    # By either order 1 + (0.1 + 0.9) / 2 calls a row, by the best of each class 1.1.
    assert split.saving == pytest.approx(1.0 - 1.1 / 1.5, abs=0.01)
    assert split.cost == pytest.approx(1.5, abs=0.01)
    assert split.rows == 2000.0


def test_buckets_of_one_order_are_one_class() -> None:
    twice = counts([*OPPOSED, *OPPOSED])
    assert orders().split(twice, twice).classes == 2
    groups = orders().groups(twice)
    assert groups[0] == groups[2] != groups[1] == groups[3]
    assert orders().split(counts(ALIKE), counts(ALIKE)).classes == 1


@pytest.mark.parametrize("newer", [ALIKE, OPPOSED[::-1]])
def test_what_was_so_only_before_saves_nothing(newer: list[list[float]]) -> None:
    assert orders().split(counts(OPPOSED), counts(newer)).saving <= 0.0


def test_a_look_at_few_rows_is_in_doubt() -> None:
    few, many = (orders().split(counts(ALIKE, n), counts(ALIKE, n)).doubt for n in (50.0, 5000.0))
    assert few == pytest.approx(0.1)
    assert many == pytest.approx(0.01)
    assert orders().split(counts(ALIKE), BucketCounts.none(2, 2)).doubt == 1.0


def test_there_are_no_more_than_a_few_classes() -> None:
    draw = np.random.default_rng(0)
    many = counts(draw.random((16, 6)).tolist())
    assert orders(6).split(many, many).classes <= MOST_CLASSES


def test_modules_that_wait_for_others_come_after_them() -> None:
    last_first = counts([[0.9, 0.5, 0.1], [0.5, 0.9, 0.1]])
    free = orders(3).split(last_first, last_first)
    held = orders(3, {2: 0b011}).split(last_first, last_first)
    assert held.classes == 2
    assert free.cost < held.cost  # the best module may not come first


def test_the_cost_of_a_bucket_is_told_from_visits_of_all() -> None:
    draw = np.random.default_rng(0)
    tuples = draw.multinomial(20, [0.5, 0.5], 400).astype(float)
    costs = tuples @ [0.5, 1.5] / 20
    visits = BucketCosts.none(2, 1)
    assert visits.by_bucket().tolist() == [[1.0], [1.0]]
    visits.learn(0, tuples, costs)
    assert visits.by_bucket()[:, 0] == pytest.approx([0.5, 1.5], abs=0.2)
    noisy = BucketCosts.none(2, 1)
    noisy.learn(0, tuples[:5], draw.choice([0.1, 5.0], 5))
    assert noisy.by_bucket()[:, 0] == pytest.approx([1.0, 1.0], abs=0.5)


def test_groups_have_the_sums_of_their_buckets() -> None:
    draw = np.random.default_rng(0)
    tuples = draw.multinomial(20, [0.2, 0.5, 0.3], 100).astype(float)
    costs = draw.random(100)
    whole, apart = counts([[0.1, 0.5]] * 2), counts([[0.1, 0.5]] * 3)
    groups = np.array([0, 1, 0])
    apart.costs.learn(0, tuples, costs)
    whole.costs.learn(0, np.stack([tuples[:, 0] + tuples[:, 2], tuples[:, 1]], axis=1), costs)
    together = apart.together(groups, 2)
    assert together.entered.tolist() == [2000.0, 1000.0]
    assert together.passed.tolist() == [[200.0, 1000.0], [100.0, 500.0]]
    assert together.costs.by_bucket() == pytest.approx(whole.costs.by_bucket())


def test_orders_differ_by_cost_alone() -> None:
    half = [[0.5, 0.5], [0.5, 0.5]]
    both = counts(half)
    for module, own in ((0, [0.2, 1.8]), (1, [1.8, 0.2])):
        both.costs.learn(module, np.eye(2).repeat(100, axis=0), np.repeat(own, 100))
    split = orders().split(both, both)
    assert split.classes == 2
    assert split.saving > 0.2
