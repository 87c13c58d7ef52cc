"""Queries that wait for an absence are judged once, as a batch query judges."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.standing.engine import absences, stems
from eddyline.standing.engine.shared_query import Absence, Presence, SharedQuery, TimeBound
from eddyline.standing.engine.windows import waits_for
from tests.properties import examples
from tests.standing.engine.conditions import conditions_on
from tests.standing.engine.shared import (
    BY_KEY,
    BY_OTHER,
    TIME,
    Answer,
    Push,
    Row,
    Run,
    answer_of,
    joins,
    queries,
    rows,
    selections,
    selects,
)

SHAPES = (
    ((0, 1), 1, {BY_KEY[0, 1]}),
    ((0, 1), 0, {BY_KEY[0, 1], BY_OTHER[0, 1]}),
    ((0, 1, 2), 2, {BY_KEY[0, 1], BY_KEY[1, 2]}),
    ((0, 1, 2), 2, {BY_OTHER[0, 1], BY_KEY[1, 2]}),
    ((0, 1, 2), 1, {BY_KEY[0, 2], BY_OTHER[1, 2]}),
)
"""Streams of queries, the one that must not be there, and edges."""


@st.composite
def waiting(draw: st.DrawFn) -> SharedQuery:
    """Draw a query that waits, by windows of which none is open."""
    streams, absent, edges = draw(st.sampled_from(SHAPES))
    bounds = []
    for one, other in itertools.combinations(streams, 2):
        least = draw(st.integers(-8, 8))
        bounds.append(TimeBound(one, other, least, least + draw(st.integers(0, 12))))
    present = tuple(stream for stream in streams if stream != absent)
    waits = {one: waits_for(bounds, frozenset(streams), one, absent) for one in present}
    anchor = min(waits, key=lambda one: waits[one])
    asked = draw(conditions_on(present)) if len(present) > 1 else ()
    of_match = draw(st.sampled_from([(), draw(conditions_on(streams))]))
    return SharedQuery(
        {stream: draw(selections) for stream in streams},
        frozenset(edges),
        tuple(bounds),
        asked,
        draw(st.sampled_from([Absence, Presence]))(absent, anchor, waits[anchor], of_match),
    )


def expected(number: int, query: SharedQuery, came: list[Push], until: int) -> Answer:
    """Return what a query has waited for, of which is known by a watermark what fits."""
    absence = query.absence
    assert absence is not None
    present = {s: p for s, p in query.selections.items() if s != absence.stream}
    edges = frozenset(e for e in query.edges if all(p.relation in present for p in e))
    alone = SharedQuery(present, edges, query.bounds, query.conditions)
    whole = replace(query, conditions=(*query.conditions, *absence.conditions), absence=None)
    others = [row for push in came if push.stream == absence.stream for row in push.rows]
    others = [row for row in others if selects(query, absence.stream, row)]
    answer: Answer = Counter()
    for (_, components), many in answer_of({number: alone}, came).items():
        by_stream: dict[int, Row] = dict(zip(sorted(present), components, strict=True))
        time = by_stream[absence.anchor][TIME]
        if time is None or time + absence.waits >= until:
            continue
        found = any(joins(whole, by_stream | {absence.stream: row}) for row in others)
        if found == isinstance(absence, Presence):
            answer[number, components] += many
    return answer


def at(row: Row, otherwise: int) -> int:
    """Return the time of a row; another where it has none."""
    time = row[TIME]
    return otherwise if time is None else time


steps = st.lists(st.lists(st.tuples(st.integers(0, 2), rows), max_size=8), max_size=5)


@examples(200)
@given(
    st.dictionaries(st.integers(0, 300), waiting(), min_size=1, max_size=4),
    st.dictionaries(st.integers(400, 500), queries(), max_size=2),
    steps,
    st.booleans(),
    st.integers(0, 3),
)
def test_what_is_absent(
    set_: dict[int, SharedQuery],
    others: dict[int, SharedQuery],
    batches: list[list[tuple[int, Row]]],
    few: bool,  # noqa: FBT001 - drawn
    ahead: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if few:
            patch.setattr(absences, "JUDGED_TOGETHER", 2)
            patch.setattr(stems, "MOST_MATCHES", 1)
        run, came = Run(None), []
        run.eddy.add(set_ | others)
        since, watermark = None, 0
        for batch in batches:
            run.eddy.judge(since, watermark)
            since = watermark
            in_time = [each for each in batch if at(each[1], since) >= since]
            new = [Push(s, [row for own, row in in_time if own == s]) for s in range(3)]
            run.push(new)
            came += new
            latest = max((at(row, 0) for _, row in in_time), default=0)
            watermark = max(latest - 10 * ahead, watermark)
            known = run.eddy.next_known(since)
            assert known is None or known > since
        while (known := run.eddy.next_known(since or 0)) is not None:
            assert known > (since or 0)
            run.eddy.judge(since, known)
            since = known
        wanted = answer_of(others, came)
        for number, query in set_.items():
            wanted.update(expected(number, query, came, since or 0))
        assert run.answer == wanted
        run.eddy.remove([*set_, *others])
        assert not run.eddy.waiting


def test_columns_that_are_joined_by_what_is_absent_only() -> None:
    query = SharedQuery(
        dict.fromkeys(range(3)),
        frozenset({BY_KEY[0, 1], BY_OTHER[1, 2], BY_OTHER[0, 2]}),
        absence=Absence(2, 1, 5),
    )
    with pytest.raises(ValueError, match="not joined without it"):
        _ = query.present


def test_looking_back_waits_for_nothing() -> None:
    run = Run(None)
    run.eddy.add(
        {1: SharedQuery({0: None, 1: None}, frozenset({BY_KEY[0, 1]}), (), (), Absence(1, 0, 5))}
    )
    with pytest.raises(ValueError, match="wait for an absence"):
        run.eddy.look_back([1])
