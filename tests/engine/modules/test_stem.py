"""SteMs: what they absorb, find, bounce back and keep waiting (Table 2, on SteMs)."""

from __future__ import annotations

import math
import operator
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.batch import TupleBatch, concatenate
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_graph import MIRRORED, JoinGraph
from eddyline.engine.join_query import JoinRelation, Lookup
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules import match_finder as access
from eddyline.engine.modules.stem import SteM
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.engine.timestamps import HighWaterMarks, Ticks
from eddyline.expressions import ComparisonOperator
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import INT, LESS, Parts, Row, equal, looked_up, moved, parts_of, query_of, relation
from tests.keys import ORDERED, order_of, values_of
from tests.oracle.plain_values import plain

R, S, T = range(3)
SCANNED = query_of([relation("R"), relation("S")], equal((R, 1), (S, 0)))
INDEXED = query_of([relation("R"), looked_up("S", (0,))], equal((R, 1), (S, 0)))
BOTH = query_of([relation("R"), looked_up("S", (0,), scan=True)], equal((R, 1), (S, 0)))


def parted(results: Any) -> tuple[list[TupleBatch], list[TupleBatch]]:  # noqa: ANN401 - what a module returns
    """Return the matches among results, and the tuples that were bounced back."""
    matches = [batch for batch in results if not batch.signature.probed]
    return matches, [batch for batch in results if batch.signature.probed]


def found(parts: Parts, stem: int, batch: TupleBatch) -> list[Row]:
    matches, _ = parted(parts.stems[stem].process(batch))
    return sorted((row for part in matches for row in parts.rows(part)), key=repr)


def answer(parts: Parts, lookup: int, rows: list[Row], *bindings: Any) -> TupleBatch:  # noqa: ANN401 - values
    """Let rows come in answer to the bindings of a lookup with one bind column."""
    stem = parts.stems[parts.routes.lookups[lookup][0]]
    new = stem.state.answers[lookup].ask([pa.array(bindings, INT)])
    batch = parts.singleton(stem.relation, rows)
    numbers = batch.rows[stem.relation]
    assert isinstance(numbers, range)
    (number,) = stem.state.answers[lookup].begin([len(new)])
    assert stem.state.answered(number, numbers) == []
    return batch


# --- Builds


def test_a_built_tuple_bounces_back_with_the_next_timestamp() -> None:
    parts = parts_of(SCANNED)
    first, second = parts.build(R, [(1, 2), (3, 4)]), parts.build(S, [(2, 9)])
    assert first.signature == Signature(1 << R, 1 << R)
    assert second.signature == Signature(1 << S, 1 << S)
    assert isinstance(first.timestamps, int)
    assert isinstance(second.timestamps, int)
    assert first.timestamps < second.timestamps
    assert parts.rows(first) == [(1, 2), (3, 4)]
    statistics = parts.stems[R].statistics()
    assert (statistics.rows, statistics.builds, statistics.duplicates) == (2, 2, 0)


