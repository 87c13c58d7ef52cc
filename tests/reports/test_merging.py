"""Merging adds up, whatever the order and the tree, in bounded memory."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from dataclasses import replace
from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports import merging
from eddyline.reports.merging import compacted, largest_changes, merge, merge_by_block
from eddyline.reports.records import (
    OTHER_ORDERS,
    Change,
    FunctionRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    TaskRecord,
    ToldApartRecord,
)
from tests.properties import examples
from tests.reports.samples import START, drifting_task

ORDERS: list[Order] = list(permutations(range(3)))

counts = st.integers(0, 1000)
# Sums of such times are exact, so that results can be compared with ==.
times = st.integers(0, 4000).map(lambda steps: steps / 8)


@st.composite
def slices(draw: st.DrawFn) -> OrderSlice:
    start = START + draw(st.integers(0, 40_000)) / 64
    orders = draw(st.lists(st.sampled_from(ORDERS), unique=True, max_size=4))
    shares = tuple((order, draw(counts)) for order in orders)
    return OrderSlice(start, start + draw(times) / 64, sum(rows for _, rows in shares), shares)


@st.composite
def predicates(draw: st.DrawFn, text: str, nested: tuple[str, ...] = ()) -> PredicateRecord:
    return PredicateRecord(
        text=text,
        rows_in=draw(counts),
        passed=draw(counts),
        rejected=draw(counts),
        null=draw(counts),
        errors_held=draw(counts),
        errors_dropped=draw(counts),
        seconds=draw(times),
        nested=tuple(draw(predicates(part)) for part in nested),
    )


@st.composite
def changes(draw: st.DrawFn) -> Change:
    return Change(
        START + draw(times),
        draw(st.integers(0, 2)),
        draw(st.sampled_from(ChangedQuantity)),
        draw(st.sampled_from((0.0, 0.125, 0.5, 1.0))),
        draw(st.sampled_from((0.0, 0.125, 0.5, 1.0, float("inf")))),
    )


@st.composite
def records(draw: st.DrawFn) -> TaskRecord:
    return TaskRecord(
        block="b",
        rows_in=draw(counts),
        rows_out=draw(counts),
        seconds=draw(times),
        work_seconds=draw(times),
        routing_seconds=draw(times),
        decisions=draw(counts),
        predicates=(draw(predicates("p")), draw(predicates("q OR r", ("q", "r")))),
        functions=(
            FunctionRecord(
                name="f", calls=draw(counts), calls_possible=draw(counts), seconds=draw(times)
            ),
        ),
        orders=tuple(draw(st.lists(slices(), max_size=12))),
        changes=tuple(draw(st.lists(changes(), max_size=5))),
        worker=draw(st.sampled_from((None, "1", "2"))),
        told_apart=tuple(
            ToldApartRecord(column=column, classes=draw(st.integers(2, 8)), rows=draw(counts))
            for column in draw(st.lists(st.sampled_from("cde"), unique=True))
        ),
    )


def some_tree(parts: list[TaskRecord], chance: random.Random) -> TaskRecord:
    """Merge pairs picked by chance until one record is left."""
    rest = list(parts)
    while len(rest) > 1:
        one = rest.pop(chance.randrange(len(rest)))
        two = rest.pop(chance.randrange(len(rest)))
        rest.append(merge(one, two))
    return rest[0]


def order_rows(parts: list[TaskRecord]) -> Counter[Order]:
    rows: Counter[Order] = Counter()
    for part in parts:
        for order, number in part.order_rows:
            rows[order] += number
    return rows


@pytest.mark.slow(8)
@given(parts=st.lists(records(), min_size=2, max_size=12), seed=st.integers(0, 1000))
def test_any_tree_gives_the_same_record(parts: list[TaskRecord], seed: int) -> None:
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MAX_SLICES", 9)
        patch.setattr(merging, "MAX_CHANGES", 4)
        whole = reduce(merge, parts)
        assert some_tree(parts, chance) == whole
        assert len(whole.orders) <= 9
        assert len(whole.changes) <= 4


@pytest.mark.slow(5)
@given(parts=st.lists(records(), min_size=2, max_size=8), seed=st.integers(0, 1000))
def test_totals_are_conserved(parts: list[TaskRecord], seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MAX_SLICES", 5)
        patch.setattr(merging, "MAX_ORDERS_A_SLICE", 2)
        patch.setattr(merging, "MAX_CHANGES", 3)
        whole = some_tree(parts, random.Random(seed))
    assert whole.tasks == len(parts)
    for name in ("rows_in", "rows_out", "seconds", "work_seconds", "routing_seconds", "decisions"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
    assert whole.calls == sum(part.calls for part in parts)
    assert whole.calls_possible == sum(part.calls_possible for part in parts)
    for name in ("rows_in", "passed", "rejected", "null", "errors_held", "errors_dropped"):
        for position in (0, 1):
            assert getattr(whole.predicates[position], name) == sum(
                getattr(part.predicates[position], name) for part in parts
            )
            assert getattr(whole.predicates[1].nested[position], name) == sum(
                getattr(part.predicates[1].nested[position], name) for part in parts
            )
    assert sum(piece.rows for piece in whole.orders) == order_rows(parts).total()
    assert order_rows([whole]).total() == order_rows(parts).total()
    assert len(whole.changes) + whole.changes_dropped == sum(len(part.changes) for part in parts)
    assert all(len(piece.shares) <= 2 for piece in whole.orders)


@pytest.mark.slow(4)
@given(parts=st.lists(records(), min_size=2, max_size=6))
def test_joined_slices_cover_their_parts(parts: list[TaskRecord]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MAX_SLICES", 4)
        whole = reduce(merge, parts)
    for part in parts:
        for piece in part.orders:
            assert any(
                joined.start <= piece.start and piece.end <= joined.end for joined in whole.orders
            )
    assert list(whole.orders) == sorted(whole.orders, key=lambda piece: piece.start)


def test_few_slices_are_kept_as_they_are() -> None:
    one, two = drifting_task(0), drifting_task(1)
    merged = merge(one, two)
    assert set(merged.orders) == {*one.orders, *two.orders}
    assert merged.slice_seconds == 0.0


@pytest.mark.slow(4)
def test_ten_thousand_tasks_stay_small() -> None:
    chance = random.Random(0)
    orders = list(permutations(range(6)))
    base = drifting_task(0)

    def task(number: int) -> TaskRecord:
        start = START + number * 0.5
        shares = tuple((order, 10) for order in chance.sample(orders, 10))
        change = Change(start, 0, ChangedQuantity.COST, 1e-6, (1 + number) * 1e-6)
        pieces = tuple(
            OrderSlice(start + n / 10, start + n / 10 + 0.1, 100, shares) for n in (0, 1)
        )
        return replace(base, orders=pieces, changes=(change,))

    whole = reduce(merge, (task(number) for number in range(10_000)))
    assert whole.tasks == 10_000
    assert 100 <= len(whole.orders) <= 200
    assert sum(rows for _, rows in whole.order_rows) == 2_000_000
    assert OTHER_ORDERS in dict(whole.order_rows)
    assert len(whole.changes) == 100
    assert whole.changes_dropped == 9_900
    assert {change.new for change in whole.changes} == {
        (1 + number) * 1e-6 for number in range(9_900, 10_000)
    }
    assert len(pickle.dumps(whole)) < 100_000


def test_rare_orders_are_folded_but_not_lost() -> None:
    orders = list(permutations(range(4)))
    shares = tuple((order, 100 - place) for place, order in enumerate(orders))
    piece = OrderSlice(START, START + 1, sum(rows for _, rows in shares), shares)
    (folded,) = compacted(TaskRecord(block="b", orders=(piece,))).orders
    assert folded.shares[:-1] == shares[:15]
    assert folded.shares[-1] == (OTHER_ORDERS, sum(rows for _, rows in shares[15:]))


def test_a_task_with_too_many_slices_can_be_compacted_alone() -> None:
    pieces = tuple(OrderSlice(START + n, START + n + 1, 10, (((0, 1), 10),)) for n in range(1000))
    record = compacted(TaskRecord(block="b", orders=pieces))
    assert len(record.orders) <= 200
    assert record.slice_seconds == 8.0
    assert record.orders[0].end - record.orders[0].start == pytest.approx(8.0)
    assert compacted(record) == record


def test_the_largest_changes_are_those_by_factor() -> None:
    cost = ChangedQuantity.COST
    small, large, endless = (
        Change(3.0, 0, cost, 1.0, 1.1),
        Change(2.0, 0, cost, 8.0, 1.0),
        Change(1.0, 0, cost, 0.0, 1.0),
    )
    none = Change(0.0, 0, cost, 2.0, 2.0)
    assert largest_changes((none, small, large, endless), 2) == (endless, large)
    assert largest_changes((none, small), 1) == (small,)
    assert largest_changes((small, none), 5) == (none, small)


def test_records_of_other_blocks_do_not_mix() -> None:
    one = TaskRecord(block="a")
    with pytest.raises(ValueError, match="'a' and 'b'"):
        merge(one, TaskRecord(block="b"))
    with pytest.raises(ValueError, match="different predicates"):
        merge(one, TaskRecord(block="a", predicates=(PredicateRecord(text="p"),)))
    with pytest.raises(ValueError, match="different functions"):
        merge(one, TaskRecord(block="a", functions=(FunctionRecord(name="f"),)))


def test_a_task_may_name_no_terms_of_an_or() -> None:
    terms = (PredicateRecord(text="p", rows_in=3), PredicateRecord(text="q", rows_in=2))
    routed = TaskRecord(
        block="a", predicates=(PredicateRecord(text="p OR q", rows_in=3, nested=terms),)
    )
    asked = TaskRecord(block="a", predicates=(PredicateRecord(text="p OR q", rows_in=4),))
    for one, two in ((routed, asked), (asked, routed)):
        (predicate,) = merge(one, two).predicates
        assert (predicate.rows_in, predicate.nested) == (7, terms)


def test_two_lambdas_of_one_name_stay_apart() -> None:
    both = (
        FunctionRecord(name="<lambda>", calls=1, calls_possible=5),
        FunctionRecord(name="<lambda>", calls=3, calls_possible=5),
    )
    merged = merge(TaskRecord(block="a", functions=both), TaskRecord(block="a", functions=both))
    assert [function.calls for function in merged.functions] == [2, 6]
    assert merged.calls_avoided == 12


def test_merging_by_block_leaves_its_arguments_alone() -> None:
    left = {"a": TaskRecord(block="a", rows_in=1)}
    right = {"a": TaskRecord(block="a", rows_in=2), "b": TaskRecord(block="b", rows_in=4)}
    merged = merge_by_block(left, right)
    assert {block: record.rows_in for block, record in merged.items()} == {"a": 3, "b": 4}
    assert left["a"].rows_in == 1
    assert "b" not in left


@examples(20)
@given(record=records())
def test_records_pickle(record: TaskRecord) -> None:
    assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301 - our own bytes


def test_what_time_consists_of_adds_up_to_the_whole() -> None:
    one = TaskRecord(
        block="b",
        seconds=5,
        work_seconds=2,
        routing_seconds=1,
        output_seconds=0.5,
        core_seconds=1,
        answer_seconds=0.25,
    )
    both = merge(one, one)
    assert (both.seconds, both.output_seconds, both.core_seconds) == (10, 1, 2)
    assert (both.answer_seconds, both.other_seconds) == (0.5, 0.5)
