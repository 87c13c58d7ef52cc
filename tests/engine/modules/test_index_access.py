"""Lookups: what they ask, what they let in, and what becomes of the tuple that probed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.batch import TupleBatch
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.index_access import IndexAccess, LookupRequests, Source
from eddyline.engine.modules.module import Module
from eddyline.engine.signature import Signature
from eddyline.errors import EddylineError, LookupAnswerError
from tests.joins import INT, Parts, Row, TableSource, equal, looked_up, parts_of, query_of, relation

R, S = range(2)
QUERY = query_of([relation("R"), looked_up("S", (0,))], equal((R, 1), (S, 0)))
ROWS = [(1, 10), (1, 11), (2, 20), (3, 30)]


def lookup_of(
    query: JoinQuery = QUERY, source: Source | None = None, number: int = 0
) -> tuple[Parts, IndexAccess, Any]:
    parts = parts_of(query)
    bind = parts.routes.lookups[number][1].bind
    asked = source or TableSource(ROWS, query.relations[S], bind)
    position = parts.routes.first_lookup + number
    requests = LookupRequests(position, parts.routes, parts.components, parts.stems[S])
    lookup = IndexAccess(requests, asked)
    return parts, lookup, asked


def probed(parts: Parts, batch: TupleBatch) -> TupleBatch:
    """Return what the SteM bounces back."""
    (back,) = [part for part in parts.stems[S].process(batch) if part.signature.probed]
    return back


def prior(parts: Parts, *values: int, built: bool = True) -> TupleBatch:
    rows: list[Row] = [(at, value) for at, value in enumerate(values)]
    return probed(parts, parts.build(R, rows) if built else parts.singleton(R, rows))


def test_rows_come_in_as_singletons_that_are_not_built() -> None:
    parts, lookup, source = lookup_of()
    assert isinstance(lookup, Module)
    assert lookup.name == "S(0)"
    (rows,) = lookup.process(prior(parts, 1, 2))
    assert rows.signature == Signature(1 << S)
    assert parts.rows(rows) == [(1, 10), (1, 11), (2, 20)]
    assert parts.routes.candidates(rows.signature) == (parts.routes.stem(S),)
    assert source.asked == [(1,), (2,)]


def test_a_binding_is_asked_for_once_in_a_batch_and_ever() -> None:
    parts, lookup, source = lookup_of()
    first, second = prior(parts, 1, 1, 9), prior(parts, 1, 9, 2)
    (rows,) = lookup.process(first)
    assert source.asked == [(1,), (9,)]
    # The answer is still on its way into the SteM; asked for it was all the same.
    (more,) = lookup.process(second)
    assert source.asked == [(1,), (9,), (2,)]
    assert parts.rows(more) == [(2, 20)]
    parts.stems[S].process(rows)
    assert lookup.process(second) == []
    statistics = lookup.statistics(0.5)
    assert (statistics.relation, statistics.bind, statistics.seconds) == ("S", (0,), 0.5)
    assert (statistics.probes, statistics.calls, statistics.bindings) == (9, 2, 3)
    assert statistics.rows == lookup.rows == 3


def test_a_built_tuple_is_removed_and_found_by_its_matches() -> None:
    parts, lookup, _ = lookup_of()
    (rows,) = lookup.process(prior(parts, 1))
    (built,) = parts.stems[S].process(rows)
    (match,) = parts.stems[R].process(built)
    assert parts.rows(match) == [(0, 1, 1, 10), (0, 1, 1, 11)]
    assert parts.stems[S].state.waiting() == []


def test_a_tuple_that_is_not_built_comes_back_once_its_matches_are() -> None:
    parts, lookup, _ = lookup_of()
    parts.build(S, [(1, 10)])
    waiting = prior(parts, 1, 5, built=False)
    (rows,) = lookup.process(waiting)
    assert len(rows) == 2
    (kept,) = parts.stems[S].state.waiting()
    assert len(kept) == 2
    _, back = parts.stems[S].process(rows)
    assert parts.routes.candidates(back.signature) == (parts.routes.stem(S),)
    # What the first probe found is not found again: this source has brought a copy, though.
    (match,) = parts.stems[S].process(back)
    assert parts.rows(match) == [(0, 1, 1, 10), (0, 1, 1, 11)]


def test_with_nothing_to_wait_for_a_tuple_comes_back_at_once() -> None:
    parts, lookup, _ = lookup_of()
    (back,) = lookup.process(prior(parts, 7, 8, built=False))
    assert len(back) == 2
    assert parts.stems[S].process(back) == []
    assert parts.stems[S].state.waiting() == []


def test_nothing_is_asked_for_what_is_there() -> None:
    parts, lookup, source = lookup_of()
    early, late = prior(parts, 1), prior(parts, 1, built=False)
    (rows,) = lookup.process(early)
    parts.stems[S].process(rows)
    (back,) = lookup.process(late)
    assert source.calls == 1
    assert back.signature.probed == 1 << S
    parts.stems[S].end()
    (back,) = lookup.process(late)
    assert source.calls == 1


def test_the_second_of_two_lookups_is_asked_as_if_there_were_no_other() -> None:
    query = query_of(
        [relation("R"), looked_up("S", (0,), (1,))], equal((R, 1), (S, 0)), equal((R, 0), (S, 1))
    )
    parts, lookup, source = lookup_of(query, number=1)
    assert lookup.name == "S(1)"
    waiting = probed(parts, parts.singleton(R, [(10, 1), (30, 3), (40, 4)]))
    (rows,) = lookup.process(waiting)
    assert source.asked == [(10,), (30,), (40,)]
    assert parts.rows(rows) == [(1, 10), (3, 30)]
    _, back = parts.stems[S].process(rows)
    assert len(back) == 3


def test_rows_that_nobody_asked_for_are_left_out() -> None:
    def generous(bindings: Sequence[pa.Array]) -> list[pa.Array]:  # noqa: ARG001 - the protocol's
        return [pa.array([9, 1, None, 2, 1]), pa.array(range(5))]

    parts, lookup, _ = lookup_of(source=generous)
    (rows,) = lookup.process(prior(parts, 1, 2))
    assert parts.rows(rows) == [(1, 1), (1, 4), (2, 3)]
    assert lookup.statistics(0).strange == 2
    assert lookup.rows == 3


@pytest.mark.parametrize(
    "answer",
    [
        [pa.array([1])],
        [pa.array([1]), pa.array(["x"])],
        [pa.array([1]), pa.array([1, 2])],
        [],
        None,
        pa.array([1]),
        [[1], [1]],
        [pa.array([1]), pa.array([1]), None],
        [pa.chunked_array([[1]]), pa.chunked_array([[1]])],
    ],
)
def test_an_answer_that_is_no_rows_of_the_relation_is_refused(answer: Any) -> None:  # noqa: ANN401 - whatever a source may return
    parts, lookup, _ = lookup_of(source=lambda bindings: answer)  # noqa: ARG005 - the protocol's
    with pytest.raises(LookupAnswerError, match="a lookup of S must answer with") as refused:
        lookup.process(prior(parts, 1))
    assert isinstance(refused.value, EddylineError)
    assert isinstance(refused.value, ValueError)


def test_an_error_of_the_source_is_raised_as_it_is() -> None:
    def broken(bindings: Sequence[pa.Array]) -> list[pa.Array]:  # noqa: ARG001 - the protocol's
        raise ConnectionError("no route to S")

    parts, lookup, _ = lookup_of(source=broken)
    with pytest.raises(ConnectionError, match="no route to S"):
        lookup.process(prior(parts, 1))


def test_several_bind_columns_are_asked_for_together() -> None:
    query = query_of(
        [relation("R", 3), looked_up("S", (1, 0))], equal((R, 1), (S, 0)), equal((R, 2), (S, 1))
    )
    parts, lookup, source = lookup_of(query)
    batch = probed(parts, parts.build(R, [(0, 1, 10), (1, 1, None), (2, 2, 20), (3, 1, 10)]))
    assert len(batch) == 3  # NULL is equal to nothing
    (rows,) = lookup.process(batch)
    assert source.asked == [(10, 1), (20, 2)]
    assert parts.rows(rows) == [(1, 10), (2, 20)]
    assert all(np.diff(np.asarray(rows.rows[S])) == 1)
    assert [column.type for column in parts.stems[S].bindings(batch, 0)] == [INT, INT]