@pytest.mark.parametrize("batches", [1, 2])
def test_a_copy_that_another_access_method_brings_is_absorbed(batches: int) -> None:
    parts = parts_of(BOTH)
    parts.build(S, [(1, 10), (2, 20)])
    copies = [(2, 20), (3, 30), (1, 10), (3, 30)]
    results = [
        batch
        for at in range(batches)
        for batch in parts.stems[S].process(parts.singleton(S, copies[2 * at :][: 4 // batches]))
    ]
    assert [parts.rows(batch) for batch in results] == [[(3, 30)]]
    assert parts.stems[S].statistics().duplicates == 3
    assert parts.stems[S].statistics().rows == 3


def test_copies_are_told_by_the_key_in_which_null_is_a_value() -> None:
    types = (pa.float64(), pa.string(), INT)
    keyed = JoinRelation("S", types, mirrors=1, key=(0, 1))
    parts = parts_of(query_of([keyed]))
    rows = [(math.nan, None, 1), (0.0, "a", 2), (None, None, 3)]
    parts.build(0, rows)
    copies = [(-0.0, "a", 2), (None, None, 3), (math.nan, None, 1), (math.nan, "", 4)]
    built = parts.build(0, copies)
    assert [row[2] for row in parts.rows(built)] == [4]


@pytest.mark.parametrize(
    "described",
    [
        relation("S"),
        relation("S", key=(0,)),
        relation("S", scan=False, lookups=(Lookup((0,)),), key=(0,)),
    ],
)
def test_a_single_access_method_brings_no_copies_so_equal_rows_survive(
    described: JoinRelation,
) -> None:
    parts = parts_of(query_of([relation("R"), described], equal((R, 1), (S, 0))))
    assert len(parts.build(S, [(1, 1), (1, 1)])) == 2
    assert len(parts.build(S, [(1, 1)])) == 1


def test_rows_that_are_shared_are_built_in_their_order() -> None:
    query = query_of([relation("R"), relation("S", same_rows_as=0)], equal((0, 1), (1, 0)))
    relations = [Relation((), (), VirtualClock())] * 2
    components = ComponentStores(query, relations, relations)
    stem = SteM(1, JoinRoutes(JoinGraph(query)), components, Ticks(), shared=True)
    numbers = relations[0].append([pa.array([1, 2, 3]), pa.array([1, 2, 3])], 3)
    first = TupleBatch(Signature(0b10), (None, numbers[:2]))
    last = TupleBatch(Signature(0b10), (None, numbers[2:]))
    with pytest.raises(ValueError, match="must be built in their order"):
        stem.process(last)
    stem.process(first)
    (built,) = stem.process(last)
    assert built.rows[1] == numbers[2:]
    assert stem.state.marks.rows == 3


# --- TimeStamp and LastMatchTimeStamp

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["build R", "build S"]),
            st.lists(st.integers(0, 2), min_size=1, max_size=4),
        ),
        st.tuples(st.sampled_from(["probe", "probe two"]), st.just([0])),
    ),
    max_size=12,
)


@given(steps=STEPS, seed=st.integers(0, 99))
def test_however_builds_and_probes_interleave_a_pair_is_found_once(
    steps: list[tuple[str, list[int]]], seed: int
) -> None:
    parts, generator = parts_of(SCANNED), np.random.default_rng(seed)
    rows: dict[int, list[Row]] = {R: [], S: []}
    waiting: dict[int, list[TupleBatch]] = {R: [], S: []}
    results: Counter[Row] = Counter()

    def probe(r: int, count: int) -> None:
        batches = [
            waiting[r].pop(int(generator.integers(len(waiting[r]))))
            for _ in range(min(count, len(waiting[r])))
        ]
        if batches:
            results.update(found(parts, 1 - r, concatenate(batches)))

    for kind, values in steps:
        if kind.startswith("build"):
            r = R if kind == "build R" else S
            new = [(len(rows[r]) + at, v) if r == R else (v, -1) for at, v in enumerate(values)]
            if r == S:
                new = [(v, len(rows[S]) + at) for at, (v, _) in enumerate(new)]
            rows[r] += new
            waiting[r].append(parts.build(r, new))
        else:
            probe(int(generator.integers(2)), 2 if kind == "probe two" else 1)
    while waiting[R] or waiting[S]:
        probe(R, 1)
        probe(S, 2)
    assert results == Counter(r + s for r in rows[R] for s in rows[S] if r[1] == s[0])


def test_the_tuple_built_last_finds_the_other() -> None:
    parts = parts_of(SCANNED)
    r, s = parts.build(R, [(1, 5)]), parts.build(S, [(5, 2)])
    assert found(parts, S, r) == []
    assert found(parts, R, s) == [(1, 5, 5, 2)]


def test_a_tuple_that_is_not_built_finds_whatever_is_there() -> None:
    parts = parts_of(SCANNED)
    parts.build(S, [(5, 2)])
    r = parts.singleton(R, [(1, 5)])
    assert found(parts, S, r) == [(1, 5, 5, 2)]
    (match, *_), _ = parted(parts.stems[S].process(r))
    assert match.signature == Signature(0b11, 1 << S)
    assert match.timestamps is None


