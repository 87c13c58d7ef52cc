"""What is derived from the counts of a record."""

from __future__ import annotations

from eddyline.reports.records import (
    OTHER_ORDERS,
    FunctionRecord,
    OrderSlice,
    PredicateRecord,
    TaskRecord,
)
from tests.fresh_process import printed_lines


def test_figures_of_no_rows_do_not_exist() -> None:
    unreached = PredicateRecord(text="p")
    assert unreached.selectivity is None
    assert unreached.seconds_per_row is None
    assert FunctionRecord(name="f", calls_possible=9).seconds_spared == 0.0


def test_figures_of_a_predicate() -> None:
    predicate = PredicateRecord(text="p", rows_in=8, passed=2, rejected=6, seconds=4.0)
    assert predicate.selectivity == 0.25
    assert predicate.seconds_per_row == 0.5


def test_calls_are_summed_over_functions() -> None:
    record = TaskRecord(
        block="b",
        functions=(
            FunctionRecord(name="f", calls=10, calls_possible=30, seconds=5.0),
            FunctionRecord(name="g", calls=1, calls_possible=30, seconds=0.1),
        ),
    )
    assert (record.calls, record.calls_possible, record.calls_avoided) == (11, 60, 49)
    assert record.seconds_spared == 5.0 / 10 * 20 + 0.1 * 29


def test_orders_come_most_rows_first_and_the_others_last() -> None:
    record = TaskRecord(
        block="b",
        orders=(
            OrderSlice(0.0, 1.0, 60, (((0, 1), 10), (OTHER_ORDERS, 50))),
            OrderSlice(1.0, 2.0, 25, (((1, 0), 20), ((0, 1), 5))),
        ),
    )
    assert record.order_rows == (((1, 0), 20), ((0, 1), 15), (OTHER_ORDERS, 50))


def test_a_worker_needs_neither_spark_nor_rich_to_record() -> None:
    code = (
        "import sys, eddyline.reports.merging\n"
        "print([name for name in ('pyspark', 'rich', 'pyarrow') if name in sys.modules])"
    )
    assert printed_lines(code) == ["[]"]
