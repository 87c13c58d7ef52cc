"""What is saved of aggregates goes with the queries that wanted it."""

from __future__ import annotations

import pyarrow as pa

from eddyline.standing.tasks.aggregating import AggregatedResults


def test_parts_that_no_query_wants_any_more_are_forgotten() -> None:
    """All queries of a grouping may have gone while this worker had not the cell."""
    aggregated = AggregatedResults(("trades",), on_error=lambda *_: None)
    aggregated.load({("a grouping that is gone", 3): pa.table({})}, closed=5)
    assert aggregated.changes() == ({}, [("a grouping that is gone", 3)])
    assert aggregated.changes() == ({}, [])