def test_a_match_has_the_timestamp_of_its_last_component() -> None:
    parts = parts_of(SCANNED)
    r, s = parts.build(R, [(1, 5), (2, 6)]), parts.build(S, [(6, 2)])
    (match,) = parts.stems[R].process(s)
    assert match.timestamps == s.timestamps
    both = concatenate([r, s.under(r.signature)])
    assert both.timestamps is not None


def test_a_prior_prober_finds_only_what_has_come_since() -> None:
    parts = parts_of(SCANNED)
    parts.build(S, [(5, 1), (6, 2)])
    r = parts.singleton(R, [(1, 5), (2, 6)])
    results = found(parts, S, r)
    assert results == [(1, 5, 5, 1), (2, 6, 6, 2)]
    parts.build(S, [(5, 3), (7, 4)])
    parts.stems[S].end()
    (waited,) = parts.stems[S].state.unpark()
    assert waited.signature == Signature(1 << R, 0, 0, probed=1 << S)
    assert found(parts, S, waited) == [(1, 5, 5, 3)]
    assert parts.stems[S].state.waiting() == []


def test_prior_probers_of_several_probes_go_on_from_their_own_marks() -> None:
    parts = parts_of(SCANNED)
    r = parts.singleton(R, [(1, 5), (2, 5)])
    one, other = r.cut(1)
    assert found(parts, S, one) == []
    parts.build(S, [(5, 1)])
    assert found(parts, S, other) == [(2, 5, 5, 1)]
    parts.build(S, [(5, 2)])
    parts.stems[S].end()
    waited = concatenate(parts.stems[S].state.unpark())
    assert isinstance(waited.last_match, np.ndarray)
    assert found(parts, S, waited) == [(1, 5, 5, 1), (1, 5, 5, 2), (2, 5, 5, 2)]


@given(counts=st.lists(st.integers(0, 3), max_size=6), asked=st.integers(0, 8))
def test_high_water_marks_count_the_rows_before_a_tick(counts: list[int], asked: int) -> None:
    marks, ticks, rows = HighWaterMarks(), Ticks(), 0
    for count in counts:
        rows += count
        marks.built(ticks.next(), rows)
    assert marks.rows == rows
    expected = [sum(counts[: max(tick - 1, 0)]) for tick in range(asked + 1)]
    assert [int(marks.below(tick)[0]) for tick in range(asked + 1)] == expected
    assert marks.below(np.arange(asked + 1)).tolist() == expected
    assert marks.below(None).tolist() == [rows]


# --- SteM BounceBack, for probing tuples


def test_with_all_matches_here_no_tuple_comes_back() -> None:
    parts = parts_of(SCANNED)
    parts.stems[S].end()
    for batch in (parts.build(R, [(1, 1)]), parts.singleton(R, [(2, 2)])):
        assert parts.stems[S].process(batch) == []
    assert parts.stems[S].state.waiting() == []
    assert parts.stems[S].statistics().bounced == 0


def test_a_built_tuple_is_left_to_the_scan() -> None:
    parts = parts_of(SCANNED)
    assert parts.stems[S].process(parts.build(R, [(1, 1)])) == []
    assert parts.stems[S].state.waiting() == []


def test_a_tuple_that_is_not_built_waits_for_the_end_of_the_scan() -> None:
    parts = parts_of(SCANNED)
    assert parts.stems[S].process(parts.singleton(R, [(1, 1)])) == []
    assert [len(batch) for batch in parts.stems[S].state.waiting()] == [1]
    assert parts.stems[S].statistics().bounced == 1


@pytest.mark.parametrize("built", [True, False])
def test_without_a_scan_a_tuple_comes_back_to_be_looked_up(*, built: bool) -> None:
    parts = parts_of(INDEXED)
    r = parts.build(R, [(1, 1)]) if built else parts.singleton(R, [(1, 1)])
    matches, back = parted(parts.stems[S].process(r))
    assert matches == []
    assert [batch.signature for batch in back] == [r.signature._replace(probed=1 << S)]


