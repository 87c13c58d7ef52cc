"""What predicates say about joining: classes, keys, ranges, what comes next, what can be run."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join_graph import MIRRORED, JoinGraph, Key, Place
from eddyline.engine.join_query import JoinQuery, JoinRelation, Lookup
from eddyline.errors import EddylineError, NotExecutableError
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from tests.joins import BOOL, INT, LESS, equal, looked_up, query_of, relation

A, B, C, D = range(4)
COLUMN = Argument(0, INT)
FOUR = [relation(name, 3) for name in "ABCD"]


def mask(*relations: int) -> int:
    return sum(1 << r for r in relations)


def test_columns_set_equal_fall_into_classes() -> None:
    graph = JoinGraph(
        query_of(FOUR, equal((A, 0), (B, 1)), equal((C, 2), (B, 1)), equal((C, 0), (D, 0)))
    )
    assert graph.classes == (
        (Place(A, 0), Place(B, 1), Place(C, 2)),
        (Place(C, 0), Place(D, 0)),
    )
    assert graph.predicates == ()


def test_a_class_is_an_edge_that_nobody_wrote_down() -> None:
    graph = JoinGraph(query_of(FOUR[:3], equal((A, 0), (B, 1)), equal((B, 1), (C, 2))))
    assert graph.next_relations(mask(A)) == mask(B, C)
    assert graph.keys(mask(A), C) == (Key(Place(A, 0), 2),)
    assert graph.keys(mask(A, B), C) == (Key(Place(A, 0), 2),)
    assert graph.keys(mask(C), A) == (Key(Place(C, 2), 0),)


def test_a_key_has_a_column_for_each_that_is_bound() -> None:
    graph = JoinGraph(query_of(FOUR[:3], equal((A, 0), (C, 0)), equal((B, 1), (C, 1))))
    assert graph.keys(mask(A), C) == (Key(Place(A, 0), 0),)
    assert graph.keys(mask(A, B), C) == (Key(Place(A, 0), 0), Key(Place(B, 1), 1))
    assert graph.keys(mask(A), B) == ()


def test_columns_of_one_relation_in_a_class_are_compared_at_once() -> None:
    query = query_of(FOUR[:2], equal((A, 0), (B, 0)), equal((A, 1), (B, 0)))
    graph = JoinGraph(query)
    implied = Comparison(ComparisonOperator.EQUAL, query.column(A, 0), query.column(A, 1))
    assert graph.predicates == (implied,)
    assert graph.masks == (mask(A),)
    assert graph.keys(mask(B), A) == (Key(Place(B, 0), 0), Key(Place(B, 0), 1))


def test_columns_of_one_relation_that_are_equal_have_the_same_values() -> None:
    query = query_of(
        [relation("A"), looked_up("B", (1,))], equal((A, 0), (B, 0)), equal((B, 1), (B, 0))
    )
    graph = JoinGraph(query)
    implied = Comparison(ComparisonOperator.EQUAL, query.column(B, 0), query.column(B, 1))
    assert graph.predicates == (implied,)
    assert graph.binds(mask(A), B, query.relations[B].lookups[0])


def test_what_is_no_equality_of_two_relations_stays_a_predicate() -> None:
    lists = JoinRelation("L", (pa.list_(INT), pa.int32()))
    query = query_of(
        [relation("A"), lists, lists],
        equal((A, 0), (A, 1)),
        equal((1, 0), (2, 0)),
        predicates=lambda q: [
            Comparison(ComparisonOperator.EQUAL, q.column(A, 0), q.column(1, 1)),  # two types
            Not(Comparison(ComparisonOperator.EQUAL, q.column(1, 1), q.column(2, 1))),
            Comparison(ComparisonOperator.NULL_SAFE_EQUAL, q.column(1, 1), q.column(2, 1)),
            Comparison(ComparisonOperator.EQUAL, q.column(A, 0), Literal(1, INT)),
        ],
    )
    graph = JoinGraph(query)
    assert graph.classes == ()
    assert graph.predicates == query.predicates
    assert graph.masks == (0b001, 0b110, 0b011, 0b110, 0b110, 0b001)


def test_a_predicate_written_twice_is_checked_once_and_named_right() -> None:
    query = query_of(
        FOUR[:2],
        predicates=lambda q: [
            (first := Call(0, (q.column(A, 0),), BOOL)),
            first,
            Comparison(ComparisonOperator.EQUAL, q.column(A, 0), q.column(B, 0)),
            Call(1, (q.column(B, 0),), BOOL),
        ],
    )
    named = JoinQuery(query.relations, query.predicates, texts=("f(A)", "f(A)", "A=B", "g(B)"))
    assert JoinGraph(named).texts == ("f(A)", "g(B)")
    assert JoinGraph(query).texts == ("", "")


@pytest.mark.parametrize("operator", list(MIRRORED))
def test_ranges_are_seen_from_both_sides(operator: ComparisonOperator) -> None:
    graph = JoinGraph(query_of(FOUR[:2], ((A, 0), operator, (B, 1))))
    (edge,) = graph.ranges
    assert edge.seen_from(B) == (Place(A, 0), operator, 1)
    assert edge.seen_from(A) == (Place(B, 1), MIRRORED[operator], 0)
    assert graph.next_relations(mask(A)) == mask(B)


def test_the_column_with_the_most_bounds_is_searched_for() -> None:
    graph = JoinGraph(
        query_of(FOUR[:3], ((A, 0), LESS, (C, 0)), ((A, 1), LESS, (C, 1)), ((C, 1), LESS, (B, 1)))
    )
    assert {edge.predicate for edge in graph.best_ranges(mask(A, B), C)} == {1, 2}
    assert len(graph.best_ranges(mask(A), C)) == 1
    assert graph.best_ranges(mask(B), C)[0].predicate == 2
    assert graph.best_ranges(mask(A), B) == ()


def test_texts_are_not_ordered_by_words() -> None:
    texts = JoinRelation("T", (pa.string(),))
    assert JoinGraph(query_of([texts, texts], ((0, 0), LESS, (1, 0)))).ranges == ()


def test_cross_products_come_last() -> None:
    def over(*relations: int) -> Expression:
        return Call(0, tuple(query.column(r, 0) for r in relations), BOOL)

    query = JoinQuery(tuple(FOUR))
    edges = JoinQuery(query.relations, (over(A, B), over(B, C, D)))
    graph = JoinGraph(edges)
    assert graph.next_relations(mask(A)) == mask(B)  # a predicate applies then
    assert graph.next_relations(mask(A, B)) == mask(C, D)  # one of two cross products
    assert graph.next_relations(mask(A, B, C)) == mask(D)
    assert graph.next_relations(mask(C)) == mask(B, D)
    assert JoinGraph(query).next_relations(mask(B)) == mask(A, C, D)


def test_a_relation_is_next_only_if_it_can_be_reached() -> None:
    graph = JoinGraph(
        query_of(
            [relation("A"), looked_up("B", (0, 1)), relation("C")],
            equal((A, 0), (B, 0)),
            equal((C, 0), (B, 1)),
        )
    )
    assert graph.reachable(mask(A)) == mask(C)
    assert graph.next_relations(mask(A)) == mask(C)  # a cross product, to bind both columns
    assert graph.next_relations(mask(A, C)) == mask(B)
    assert graph.next_relations(mask(B)) == mask(A, C)
    assert graph.binds(mask(A, C), B, Lookup((0, 1)))
    assert not graph.binds(mask(C), B, Lookup((0, 1)))


def test_a_relation_that_leads_to_one_lookup_only_supplies_it() -> None:
    graph = JoinGraph(
        query_of(
            [relation("A"), looked_up("B", (0,), columns=3), relation("C"), relation("D")],
            equal((A, 0), (B, 0)),
            equal((C, 0), (B, 1)),
            equal((D, 0), (B, 0)),
        )
    )
    # A and D lead to each other too: their rows may be joined before B is asked.
    assert graph.suppliers == {}
    assert graph.reachable(mask(C)) == mask(A, D)
    graph = JoinGraph(
        query_of(
            [relation("A"), looked_up("B", (0,), (1,), columns=3), relation("C"), relation("D")],
            equal((A, 0), (B, 0)),
            equal((C, 0), (B, 1)),
            equal((D, 0), (B, 2)),
        )
    )
    assert graph.suppliers == {B: mask(A, C)}
    assert graph.next_relations(mask(D)) == mask(B)
    assert graph.next_relations(mask(A)) == mask(B)


def test_what_has_a_scan_needs_no_supplier_and_a_supplier_must_bind() -> None:
    scanned = [relation("A"), looked_up("B", (0,), scan=True)]
    assert JoinGraph(query_of(scanned, equal((A, 0), (B, 0)))).suppliers == {}
    two = [relation("A"), looked_up("B", (0, 1)), relation("C")]
    graph = JoinGraph(query_of(two, equal((A, 0), (B, 0)), equal((C, 0), (B, 1))))
    assert graph.suppliers == {}


def test_lookups_may_bind_each_other_in_turn() -> None:
    graph = JoinGraph(
        query_of(
            [looked_up("A", (0,)), looked_up("B", (0,)), relation("C")],
            equal((A, 0), (B, 1)),
            equal((B, 0), (C, 0)),
        )
    )
    assert graph.reachable(mask(C)) == mask(B)
    assert graph.reachable(mask(B, C)) == mask(A)


@pytest.mark.parametrize(
    "relations",
    [
        [looked_up("A", (0,)), looked_up("B", (0,))],  # each waits for the other
        [looked_up("A", (0, 1)), relation("B")],  # one column is never bound
    ],
)
def test_a_query_that_cannot_be_run_is_refused(relations: list[JoinRelation]) -> None:
    with pytest.raises(NotExecutableError, match=r"^A.*add an equality") as refused:
        JoinGraph(query_of(relations, equal((A, 0), (B, 0))))
    assert isinstance(refused.value, EddylineError)
    assert isinstance(refused.value, ValueError)


def test_only_those_that_wait_for_each_other_cannot_be_reached() -> None:
    relations = [looked_up(name, (0,)) for name in "ABC"]
    with pytest.raises(NotExecutableError, match=r"^A, B: no scan") as refused:
        JoinGraph(
            query_of(
                [*relations, relation("D")],
                equal((A, 0), (B, 1)),
                equal((B, 0), (A, 1)),
                equal((C, 0), (D, 0)),
            )
        )
    assert refused.value.lost == (A, B)


WRONG = {
    "can be neither scanned": relation("A", scan=False),
    "mirrors of a scan": relation("A", scan=False, lookups=(Lookup((0,)),), mirrors=1, key=(0,)),
    "cannot have -1 mirrors": relation("A", mirrors=-1),
    "needs a key": relation("A", lookups=(Lookup((0,)),)),
    "needs a key, by which": relation("A", mirrors=1),
    "binds no column": relation("A", lookups=(Lookup(()),), key=(0,)),
    "binds a column twice": relation("A", lookups=(Lookup((1, 1)),), key=(0,)),
    "has no column -2": relation("A", lookups=(Lookup((-2,)),), key=(0,)),
    "has no column 2": relation("A", lookups=(Lookup((2,)),), key=(0,)),
    "has no column -1": relation("A", mirrors=1, key=(-1,)),
    "no key is made of": JoinRelation("A", (pa.list_(INT),), mirrors=1, key=(0,)),
    "shares the rows of no earlier": relation("A", same_rows_as=0),
}


@pytest.mark.parametrize("message", WRONG)
def test_relations_that_make_no_sense_are_refused(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JoinQuery((WRONG[message],))


@pytest.mark.parametrize("kind", [And, Or])
def test_and_and_or_need_a_term(kind: type[And | Or]) -> None:
    with pytest.raises(ValueError, match="needs a term"):
        kind(())


@pytest.mark.parametrize(
    "wrong",
    [
        COLUMN,
        Call(0, (), INT),
        Not(COLUMN),
        And((IsNull(COLUMN), Or((COLUMN, IsNull(COLUMN))))),
    ],
)
def test_a_predicate_is_boolean(wrong: Expression) -> None:
    with pytest.raises(ValueError, match="is int64, not boolean"):
        JoinQuery((relation("A"),), (IsNull(COLUMN), wrong))


def test_shared_rows_come_by_one_scan() -> None:
    keyed = relation("A", lookups=(Lookup((0,)),), key=(0,))
    with pytest.raises(ValueError, match="must then come by one scan"):
        JoinQuery((keyed, relation("B", same_rows_as=0)))
    with pytest.raises(ValueError, match="has not the columns"):
        JoinQuery((relation("A"), relation("B", 3, same_rows_as=0)))


@given(
    edges=st.lists(
        st.tuples(*[st.integers(0, 5), st.integers(0, 2)] * 2).map(
            lambda e: ((e[0], e[1]), (e[2], e[3]))
        ),
        max_size=10,
    ),
    binds=st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=6, max_size=6),
    scans=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_a_query_that_is_accepted_leaves_no_tuple_stuck(
    edges: list[tuple[tuple[int, int], tuple[int, int]]],
    binds: list[set[int]],
    scans: list[bool],
) -> None:
    relations = [
        relation(f"R{r}", 3) if scans[r] else looked_up(f"R{r}", tuple(sorted(binds[r])), columns=3)
        for r in range(6)
    ]
    query = query_of(relations, *(equal(left, right) for left, right in edges if left != right))
    try:
        graph = JoinGraph(query)
    except NotExecutableError:
        return
    everything = mask(*range(6))
    for spanned in range(1, everything):
        following = graph.next_relations(spanned)
        assert following
        assert not following & spanned
        assert following & graph.reachable(spanned) == following
