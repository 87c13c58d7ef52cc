"""Grouped filters of patterns: the queries that want a text, whatever they look for in it."""

from __future__ import annotations

import itertools
import runpy
import sys
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eddyline.expressions import (
    And,
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    StringMatch,
    StringTest,
    evaluate,
)
from eddyline.expressions.terms import terms_of
from eddyline.expressions.vector import Columns
from eddyline.standing.engine import literal_index, pattern_filter
from eddyline.standing.engine.lineage import LineageSets
from eddyline.standing.engine.literal_index import Integers, LiteralIndex, Pairs
from eddyline.standing.engine.pattern_clauses import clauses_of
from eddyline.standing.engine.pattern_filter import PatternFilter
from eddyline.standing.engine.ranges import EVERY, MOST_BOXES
from eddyline.standing.engine.selections import Selections, split
from tests.properties import examples

TEXT, OTHER, NUMBER = Argument(0, pa.string()), Argument(1, pa.string()), Argument(2, pa.int64())

CHARACTERS = "aAbBkKs%_é\u212a\u017f\ufffd😀\n"
"""Letters that fold with others, wildcards, what stands for malformed bytes."""

WORDS = ("aak", "KAb", "bbé")
"""Long enough that a pattern needs several of them."""

TEXTS = st.lists(st.sampled_from([*CHARACTERS, *WORDS]), max_size=6).map("".join)
NEEDLES = st.one_of(
    st.lists(st.sampled_from(CHARACTERS), max_size=3).map("".join),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("%".join),
)
REGULAR = st.sampled_from(
    [
        *("(?i)ak", "a.b", "^a", "a|K", "[ab]k", "(?i)k", "s$", "(ab)+", "é", "", "a{2}"),
        *("(?i)(a|b)k", "(?i)aak.*kab", "(aak|KAb).*bbé", "bbé(aak)*KAb", "(?i)(aak|kab|bb)+.+bbé"),
    ]
)
TESTS: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Like, st.just(TEXT), NEEDLES, st.just("!")),
    st.builds(RLike, st.just(TEXT), REGULAR),
    st.builds(StringMatch, st.sampled_from(list(StringTest)), st.just(TEXT), NEEDLES),
)
PREDICATES = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda terms: And(tuple(terms))),
        st.lists(inner, min_size=2, max_size=3).map(lambda terms: Or(tuple(terms))),
    ),
    max_leaves=6,
)


def scope_of(texts: Sequence[str | bytes | None]) -> Columns:
    """Return texts, which may be malformed, as a scope."""
    data = pa.array([t.encode() if isinstance(t, str) else t for t in texts], pa.binary())
    column = pa.Array.from_buffers(pa.string(), len(data), data.buffers())
    return Columns({0: column}, len(data))


def wanted(predicates: Mapping[int, Expression], scope: Columns) -> list[list[int]]:
    """Return the queries that want each row, each predicate by itself."""
    true = {q: evaluate(predicate, scope).values.to_pylist() for q, predicate in predicates.items()}
    return [[q for q in sorted(true) if true[q][row]] for row in range(len(scope))]


def found(selections: Selections, scope: Columns) -> list[list[int]]:
    """Return the queries that want each row, by the indexes."""
    sets = LineageSets()
    return [sets.members(int(n)).tolist() for n in selections.lineages(scope, sets)]


@examples(150)
@given(
    st.lists(st.dictionaries(st.integers(0, 12), st.none() | PREDICATES), min_size=1, max_size=4),
    st.lists(st.none() | TEXTS | st.binary(max_size=3), max_size=8),
)
@example([{0: Like(TEXT, "%k%", "!"), 1: Not(Like(TEXT, "%k%", "!"))}], [None, "\u212a", "K", "k"])
@example([{0: StringMatch(StringTest.CONTAINS, TEXT, "\ufffd")}], [b"\xff", "\ufffd"])
def test_queries_with_patterns_come_and_go(
    changes: list[dict[int, Expression | None]], texts: list[str | bytes | None]
) -> None:
    scope = scope_of(texts)
    selections, predicates = Selections(), dict[int, Expression]()
    for change in changes:
        selections.remove([query for query in change if query in predicates])
        came = {query: one for query, one in change.items() if one is not None}
        selections.add(came)
        predicates = {query: one for query, one in predicates.items() if query not in change} | came
        evaluated = {q for asking in selections.evaluated.values() for q in asking}
        grouped = {query: one for query, one in predicates.items() if query not in evaluated}
        asked = [[q for q in row if q in grouped] for row in found(selections, scope)]
        assert asked == wanted(grouped, scope)


