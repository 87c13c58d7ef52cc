"""The cheap functions: Spark's own worker code and ours give the same results, for each type."""

from __future__ import annotations

import pytest
from pyspark.accumulators import Accumulator, AddingAccumulatorParam, _accumulatorRegistry

pytest.importorskip("pyspark.worker_message", reason="it runs the worker that PySpark 4.3 has")

from bench.cheap.benchmark import Measured, long_table, require_same, short_table
from bench.cheap.cases import Case, Kind, cases
from bench.cheap.workers import Contestant, contestants


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_all_give_the_results_of_plain_spark(case: Case) -> None:
    require_same(case, contestants(case), case.batches(300))


def test_tables_have_a_row_for_each_case() -> None:
    seconds = {name: [1e-3, 2e-3, 3e-3] for name in Contestant}
    measured = [Measured(case, 1_000, seconds) for case in cases()]
    assert {case.kind for case in cases()} == set(Kind)
    assert long_table(measured).row_count == short_table(measured).row_count == len(measured) + 1
    assert measured[0].over(Contestant.FILTER).median == 1.0
    assert measured[0].more(Contestant.FILTER).median == 0.0


def test_accumulators_of_a_driver_in_this_process_come_back() -> None:
    Accumulator(-1_000_000, 0, AddingAccumulatorParam(0))
    of_driver = dict(_accumulatorRegistry)
    case = cases()[0]
    try:
        require_same(case, contestants(case), case.batches(10))
        assert of_driver == _accumulatorRegistry
    finally:
        del _accumulatorRegistry[-1_000_000]
