"""Scans that do not fit into memory: each row of the result arises once all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.policies.catalogue import make_policy, policy_name
from eddyline.expressions import Argument, Comparison, ComparisonOperator
from eddyline.simulation.virtual_clock import VirtualClock
from eddyline.watching.bounded_scans import BoundedScans

TYPES = (pa.int64(), pa.int64())

Rows = Sequence[tuple[int | None, int]]


def equal(one: int, other: int) -> Comparison:
    return Comparison(
        ComparisonOperator.EQUAL, Argument(one, pa.int64()), Argument(other, pa.int64())
    )


def query_of(relations: int, *, shared: bool) -> JoinQuery:
    """Return the join of so many relations by their first columns; the last may be the first."""
    same = [0 if shared and r == relations - 1 else None for r in range(relations)]
    return JoinQuery(
        tuple(JoinRelation(f"r{r}", TYPES, same_rows_as=same[r]) for r in range(relations)),
        tuple(equal(0, 2 * r) for r in range(1, relations)),
        tuple(Argument(2 * r + 1, pa.int64()) for r in range(relations)),
    )


def arrivals(rows: Rows) -> Iterator[Arrival]:
    """Yield rows in threes."""
    for first in range(0, len(rows), 3):
        some = rows[first : first + 3]
        columns = tuple(pa.array([row[c] for row in some], pa.int64()) for c in range(2))
        yield Arrival(columns, len(some))


def joined(query: JoinQuery, tables: Sequence[Rows], memory: int) -> tuple[Counter[object], bool]:
    def rows_of(query: JoinQuery, inputs: Sequence[object]) -> Counter[object]:
        eddy = JoinEddy(
            query,
            [],
            lambda: make_policy(policy_name("adaptive")),
            VirtualClock(),
            np.random.default_rng(0),
        )
        found: Counter[object] = Counter()
        for each in eddy.run(inputs):  # type: ignore[arg-type]  # scans
            found.update(zip(*(column.to_pylist() for column in each.outputs), strict=True))
        return found

    own = [r for r in range(len(query.relations)) if query.store_of(r) == r]
    scans = BoundedScans(query, {r: HeldScan(arrivals(tables[r])) for r in own}, memory)
    found = rows_of(query, scans.inputs())
    if scans.is_full:
        for left, inputs in scans.joins_left(lambda: pytest.fail("nothing to wait for")):
            found += rows_of(left, inputs)
    assert scans.rows == {r: len(tables[r]) for r in own}
    return found, scans.is_full


ROWS = st.lists(st.tuples(st.none() | st.integers(0, 3), st.integers(0, 9)), max_size=14)


@pytest.mark.slow(30)
@given(st.integers(2, 3), st.booleans(), st.data())
def test_each_row_arises_once(relations: int, shared: bool, data: st.DataObject) -> None:  # noqa: FBT001 - drawn
    query = query_of(relations, shared=shared)
    tables = [data.draw(ROWS) for _ in range(relations)]
    memory = data.draw(st.sampled_from([100, 300, 600, 10**6]))
    if shared:
        tables[-1] = tables[0]
    expected: Counter[object] = Counter()
    rows: list[tuple[int | None, tuple[int, ...]]] = [(key, (value,)) for key, value in tables[0]]
    for table in tables[1:]:
        rows = [
            (key, (*values, value))
            for key, values in rows
            for other, value in table
            if key is not None and key == other
        ]
    expected.update(values for _, values in rows)
    found, _ = joined(query, tables, memory)
    assert found == expected


def test_the_last_scan_passes_by() -> None:
    query = query_of(2, shared=False)
    few: Rows = [(1, 1)]
    many: Rows = [(n % 5, n) for n in range(600)]
    found, full = joined(query, [few, many], 2_000)  # of which the many rows would take 9,600
    assert not full
    assert sum(found.values()) == 120
    _, full = joined(query, [many, many], 2_000)
    assert full
