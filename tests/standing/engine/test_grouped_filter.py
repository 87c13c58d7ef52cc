"""Grouped filters: the queries whose predicate is TRUE, whatever the predicates and the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.expressions import (
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    Expression,
    In,
    Literal,
    Not,
    evaluate,
)
from eddyline.expressions import ComparisonOperator as Compared
from eddyline.expressions.terms import terms_of
from eddyline.standing.engine import filter_kernels, grids, grouped_filter
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.lineage import LineageSets, Satisfied
from eddyline.standing.engine.ranges import MOST_BOXES, Box, Range, boxes_of
from tests.standing.engine.columns import NUMBER, TEXT, conjunction, predicates, rows, scope_of

PLACES = tuple(Argument(index, pa.int64()) for index in range(4))


def queries_of(satisfied: Satisfied) -> list[list[int]]:
    """Return the queries of each tuple."""
    return [
        satisfied.queries[begin:end].tolist()
        for begin, end in zip(satisfied.begins, satisfied.ends, strict=True)
    ]


def expected(boxes: Mapping[int, Sequence[Box]], words: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the queries of tuples of int64 columns, box by box."""

    def holds(box: Box, row: Sequence[int]) -> bool:
        return all(
            (range_.lower is None or (row[column.index], 0) >= range_.lower)
            and (range_.upper is None or (row[column.index], 0) <= range_.upper)
            for column, range_ in box.items()
            if isinstance(column, Argument)
        )

    return [[q for q in sorted(boxes) if any(holds(b, row) for b in boxes[q])] for row in words]


@given(st.dictionaries(st.integers(0, 99), predicates, max_size=12), rows)
def test_satisfied_are_those_whose_predicate_is_true(
    given_: dict[int, Expression], table: list[tuple[Any, ...]]
) -> None:
    scope = scope_of(table)
    boxes = {query: boxes_of(terms_of(predicate)) for query, predicate in given_.items()}
    grouped = {query: some for query, some in boxes.items() if some is not None}
    found = queries_of(GroupedFilter(grouped).satisfied(scope))
    true = {query: evaluate(given_[query], scope).values.to_pylist() for query in grouped}
    wanted = [[q for q in sorted(grouped) if true[q][row]] for row in range(len(table))]
    assert found == wanted


boxes_of_numbers = st.lists(
    st.dictionaries(
        st.sampled_from(PLACES),
        st.tuples(st.integers(-9, 9), st.integers(0, 6)).map(
            lambda pair: Range((pair[0], 0), (pair[0] + pair[1], 0))
        ),
        max_size=4,
    ),
    max_size=3,
)
numbers = st.lists(st.tuples(*[st.integers(-10, 16)] * 4), min_size=1, max_size=40)


@given(st.dictionaries(st.integers(0, 50), boxes_of_numbers, max_size=40), numbers)
def test_boxes_of_one_to_four_attributes(
    boxes: dict[int, list[Box]], table: list[tuple[int, ...]]
) -> None:
    columns = [pa.array(column, pa.int64()) for column in zip(*table, strict=True)]
    assert queries_of(_filtered(GroupedFilter(boxes), columns)) == expected(boxes, table)


@given(
    st.dictionaries(st.integers(0, 50), boxes_of_numbers, max_size=20),
    st.lists(st.dictionaries(st.integers(0, 50), st.none() | boxes_of_numbers), max_size=5),
    numbers,
)
def test_queries_come_and_go(
    boxes: dict[int, list[Box]],
    changes: list[dict[int, list[Box] | None]],
    table: list[tuple[int, ...]],
) -> None:
    columns = [pa.array(column, pa.int64()) for column in zip(*table, strict=True)]
    grouped = GroupedFilter(boxes)
    for change in changes:
        grouped.remove([query for query in change if query in grouped])
        grouped.add({query: some for query, some in change.items() if some is not None})
        boxes = {query: some for query, some in boxes.items() if query not in change}
        boxes |= {query: some for query, some in change.items() if some is not None}
        assert queries_of(_filtered(grouped, columns)) == expected(boxes, table)
        assert len(grouped) == len(boxes)


def test_many_boxes_in_fine_grids() -> None:
    generator = np.random.default_rng(3)
    lows = generator.integers(0, 100_000, (3_000, 4))
    widths = generator.integers(1, 20_000, (3_000, 4))
    kinds = generator.integers(0, 1 << 4, 3_000)
    boxes: dict[int, list[Box]] = {
        query: [
            {
                column: Range((int(low), 0), (int(low + width), 0))
                for column, low, width in zip(PLACES, lows[query], widths[query], strict=True)
                if kinds[query] >> column.index & 1
            }
        ]
        for query in range(3_000)
    }
    table = generator.integers(0, 120_000, (300, 4))
    columns = [pa.array(table[:, index]) for index in range(4)]
    found = _filtered(GroupedFilter(boxes), columns)
    assert queries_of(found) == expected(boxes, table.tolist())


