"""What Figures 6 and 7 of Deshpande (2004) share: stars on ``unique2``, and eddies beside a plan.

In both every row of a table finds exactly one match in each other, so every plan costs the same.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import pyarrow as pa

from bench.figures.claims import Numbers
from bench.figures.cost_of_adaptivity import FREQUENCIES, SELDOM, rank
from bench.figures.figure import Outcome
from bench.turns import Spread
from bench.wisconsin import TYPES, UNIQUE2, table
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival
from eddyline.expressions import Comparison, ComparisonOperator

FIXED = "fixed plan"
ADAPTIVE = "adaptive"
TURNS = 7

SMALL_BATCH = 1_000
"""Rows of an arrival where each decision is to be acted upon before the next one."""

SMALL_RANK = f"{SMALL_BATCH} at a time"

WIDE = 10.0
"""From here on ratios are printed with a digit less, so that the table fits."""


def star(name: str, relations: int, *, everything: bool = True) -> JoinQuery:
    """Return the first of some relations joined with the others on ``unique2``.

    Its outputs are all columns, or none; then only ``unique2`` is read.
    """
    types, key = (TYPES, UNIQUE2) if everything else ((TYPES[UNIQUE2],), 0)
    described = tuple(JoinRelation(f"{name}{n + 1}", types) for n in range(relations))
    plain = JoinQuery(described)
    return JoinQuery(
        described,
        tuple(
            Comparison(ComparisonOperator.EQUAL, plain.column(0, key), plain.column(r, key))
            for r in range(1, relations)
        ),
        tuple(
            plain.column(r, column)
            for r in range(relations)
            for column in range(len(types))
            if everything
        ),
    )


@functools.cache
def columns_of(rows: int, number: int) -> tuple[pa.Array, ...]:
    """Return the columns of the table of a number."""
    return table(rows, seed=number)


def arrivals(columns: Sequence[pa.Array], batch: int) -> list[Arrival]:
    """Return rows in arrivals of ``batch``."""
    rows = len(columns[0])
    return [
        Arrival(tuple(c.slice(start, batch) for c in columns), min(batch, rows - start))
        for start in range(0, rows, batch)
    ]


def _claimed(over: Mapping[str, Mapping[str, float]]) -> dict[str, object]:
    """Return what claims are about: the ratios of each contestant, one a query."""

    def of(contestant: str) -> Numbers:
        return Numbers(of_query[contestant] for of_query in over.values() if contestant in of_query)

    by_frequency = {every: of(rank(every)) for every in FREQUENCIES}
    return {
        **{f"every_{every}": of_queries for every, of_queries in by_frequency.items()},
        "seldom": Numbers(
            ratio for every in FREQUENCIES if every >= SELDOM for ratio in by_frequency[every]
        ),
        "adaptive": of(ADAPTIVE),
        "small": of(SMALL_RANK),
    }


def outcome(
    ratios: Mapping[str, Mapping[str, Sequence[float]]],
    points: Sequence[str],
    data: Mapping[str, object],
    **measured: object,
) -> Outcome:
    """Return what came of it.

    Given by query and contestant the time over that of a fixed plan, of each turn.
    """
    over = {
        query: {name: Spread.of(of_one) for name, of_one in by_name.items()}
        for query, by_name in ratios.items()
    }
    turns = len(next(iter(next(iter(ratios.values())).values())))
    return Outcome(
        {
            "every": SELDOM,
            **_claimed(
                {
                    query: {name: of_one.median for name, of_one in by_name.items()}
                    for query, by_name in over.items()
                }
            ),
            **measured,
        },
        turns=[
            _claimed(
                {
                    query: {name: of_one[turn] for name, of_one in by_name.items()}
                    for query, by_name in ratios.items()
                }
            )
            for turn in range(turns)
        ],
        rows={
            contestant.removeprefix("rank "): [_short(each[contestant]) for each in over.values()]
            for contestant in next(iter(over.values()))
        },
        points=points,
        lines={
            name: [(every, of_query[rank(every)].median) for every in FREQUENCIES]
            for name, of_query in over.items()
        },
        data=data,
    )


def _short(ratio: Spread) -> str:
    """Return median, least and greatest in few letters."""
    digits = 1 if max(ratio.median, ratio.greatest) < WIDE else 0
    return f"{ratio.median:.{digits + 1}f} {ratio.least:.{digits}f}-{ratio.greatest:.{digits}f}"
