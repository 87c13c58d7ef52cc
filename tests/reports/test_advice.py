"""What reports advise, and that they advise nothing without a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.reports.advice import advice
from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.html import page
from eddyline.reports.records import (
    FunctionRecord,
    JoinRecord,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
)
from eddyline.reports.sections import ADVICE, report_sections
from eddyline.reports.text import plain

USELESS = PredicateRecord(text="f(x)", rows_in=20_000, passed=20_000, seconds=3.0)
FORGOTTEN = FunctionRecord(name="g", calls=20_000, remembered=10, seconds=2.0, lookup_seconds=0.5)
ASKED = AskedTable("zips", keys=240, requests=250, failures=10, at_a_time=8)
CALLED = CalledFunction("rate", values=240, calls=240, failures=0, seconds=9.0)


def block(
    *predicates: PredicateRecord, functions: tuple[FunctionRecord, ...] = (), spilled: int = 0
) -> BlockReport:
    join = JoinRecord(stems=(SteMRecord(relation="R"),), spilled_bytes=spilled) if spilled else None
    record = TaskRecord(
        block="b",
        rows_in=20_000,
        rows_out=20_000,
        seconds=5.0,
        predicates=predicates,
        functions=functions,
        join=join,
    )
    texts = tuple(predicate.text for predicate in predicates)
    return BlockReport("f", "adaptive", 0, texts, record)


def test_a_predicate_that_drops_nothing() -> None:
    (said,) = advice([block(USELESS)])
    assert said == "f(x) dropped none of 20,000 rows, in 3.00 s: the query may not need it."


@pytest.mark.parametrize(
    "changed",
    [
        {"passed": 19_999, "rejected": 1},
        {"passed": 19_999, "null": 1},
        {"passed": 19_999, "errors_held": 1},
        {"rows_in": 9_999, "passed": 9_999},
        {"seconds": 0.09},
    ],
)
def test_one_that_drops_a_row_or_takes_no_time_is_fine(changed: dict[str, float]) -> None:
    assert advice([block(replace(USELESS, **changed))]) == ()  # type: ignore[arg-type]


def test_a_memory_without_answers() -> None:
    (said,) = advice([block(functions=(FORGOTTEN,))])
    assert said.startswith("g hardly ever got the same arguments again (10 of 20,010 rows)")
    assert "@eddyline.forgetful" in said
    useful = replace(FORGOTTEN, remembered=500)
    quick = replace(FORGOTTEN, lookup_seconds=0.05)
    assert advice([block(functions=(useful, quick))]) == ()


def test_a_join_that_writes_to_disk() -> None:
    (said,) = advice([block(spilled=1 << 30)])
    assert said.startswith("The join wrote 1.00 GiB to disk")


def test_one_key_or_value_a_call() -> None:
    (said,) = advice([], asked=[ASKED])
    assert said.startswith("zips was asked for one key a call, 240 in all")
    assert said.endswith("keys_per_call=100 makes that 3 calls.")
    (said,) = advice([], called=[CALLED])
    assert said.endswith("where it can take a list, batch=100 makes that 3 calls.")
    assert advice([], asked=[replace(ASKED, requests=12)]) == ()
    assert advice([], called=[replace(CALLED, calls=12)]) == ()
    # They come one by one, though several may.
    assert advice([], asked=[replace(ASKED, together=50)]) == ()
    assert advice([], called=[replace(CALLED, together=50)]) == ()
    assert advice([], asked=[replace(ASKED, keys=19, requests=19, failures=0)]) == ()


def test_a_service_that_fails_often() -> None:
    often = replace(ASKED, keys=240, requests=100, failures=60)
    (said,) = advice([], asked=[often])
    assert said.startswith("60 of 100 requests to zips failed and were made again")
    assert advice([], asked=[replace(often, failures=9)]) == ()


def test_it_stands_at_the_end_of_every_report_and_once() -> None:
    sections = report_sections([block(USELESS), block(USELESS)], [("h(x)", "it is called")])
    assert len(sections.advice) == 1
    text = plain(sections, 100)
    assert text.index(ADVICE) > text.index("h(x)")
    assert text.count("the query may not need it") == 1
    html = page(sections)
    assert f"<h2>{ADVICE}</h2>" in html
    assert html.count("the query may not need it") == 1
    without = report_sections([block(replace(USELESS, passed=5))], [])
    assert ADVICE not in plain(without, 100)
    assert ADVICE not in page(without)