def test_one_component_that_is_not_built_is_enough_to_come_back() -> None:
    query = query_of(
        [relation("R"), relation("S"), relation("T")], equal((R, 1), (S, 0)), equal((S, 1), (T, 0))
    )
    parts = parts_of(query)
    parts.build(S, [(1, 2)])
    parts.stems[S].end()
    (match,) = parts.stems[S].process(parts.singleton(R, [(0, 1)]))
    assert match.signature == Signature(0b011, 1 << S)
    assert parts.stems[T].process(match) == []
    assert len(parts.stems[T].state.waiting()) == 1


def test_tuples_whose_answer_is_here_do_not_come_back() -> None:
    parts = parts_of(INDEXED)
    parts.stems[S].process(answer(parts, 0, [(1, 7), (3, 8)], 1, 2, 3))
    r = parts.build(R, [(0, 1), (1, 2), (2, 3), (3, 4), (4, None)])
    assert parts.stems[S].has_all_matches(r).tolist() == [True, True, True, False, True]
    matches, back = parted(parts.stems[S].process(r))
    assert [parts.rows(batch) for batch in matches] == [[(0, 1, 1, 7), (2, 3, 3, 8)]]
    assert [parts.rows(batch) for batch in back] == [[(3, 4)]]


def test_an_answer_to_any_lookup_that_the_tuple_binds_will_do() -> None:
    query = query_of([relation("R", 3), looked_up("S", (0,), (1,))], equal((R, 1), (S, 0)),
                     equal((R, 2), (S, 1)))  # fmt: skip
    parts = parts_of(query)
    parts.stems[S].process(answer(parts, 1, [], 7))
    r = parts.build(R, [(0, 1, 7), (1, 1, 8)])
    assert parts.stems[S].has_all_matches(r).tolist() == [True, False]


def test_an_end_of_transmission_counts_once_all_its_rows_are_built() -> None:
    parts = parts_of(INDEXED)
    stem = parts.stems[S]
    first, second = answer(parts, 0, [(1, 7), (1, 8)], 1).cut(1)
    r = parts.build(R, [(0, 1)])
    assert not stem.has_all_matches(r).any()
    stem.process(second)
    assert not stem.has_all_matches(r).any()
    stem.process(first)
    assert stem.has_all_matches(r).all()


def test_copies_count_towards_the_end_of_a_transmission() -> None:
    query = query_of([relation("R"), looked_up("S", (0,), (1,))], equal((R, 1), (S, 0)))
    parts = parts_of(query)
    parts.build(S, [(1, 7)])
    batch = answer(parts, 0, [(1, 7)], 1)
    assert parts.stems[S].process(batch) == []
    assert parts.stems[S].has_all_matches(parts.build(R, [(0, 1)])).all()


def test_with_scan_and_lookup_a_built_tuple_comes_back_once() -> None:
    parts = parts_of(BOTH)
    r = parts.build(R, [(1, 1)])
    _, (back,) = parted(parts.stems[S].process(r))
    # Sent on to the SteM and to no lookup, it is left to the scan.
    assert parts.stems[S].process(back) == []
    assert parts.stems[S].state.waiting() == []


@pytest.mark.parametrize("built", [True, False])
def test_a_tuple_that_brings_a_whole_key_has_all_matches_where_it_has_one(*, built: bool) -> None:
    """Whichever access method has brought it: there is no second row with that key."""
    parts = parts_of(BOTH)
    parts.build(S, [(1, 5), (2, 6)])
    rows: list[Row] = [(1, 1), (2, 3)]
    batch = parts.build(R, rows) if built else parts.singleton(R, rows)
    matches, (back,) = parted(parts.stems[S].process(batch))
    assert [parts.rows(part) for part in matches] == [[(1, 1, 1, 5)]]
    assert parts.rows(back) == [(2, 3)]