def test_one_index_whatever_the_number_of_patterns() -> None:
    predicates: dict[int, Expression] = {n: RLike(TEXT, f"user{n}[.]") for n in range(500)}
    predicates |= {500 + n: Not(Like(TEXT, f"%user{n}_%", "!")) for n in range(500)}
    selections = Selections()
    selections.add(predicates)
    assert selections.attributes == (TEXT,)
    assert selections.evaluated == {}
    scope = scope_of([f"user{n}." for n in range(0, 500, 7)] * 2)
    assert found(selections, scope) == wanted(predicates, scope)


def test_queries_that_come_one_by_one_are_indexed_together() -> None:
    filter_ = PatternFilter(TEXT)
    for query in range(300):
        clauses = clauses_of(terms_of(RLike(TEXT, f"user{query}[.]")))
        assert clauses is not None
        filter_.add({query: clauses})
        sizes = [len(segment) for segment in filter_._segments]
        assert sum(sizes) == query + 1
        assert all(later < earlier for earlier, later in itertools.pairwise(sizes))
    filter_.remove(range(1, 300))
    assert [len(segment) for segment in filter_._segments] == [1]
    sets = LineageSets()
    numbers = filter_.lineages(pa.array(["user0.", "user7.", None]), sets)
    assert [sets.members(int(n)).tolist() for n in numbers] == [[0], [], []]
    with pytest.raises(ValueError, match=r"no queries \[1\]"):
        filter_.remove([1])
    with pytest.raises(ValueError, match=r"queries \[0\] are here"):
        filter_.add({0: ()})


def test_a_text_is_looked_at_by_the_rarer_literal(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    confirmed = literal_index.LiteralIndex._confirmed

    def counting(self: LiteralIndex, test: int, texts: pa.Array, among: Integers | None) -> Pairs:
        looked_at.append(len(texts if among is None else among))
        return confirmed(self, test, texts, among)

    monkeypatch.setattr(literal_index.LiteralIndex, "_confirmed", counting)
    predicates: dict[int, Expression] = {
        n: RLike(TEXT, f"connection refused.*app{n}[.]") for n in range(10)
    }
    selections = Selections()
    selections.add(predicates)
    scope = scope_of([f"connection refused by app{n % 5}. {n}" for n in range(100)])
    assert found(selections, scope) == wanted(predicates, scope)
    assert looked_at == [20] * 5


def test_without_the_library_patterns_are_tried_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)  # which makes its import fail
    names = runpy.run_path(str(literal_index.__file__))
    assert names["ahocorasick_rs"] is None
    monkeypatch.setattr(pattern_filter, "LiteralIndex", names["LiteralIndex"])
    predicates: dict[int, Expression] = {n: RLike(TEXT, f"user{n}[.]") for n in range(20)}
    selections = Selections()
    selections.add(predicates)
    scope = scope_of(["user3.", "user13.", "", None])
    assert found(selections, scope) == wanted(predicates, scope) == [[3], [13], [], []]


def test_long_texts_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literal_index, "MOST_BYTES", 10)
    predicates: dict[int, Expression] = {
        n: StringMatch(StringTest.CONTAINS, TEXT, needle)
        for n, needle in enumerate(["xy", "yx", "a" * 30, "y" * 3])
    }
    selections = Selections()
    selections.add(predicates)
    scope = scope_of(["xyx", "", "a" * 31, "x", "y", "x", "yyyyyyyyyyyyyyyyy", ""])
    assert found(selections, scope) == wanted(predicates, scope)


def test_what_patterns_imply_is_not_asked_again() -> None:
    present = Not(IsNull(TEXT))
    assert split(And((present, RLike(TEXT, "a")))).boxes == ({},)
    assert split(And((present, RLike(OTHER, "a")))).boxes == ({TEXT: EVERY},)


def test_what_is_no_clause_of_patterns() -> None:
    like, prefix = Like(TEXT, "%a%", "!"), Like(TEXT, "a%", "!")
    five = Comparison(ComparisonOperator.EQUAL, NUMBER, Literal(5, pa.int64()))
    assert clauses_of(terms_of(Or((like, five)))) is None
    assert clauses_of(terms_of(Or((like, Like(OTHER, "%a%", "!"))))) is None
    assert clauses_of(terms_of(prefix)) is None
    pairs = [And((Like(TEXT, f"%a{n}%", "!"), Like(TEXT, f"%b{n}%", "!"))) for n in range(7)]
    assert clauses_of(terms_of(Or(tuple(pairs)))) is None
    many = Or(tuple(Like(TEXT, f"%{n}%", "!") for n in range(2 * MOST_BOXES)))
    assert split(many).rest == ()
    assert len(split(And((prefix, like, five, Not(like)))).patterns) == 2
