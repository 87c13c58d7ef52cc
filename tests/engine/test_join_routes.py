"""Where tuples of a join may go: the constraints of Table 2 on the one who routes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.signature import Signature
from eddyline.errors import NotExecutableError
from eddyline.expressions import Call, Expression
from tests.joins import BOOL, LESS, equal, looked_up, query_of, relation

A, B, C = range(3)


def predicate_over(query: JoinQuery, *relations: int) -> Expression:
    """Return a predicate; each set of relations has its own function."""
    function = sum(1 << r for r in relations)
    return Call(function, tuple(query.column(r, 0) for r in relations), BOOL)


def routes_of(query: JoinQuery, *early: int) -> JoinRoutes:
    return JoinRoutes(JoinGraph(query), early)


CHAIN = query_of(
    [relation("A"), relation("B"), relation("C")],
    equal((A, 1), (B, 0)),
    equal((B, 1), (C, 0)),
    predicates=lambda q: [predicate_over(q, A), predicate_over(q, A, C)],
)
A_ALONE, A_AND_C = range(2)  # its predicates

INDEXED = query_of(
    [relation("A"), looked_up("B", (0,), (1,)), looked_up("C", (0,), scan=True)],
    equal((A, 0), (B, 0)),
    equal((A, 1), (B, 1)),
    equal((A, 1), (C, 0)),
    predicates=lambda q: [predicate_over(q, A), predicate_over(q, B), predicate_over(q, A, B)],
)


def test_modules_are_numbered_predicates_first_then_stems_then_lookups() -> None:
    routes = routes_of(INDEXED)
    assert (routes.first_stem, routes.first_lookup, routes.given) == (3, 6, 9)
    assert [routes.stem(r) for r in range(3)] == [3, 4, 5]
    assert [(r, lookup.bind) for r, lookup in routes.lookups] == [(B, (0,)), (B, (1,)), (C, (0,))]


def test_a_new_tuple_is_built_once_early_predicates_are_done() -> None:
    new = Signature(1 << A)
    assert routes_of(CHAIN).candidates(new) == (routes_of(CHAIN).stem(A),)
    early = routes_of(CHAIN, A_ALONE)
    assert early.candidates(new) == (A_ALONE,)
    assert early.candidates(new.after(A_ALONE)) == (early.stem(A),)
    built = early.after(new.after(A_ALONE), early.stem(A))
    assert built == Signature(1 << A, 1 << A, 1 << A_ALONE)
    assert early.candidates(built) == (early.stem(B),)


def test_a_selection_comes_as_soon_as_its_relations_are_spanned() -> None:
    routes = routes_of(CHAIN)
    built = Signature(1 << A, 1 << A)
    assert routes.candidates(built) == (A_ALONE, routes.stem(B))
    whole = Signature(0b111, 0b111)
    assert routes.candidates(whole) == (A_ALONE, A_AND_C)
    assert routes.candidates(whole.after(A_ALONE).after(A_AND_C)) == ()


def test_bounded_repetition_of_selections() -> None:
    routes = routes_of(CHAIN)
    done = Signature(0b111, 0b111).after(A_AND_C)
    assert A_AND_C not in routes.candidates(done)
    assert A_AND_C not in routes.remaining(done)


def test_a_probe_may_check_a_range_and_a_match_has_passed_the_early_predicates() -> None:
    query = query_of(
        [relation("A"), relation("B")],
        ((A, 0), LESS, (B, 0)),
        predicates=lambda q: [predicate_over(q, A), predicate_over(q, B)],
    )
    routes = routes_of(query, 1, 2)
    probed = routes.after(Signature(1 << A, 1 << A, 0b010), routes.stem(B))
    assert probed == Signature(0b11, 0b11, 0b111)
    assert routes.candidates(probed) == ()


def test_build_first_holds_for_all_relations_but_those_with_a_single_scan() -> None:
    query = query_of(
        [
            relation("A"),
            looked_up("B", (0,)),
            looked_up("C", (0,), scan=True),
            relation("M", mirrors=1, key=(0,)),
        ],
        equal((A, 0), (B, 0)),
        equal((A, 0), (C, 0)),
    )
    routes = routes_of(query)
    assert [routes.must_build_first(r) for r in range(4)] == [False, True, True, True]
    for r in (B, C, 3):
        with pytest.raises(ValueError, match="must be built"):
            routes.stream(r, streamed=True)
        routes.stream(r, streamed=False)


def test_build_first_comes_before_every_selection() -> None:
    b_alone = 1
    routes = routes_of(INDEXED, b_alone)
    assert routes.candidates(Signature(1 << B)) == (routes.stem(B),)


def test_streamed_tuples_go_past_the_stems_of_others() -> None:
    routes = routes_of(CHAIN)
    new = Signature(1 << A)
    assert routes.candidates(new) == (routes.stem(A),)
    assert routes.stem(A) in routes.remaining(new)
    routes.stream(A, streamed=True)
    assert routes.candidates(new) == (A_ALONE, routes.stem(B))
    assert routes.stem(A) not in routes.remaining(new)
    routes.stream(A, streamed=False)
    assert routes.candidates(new) == (routes.stem(A),)


def test_a_prior_prober_goes_to_no_other_stem() -> None:
    routes = routes_of(INDEXED)
    selections = (0,)
    prior = Signature(1 << A, 1 << A, 0, probed=1 << B)
    by_zero, by_one, of_c = range(routes.first_lookup, routes.given)
    # B has no scan: nothing but one of its lookups can complete the probe.
    assert routes.candidates(prior) == (*selections, by_zero, by_one)
    # C has one: to go back to its SteM is to leave the rest to it.
    prior = prior._replace(probed=1 << C)
    assert routes.candidates(prior) == (*selections, routes.stem(C), of_c)


def test_only_lookups_that_the_tuple_binds_complete_its_probe() -> None:
    routes = routes_of(INDEXED)
    assert routes.lookups_for(1 << A, B) == (0, 1)
    assert routes.lookups_for(1 << C, B) == (1,)
    by_one = routes.first_lookup + 1
    assert routes.candidates(Signature(1 << C, 1 << C, 0, probed=1 << B)) == (by_one,)


def test_after_a_lookup_only_the_probe_is_left() -> None:
    routes = routes_of(INDEXED)
    prior = Signature(1 << A, 0, 1, probed=1 << B)
    for lookup in (routes.first_lookup, routes.first_lookup + 1):
        asked = routes.after(prior, lookup)
        assert asked.probed == 1 << B
        assert asked.depth > prior.depth
        assert routes.candidates(asked) == (routes.stem(B),)
        # The match is like any other: its signature does not tell how it came about.
        assert routes.after(asked, routes.stem(B)) == Signature(0b011, 0b010, 1)


EDGES = st.lists(st.tuples(*[st.integers(0, 4), st.integers(0, 1)] * 2), min_size=2, max_size=8)


@given(
    edges=EDGES,
    lookups=st.lists(st.integers(0, 3), min_size=5, max_size=5),
    over=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), max_size=4),
    seed=st.integers(0, 1000),
)
def test_no_walk_is_longer_than_what_there_is_to_do(
    edges: list[tuple[int, int, int, int]],
    lookups: list[int],
    over: list[set[int]],
    seed: int,
) -> None:
    """BoundedRepetition, whatever the policy: each module once, a SteM again as prior prober."""
    relations = [
        [relation(f"R{r}"), looked_up(f"R{r}", (0,)), looked_up(f"R{r}", (1,), scan=True)][
            min(kind, 2) if r else 0
        ]
        for r, kind in enumerate(lookups)
    ]
    query = query_of(
        relations,
        *(equal((a, b), (c, d)) for a, b, c, d in edges if a != c),
        predicates=lambda q: [predicate_over(q, *sorted(mask)) for mask in over],
    )
    try:
        routes = routes_of(query)
    except NotExecutableError:
        return
    generator = np.random.default_rng(seed)
    visits: Counter[int] = Counter()
    new = Signature(1 << int(generator.integers(5)))
    signature = routes.after(new, routes.stem(new.spanned.bit_length() - 1))
    while candidates := routes.candidates(signature):
        module = int(generator.choice(candidates))
        visits[module] += 1
        relation_of = module - routes.first_stem
        if (
            routes.first_stem <= module < routes.first_lookup
            and routes.lookups_for(signature.spanned, relation_of)
            and not signature.probed
            and generator.random() < 0.5
        ):
            signature = signature._replace(probed=1 << relation_of)  # it bounces back
        else:
            signature = routes.after(signature, module)
        most = 2 if routes.first_stem <= module < routes.first_lookup else 1
        assert visits[module] <= most
    assert signature.spanned == 0b11111
    assert signature.done == (1 << routes.first_stem) - 1
    assert not signature.probed


def test_probes_by_other_columns_are_other_operations() -> None:
    """In a triangle a pair brings two columns for the third relation; in a star always one."""
    sides = [relation("A"), relation("B"), relation("C")]
    triangle = routes_of(
        query_of(sides, equal((A, 1), (B, 0)), equal((B, 1), (C, 0)), equal((C, 1), (A, 0)))
    )
    one, two = Signature(1 << A), Signature(1 << A | 1 << B)
    stem = triangle.stem(C)
    assert triangle.operation(one, stem) != triangle.operation(two, stem)
    star = routes_of(query_of(sides, equal((A, 0), (B, 0)), equal((A, 1), (C, 0))))
    assert star.operation(one, star.stem(C)) == star.operation(two, star.stem(C))
    assert star.operation(one, star.stem(B)) != star.operation(one, star.stem(C))