def test_a_part_of_a_key_says_nothing_of_further_matches() -> None:
    described = relation("S", scan=True, lookups=(Lookup((0,)),), key=(0, 1))
    parts = parts_of(query_of([relation("R"), described], equal((R, 1), (S, 0))))
    parts.build(S, [(1, 5)])
    _, (back,) = parted(parts.stems[S].process(parts.build(R, [(1, 1)])))
    assert parts.rows(back) == [(1, 1)]


def test_with_scan_and_lookup_a_tuple_that_is_not_built_waits_if_it_is_not_looked_up() -> None:
    query = query_of([relation("R"), looked_up("S", (1,), scan=True)], equal((R, 1), (S, 1)))
    parts = parts_of(query)
    parts.build(S, [(5, 1)])
    matches, (back,) = parted(parts.stems[S].process(parts.singleton(R, [(1, 1)])))
    assert [parts.rows(batch) for batch in matches] == [[(1, 1, 5, 1)]]
    parts.build(S, [(6, 2)])
    assert parts.stems[S].process(back) == []
    assert len(parts.stems[S].state.waiting()) == 1
    parts.stems[S].end()
    (waited,) = parts.stems[S].state.unpark()
    assert parts.stems[S].process(waited) == []


def test_without_a_lookup_that_it_binds_a_tuple_is_left_to_the_supplier() -> None:
    query = query_of(
        [relation("R"), looked_up("S", (0,)), relation("T")],
        equal((R, 1), (S, 0)),
        equal((S, 1), (T, 0)),
    )
    parts = parts_of(query)
    # The supplier itself is looked up, built or not.
    for r in (parts.build(R, [(7, 8)]), parts.singleton(R, [(7, 8)])):
        _, (back,) = parted(parts.stems[S].process(r))
        assert parts.routes.candidates(back.signature) == (parts.routes.first_lookup,)
    assert parts.stems[S].process(parts.build(T, [(5, 1)])) == []
    assert parts.stems[S].state.waiting() == []
    assert parts.stems[S].process(parts.singleton(T, [(5, 2)])) == []
    parts.build(S, [(0, 5)])
    parts.stems[S].end()
    (waited,) = parts.stems[S].state.unpark()
    assert parts.routes.candidates(waited.signature) == (parts.routes.stem(S),)
    assert found(parts, S, waited) == [(0, 5, 5, 2)]


def test_tuples_that_were_looked_up_wait_for_their_answers_only() -> None:
    parts = parts_of(INDEXED)
    stem = parts.stems[S]
    r = parts.singleton(R, [(0, 1), (1, 2), (2, 3)])
    _, (back,) = parted(stem.process(r))
    asked = back.under(parts.routes.after(back.signature, parts.routes.first_lookup))
    one = answer(parts, 0, [(1, 7), (2, 9)], 1, 2)
    other = answer(parts, 0, [(3, 8)], 3)
    assert stem.release_when_complete(asked, 0) == []
    assert sum(map(len, stem.state.waiting())) == 3
    built, released = stem.process(other)
    assert parts.rows(built) == [(3, 8)]
    assert parts.rows(released) == [(2, 3)]
    assert found(parts, S, released) == [(2, 3, 3, 8)]
    _, released = stem.process(one)
    assert found(parts, S, released) == [(0, 1, 1, 7), (1, 2, 2, 9)]
    assert stem.state.waiting() == []


# --- Matches

THREE = query_of(
    [relation("R"), relation("S"), relation("T")], equal((R, 1), (T, 0)), equal((S, 1), (T, 1))
)


def test_keys_of_several_relations_are_put_together() -> None:
    parts = parts_of(THREE)
    parts.build(S, [(0, 8), (1, 9)])
    parts.stems[S].end()
    parts.build(T, [(5, 8), (5, 9), (6, 8), (5, None)])
    parts.stems[T].end()
    r = parts.singleton(R, [(0, 5), (1, 6), (2, None)])
    (pairs,) = parts.stems[S].process(r)  # a cross product
    assert found(parts, T, pairs) == [
        (0, 5, 0, 8, 5, 8), (0, 5, 1, 9, 5, 9), (1, 6, 0, 8, 6, 8),
    ]  # fmt: skip


