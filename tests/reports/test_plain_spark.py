"""What plain Spark would have called: counted below the joins, estimated above them, or a bound."""

from __future__ import annotations

from dataclasses import replace

from eddyline.reports.block_report import BlockReport
from eddyline.reports.html import page
from eddyline.reports.plain_spark import compared, joined_rows, with_plain_calls
from eddyline.reports.records import (
    FunctionRecord,
    JoinRecord,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
)
from eddyline.reports.routing_report import RoutingReport
from tests.reports.samples import drifting, not_run, sections_of

# Of 1,000 joined rows 500 pass the first late predicate, and 100 of these the second.
JOINED = TaskRecord(
    block="j",
    rows_in=2_000,
    rows_out=100,
    predicates=(
        PredicateRecord(text="below(a)", rows_in=2_000, passed=900),
        PredicateRecord(text="f(a, b)", rows_in=1_000, passed=500),
        PredicateRecord(text="g(a, b)", rows_in=500, passed=90, errors_held=10),
    ),
    functions=(
        FunctionRecord(name="below", calls=1_500, calls_possible=2_000, seconds=1.5),
        FunctionRecord(
            name="f", calls=800, calls_possible=800, seconds=0.8, joined_calls=800, joined_places=1
        ),
        FunctionRecord(
            name="g", calls=500, calls_possible=500, seconds=5, joined_calls=500, joined_places=2
        ),
    ),
    join=JoinRecord(
        stems=(SteMRecord(relation="a"), SteMRecord(relation="b")),
        read=(1_000, 1_000),
        came=(1_000, 1_000),
        late=(1, 2),
    ),
)


def report_of(record: TaskRecord, *, reduced: bool = False) -> RoutingReport:
    texts = (*(each.text for each in record.predicates), "join a", "join b")
    block = BlockReport("j", "static", 0, texts, record, "no shuffle", ("a", "b"), reduced)
    return RoutingReport((block,))


def test_rows_of_the_joins_come_from_the_shares_that_late_predicates_passed() -> None:
    assert joined_rows(JOINED) == 1_000
    counted = with_plain_calls(JOINED)
    assert [each.calls_possible for each in counted.functions] == [2_000, 1_000, 2_000]
    assert [each.estimated for each in counted.functions] == [False, True, True]
    assert counted.seconds_spared == 0.5 + 0.2 + 15.0


def test_where_nothing_came_out_the_calls_made_are_the_bound() -> None:
    nothing = replace(JOINED, rows_out=0)
    assert with_plain_calls(nothing) is nothing
    found = compared(report_of(nothing).blocks)
    assert found is not None
    assert found.least
    assert not found.estimated
    assert "2,800 calls instead of at least 3,300" in str(report_of(nothing))


def test_never_less_than_was_called() -> None:
    few = replace(JOINED, rows_out=1)
    possible = [each.calls_possible for each in with_plain_calls(few).functions]
    assert possible == [2_000, 800, 500]


def test_the_first_line_of_every_face() -> None:
    report = report_of(with_plain_calls(JOINED))
    said = "Compared with plain Spark: 2,800 calls instead of about 5,000, about 15.7 s less"
    assert str(report).splitlines()[0] == said
    assert f"<p><b>{said}</b></p>" in page(sections_of(report))
    assert report.to_dict()["compared"]["plain_calls"] == 5_000
    assert "2,800 of about 5,000 calls made: 44.0 % avoided" in str(report)


def test_counted_calls_are_not_called_estimates() -> None:
    assert "instead of 4.79M, about 92.8 s less" in str(drifting()).splitlines()[0]


def test_rows_dropped_before_make_it_a_bound() -> None:
    (block,) = drifting().blocks
    reduced = RoutingReport((replace(block, reduced=True),))
    assert "instead of at least 4.79M" in str(reduced).splitlines()[0]


def test_nothing_is_compared_before_an_action() -> None:
    assert compared(not_run().blocks) is None
    assert "Compared" not in str(not_run())