def test_tuples_in_the_order_of_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_filter, "MANY_ENTRIES", 0)
    monkeypatch.setattr(grouped_filter, "MANY_TUPLES", 0)
    test_many_boxes_in_fine_grids()


def test_rare_pairs_of_attributes_share_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MOST_GRIDS", 2)
    test_many_boxes_in_fine_grids()


def test_cells_and_entries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MOST_CELLS", 12)
    monkeypatch.setattr(grids, "MOST_ENTRIES", 100)
    test_many_boxes_in_fine_grids()


def test_a_wide_axis_is_searched_by_buckets() -> None:
    step = 2**63 // (3 * filter_kernels.BUCKETS) * 2
    bounds = [-(2**63) + 2 + step * place for place in range(3 * filter_kernels.BUCKETS)]
    boxes: dict[int, list[Box]] = {
        q: [{PLACES[0]: Range((b, 0), (b + step - 1, 0))}] for q, b in enumerate(bounds)
    }
    values = pa.array([b + offset for b in bounds for offset in (0, 1, step - 1)], pa.int64())
    found = queries_of(_filtered(GroupedFilter(boxes), [values]))
    assert found == [[query] for query in range(len(bounds)) for _ in range(3)]


def test_what_calls_functions_or_may_fail_is_no_box() -> None:
    one = Literal(1, pa.int64())
    call = Comparison(Compared.LESS, Call(0, (NUMBER,), pa.int64()), one)
    for ansi, boxed in ((True, False), (False, True)):
        twice = Arithmetic(ArithmeticOperator.ADD, (NUMBER, NUMBER), pa.int64(), ansi=ansi)
        found = boxes_of(terms_of(Comparison(Compared.LESS, twice, one)))
        assert (found is not None) is boxed
    assert boxes_of(terms_of(call)) is None
    assert boxes_of(terms_of(conjunction([call, Comparison(Compared.LESS, NUMBER, one)]))) is None


def test_too_many_boxes_are_none() -> None:
    half = MOST_BOXES // 2
    options = tuple(Literal(value, pa.int64()) for value in range(half))
    texts = tuple(Literal(str(value), pa.string()) for value in range(3))
    few = conjunction([In(NUMBER, options), In(TEXT, texts[:2])])
    many = conjunction([In(NUMBER, options), In(TEXT, texts)])
    boxes = boxes_of(terms_of(few))
    assert boxes is not None
    assert len(boxes) == MOST_BOXES
    assert boxes_of(terms_of(many)) is None


def test_nothing_is_left_of_queries_that_have_gone() -> None:
    grouped = GroupedFilter()
    for query in range(200):
        grouped.add({query: [{PLACES[query % 4]: Range.of(query)}]})
        if query:
            grouped.remove([query - 1])
    assert len(grouped) == 1
    before = GroupedFilter({199: [{PLACES[3]: Range.of(199)}]})
    assert grouped.nbytes == before.nbytes
    assert grouped.attributes == before.attributes == (PLACES[3],)


def test_a_query_comes_once_and_goes_once() -> None:
    grouped = GroupedFilter({1: [{}]})
    with pytest.raises(ValueError, match=r"queries \[1\] are here already"):
        grouped.add({1: [{}]})
    with pytest.raises(ValueError, match=r"there are no queries \[2\]"):
        grouped.remove([1, 2])
    assert 1 in grouped


def test_not_of_in_with_null_is_never_true() -> None:
    options = (Literal(1, pa.int64()), Literal(None, pa.int64()))
    assert boxes_of(terms_of(Not(In(NUMBER, options)))) == ()


def _filtered(grouped: GroupedFilter, columns: Sequence[pa.Array]) -> Satisfied:
    """Return what is satisfied by rows of int64 columns."""
    from eddyline.engine.relation import Relation  # noqa: PLC0415 - beside its only use
    from eddyline.wall_clock import WallClock  # noqa: PLC0415 - likewise

    relation = Relation((), (), WallClock())
    numbers_ = relation.append(columns, len(columns[0]))
    return grouped.satisfied(relation.scope(numbers_))


@pytest.mark.parametrize("most", [0, 1 << 40])
def test_lineages_are_the_sets_of_satisfied(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_filter, "MOST_COMBINATIONS", most)

    @given(
        given_=st.dictionaries(st.integers(0, 99), predicates, max_size=12),
        table=rows,
        renumber=st.booleans(),
    )
    def check(
        given_: dict[int, Expression],
        table: list[tuple[Any, ...]],
        *,
        renumber: bool,
    ) -> None:
        scope, sets = scope_of(table), LineageSets()
        boxes = {query: boxes_of(terms_of(predicate)) for query, predicate in given_.items()}
        grouped = GroupedFilter({query: some for query, some in boxes.items() if some is not None})
        lineages = grouped.lineages(scope, sets)
        if renumber:
            sets.keep_only([])
            lineages = grouped.lineages(scope, sets)
        found = [sets.members(int(number)).tolist() for number in lineages]
        assert found == queries_of(grouped.satisfied(scope))

    check()