@given(data=st.data())
def test_ranges_are_what_comparing_says(data: st.DataObject) -> None:
    a_type = data.draw(st.sampled_from(ORDERED))
    operators = data.draw(st.lists(st.sampled_from(list(MIRRORED)), min_size=1, max_size=2))
    described = [JoinRelation(name, (a_type, a_type)) for name in "RS"]
    turned = data.draw(st.booleans())
    conditions = [
        ((S, 0), MIRRORED[o], (R, c)) if turned else ((R, c), o, (S, 0))
        for c, o in enumerate(operators)
    ]
    parts = parts_of(query_of(described, *conditions))
    rows = st.lists(st.tuples(values_of(a_type), values_of(a_type)), min_size=1, max_size=8)
    stored, probing = data.draw(rows), data.draw(rows)
    for at in range(0, len(stored), 3):
        parts.build(S, stored[at : at + 3])
    parts.stems[S].end()
    results = found(parts, S, parts.singleton(R, probing))
    expected = [
        r + s
        for r in probing
        for s in stored
        if all(_compares(r[c], sign, s[0]) for c, sign in enumerate(operators))
    ]
    assert Counter(map(_plain_row, results)) == Counter(map(_plain_row, expected))


def _compares(left: Any, sign: ComparisonOperator, right: Any) -> bool:  # noqa: ANN401 - values
    if left is None or right is None:
        return False
    one, other = order_of(left), order_of(right)
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[sign]


def _plain_row(row: Row) -> Row:
    return tuple(map(plain, row))


@pytest.mark.parametrize(
    ("conditions", "keep", "constant", "most"),
    [
        ([equal((R, 1), (S, 0))], operator.eq, "MOST_MATCHES", 5),
        ([((R, 1), LESS, (S, 0))], operator.lt, "MOST_MATCHES", 5),
        ([], lambda r, s: (r, s) != (None, None), "FIRST_PAIRS", 5),
        ([], lambda r, s: (r, s) != (None, None), "FIRST_PAIRS", 1),
    ],
)
def test_a_probe_with_many_matches_hands_back_what_it_did_not_probe(
    monkeypatch: pytest.MonkeyPatch,
    conditions: list[Any],
    keep: Callable[[int, int], bool],
    constant: str,
    most: int,
) -> None:
    monkeypatch.setattr(access, constant, most)
    monkeypatch.setattr("eddyline.engine.storage.hash_index.MORE_ROOM", 1)
    parts = parts_of(query_of([relation("R"), relation("S")], *conditions))
    stored = [(n % 2 + 1, n) for n in range(40)]
    probing = [(n, n % 3) for n in range(60)]
    parts.build(S, stored)
    parts.stems[S].end()
    left, results, rounds = [parts.singleton(R, probing)], Counter[Row](), 0
    while left:
        matches, back = parted(parts.stems[S].process(left.pop()))
        assert back == []
        for batch in matches:
            if batch.signature.spanned == 1 << R:
                left.append(batch)
            else:
                results.update(parts.rows(batch))
        rounds += 1
    assert results == Counter(r + s for r in probing for s in stored if keep(r[1], s[0]))
    assert rounds > 1
    assert parts.stems[S].statistics().probes == len(probing)


@pytest.mark.parametrize("condition", [[equal((R, 1), (S, 0))], [((R, 1), LESS, (S, 0))], []])
def test_dead_and_evicted_rows_match_nothing(condition: list[Any]) -> None:
    parts = parts_of(query_of([relation("R"), relation("S")], *condition))
    stem = parts.stems[S]
    parts.build(S, [(2, n) for n in range(12)])
    stem.kill(np.array([1, 4]))
    stem.evict_before(3)
    stem.kill(np.array([2]))  # now row 5
    parts.build(S, [(2, n) for n in range(12, 15)])
    stem.kill(np.array([9]))  # row 12
    stem.evict_before(4)
    stem.end()
    value = 2 if condition == [equal((R, 1), (S, 0))] else 1
    results = found(parts, S, parts.singleton(R, [(0, value)]))
    assert [row[3] for row in results] == [10, 11, 13, 14, 6, 7, 8, 9]
    statistics = stem.statistics()
    assert (statistics.killed, statistics.rows, statistics.builds) == (4, 11, 15)


def test_may_match_tells_who_has_a_match_at_all() -> None:
    parts = parts_of(SCANNED)
    parts.build(S, [(1, 1), (2, 2), *((n, n) for n in range(10, 30))])
    parts.stems[S].kill(np.array([1]))
    r = parts.singleton(R, [(0, 1), (1, 2), (2, 3), (3, None), (4, 10)])
    assert parts.stems[S].may_match(r).tolist() == [True, False, False, False, True]


def test_a_stem_that_nobody_probes_has_no_index() -> None:
    parts = parts_of(SCANNED)
    parts.build(S, [(1, 1)])
    assert parts.stems[S].statistics().indexes == ()
    parts.stems[S].process(parts.singleton(R, [(0, 1)]))
    assert parts.stems[S].statistics().indexes == ("list[0]",)


# --- A SteM's state, moved


def test_another_stem_goes_on_with_what_waits() -> None:
    parts = parts_of(INDEXED)
    _, (back,) = parted(parts.stems[S].process(parts.singleton(R, [(0, 1), (1, 2)])))
    asked = back.under(parts.routes.after(back.signature, parts.routes.first_lookup))
    coming = answer(parts, 0, [(1, 7), (2, 9)], 1, 2)
    assert parts.stems[S].release_when_complete(asked, 0) == []
    other = moved(parts)
    assert sum(map(len, other.stems[S].state.waiting())) == 2
    _, released = other.stems[S].process(coming)
    assert found(other, S, released) == [(0, 1, 1, 7), (1, 2, 2, 9)]


def test_another_stem_goes_on_with_what_is_parked_and_with_the_time() -> None:
    parts = parts_of(SCANNED)
    parts.build(S, [(1, 7)])
    ((match,), ()) = parted(parts.stems[S].process(parts.singleton(R, [(0, 1)])))
    assert parts.rows(match) == [(0, 1, 1, 7)]
    other = moved(parts)
    other.build(S, [(1, 8)])
    other.stems[S].end()
    assert moved(other).stems[S].complete
    (waited,) = other.stems[S].state.unpark()
    assert found(other, S, waited) == [(0, 1, 1, 8)]
    older = parts.build(R, [(5, 1)])
    assert found(moved(parts), S, older) == [(5, 1, 1, 7)]


def test_another_stem_goes_on_without_what_is_dead_or_evicted() -> None:
    parts = parts_of(SCANNED)
    parts.build(S, [(2, n) for n in range(12)])
    parts.stems[S].evict_before(3)
    parts.stems[S].kill(np.array([1]))  # row 4
    other = moved(parts)
    other.build(S, [(2, 12)])
    results = found(other, S, other.build(R, [(0, 2)]))
    assert [row[3] for row in results] == [10, 11, 12, 3, 5, 6, 7, 8, 9]
    assert other.stems[S].statistics().killed == 1


def test_another_stem_knows_the_keys_that_were_built() -> None:
    parts = parts_of(BOTH)
    parts.build(S, [(1, 7)])
    other = moved(parts)
    assert other.stems[S].process(other.singleton(S, [(1, 7)])) == []
    assert other.stems[S].statistics().duplicates == 1


def test_a_moved_stem_takes_no_more_room_than_its_rows() -> None:
    parts = parts_of(SCANNED)
    for start in range(0, 3_000, 1_000):
        parts.build(S, [(n, n) for n in range(start, start + 1_000)])
        found(parts, S, parts.build(R, [(start, start)]))
    assert parts.stems[S].statistics().indexes == ("hash[0]",)
    pickled = len(pickle.dumps(parts.state.built[S].store))
    assert 16 * 3_000 <= pickled < 17 * 3_000
    other = moved(parts)
    assert other.stems[S].statistics().indexes == ()
    assert found(other, S, other.build(R, [(7, 7)])) == [(7, 7, 7, 7)]
