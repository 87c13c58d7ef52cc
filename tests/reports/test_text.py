"""The report as text: right at any width, plain where it must be, silent about what is not."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.console import Console

from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import PredicateRecord, TaskRecord
from eddyline.reports.routing_report import RoutingReport
from eddyline.reports.text import plain
from tests.reports.samples import (
    SAMPLES,
    TEXTS,
    away,
    drifting,
    many_orders,
    not_run,
    nothing,
    sections_of,
)


def text_of(report: RoutingReport, width: int) -> str:
    return plain(sections_of(report), width)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_asked(name: str, width: int) -> None:
    text = text_of(SAMPLES[name](), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert text == text.rstrip()


def test_figures_of_a_run() -> None:
    text = text_of(drifting(), 120)
    assert "Block 1: Filter over comments  (policy adaptive, seed 7)" in text
    assert "1.20M rows in, 20,119 out (1.7 %); 48 tasks" in text
    assert "1.43M of 4.79M calls made: 70.2 % avoided, worth about 92.8 s" in text
    assert "routing (0.8 %)" in text
    for number in ("1", "2", "3", "3.1", "3.2"):
        assert any(line.split()[:1] == [number] for line in text.splitlines())
    assert "144 rows raised an error" in text
    assert "at 10.0 s: predicate 2: selectivity 11.0 % -> 79.0 %" in text
    assert "rand_sample(id) < 0.1" in text


def test_predicates_stay_readable_in_80_columns() -> None:
    text = text_of(drifting(), 80)
    assert "toxicity(comment_text)" in text
    assert "is_known_customer" in text


def test_the_picture_shows_when_the_order_changed() -> None:
    lines = text_of(drifting(), 80).splitlines()
    (before,) = (line for line in lines if line.strip().startswith("2 -> 1 -> 3"))
    (after,) = (line for line in lines if line.strip().startswith("1 -> 2 -> 3"))
    assert before.split()[-1] == "███████████▇▁▁▁▁▁▁▁▁▁▁▁▁"
    assert after.split()[-1] == "▁▁▁▁▁▁▁▁▁▁▁▁▇███████████"


def test_six_orders_and_the_others() -> None:
    text = text_of(many_orders(), 100)
    orders = [line for line in text.splitlines() if line.count("->") == 4]
    assert len(orders) == 6
    assert "other orders" in text
    assert "40 changes noticed, the largest 6:" in text


def test_a_predicate_that_was_never_reached() -> None:
    assert "never reached" in text_of(many_orders(), 120)
    assert "never" in text_of(many_orders(), 80)


def test_before_an_action_and_without_rows() -> None:
    text = text_of(not_run(), 100)
    assert text.count("no rows reached this block") == 2  # an action has run: the second one's
    assert text.count("1 " + TEXTS[0]) == 2
    before = RoutingReport(not_run().blocks[:1])
    assert "No action has run yet." in text_of(before, 100)


def test_rows_that_match_no_key_have_a_column_where_there_are_any() -> None:
    report = away()
    assert "Unmatched" not in text_of(report, 100)
    asked = (replace(report.asked[0], unmatched=1_234), *report.asked[1:])
    text = text_of(replace(report, asked=asked), 100)
    assert re.search(r"weather +5,170 +5,214 +44 +1,234 +32 +-", text)
    assert re.search(r"aircraft\(tail\) +800 +800 +0 +0 +8 ", text)
    assert [each["unmatched"] for each in replace(report, asked=asked).to_dict()["asked"]] == [
        1_234,
        0,
    ]


def test_what_was_done_where_the_driver_is() -> None:
    text = text_of(away(), 100)
    assert re.search(r"weather +5,170 +5,214 +44 +32 +-", text)
    assert re.search(r"aircraft\(tail\) +800 +800 +0 +8 +register 612, database 188", text)
    assert "Spent in all: 2.4 USD" in text
    (waits,) = re.findall(r"^  is_spam<b>  4\.50 s  (.*)$", text, re.MULTILINE)
    # From 1 to 2.5 and from 4 to 7 of 7.2 seconds, in forty signs.
    assert [place for place, sign in enumerate(waits) if sign == "█"] == [
        *range(6, 13),
        *range(23, 39),
    ]


def test_nothing_claimed() -> None:
    text = text_of(nothing(), 80)
    assert text.startswith("No part of this query runs in an eddy.")
    assert "a single predicate has no order to choose" in text


def test_brackets_in_a_predicate_are_no_markup() -> None:
    texts = ("f(a)[red] = '[/bold]'",)
    record = TaskRecord(block="b", rows_in=1, predicates=(PredicateRecord(text=texts[0]),))
    block = BlockReport("[b]", "static", None, texts, record)
    text = text_of(RoutingReport((block,), (("[x]", "[/y]"),)), 100)
    assert texts[0] in text
    assert "Block 1: [b]" in text
    assert "[/y]" in text


def test_predicates_without_a_text_get_a_name() -> None:
    nested = (PredicateRecord(text="", rows_in=1), PredicateRecord(text="g(a)", rows_in=1))
    record = TaskRecord(
        block="b", rows_in=2, predicates=(PredicateRecord(text="", rows_in=2, nested=nested),)
    )
    text = text_of(RoutingReport((BlockReport("t", "static", None, ("",), record),)), 100)
    assert "predicate 1 " in text
    assert "predicate 1.1 " in text
    assert "g(a)" in text


def test_one_of_a_thing_is_singular() -> None:
    record = drifting().blocks[0].record
    assert record is not None
    one = replace(record, tasks=1, changes=record.changes[:1])
    text = text_of(RoutingReport((BlockReport("t", "static", None, TEXTS, one),)), 100)
    assert "; 1 task\n" in text
    assert "1 change noticed\n" in text


def test_colours_on_a_terminal_only() -> None:
    terminal, pipe = StringIO(), StringIO()
    Console(file=terminal, force_terminal=True, color_system="standard", width=100).print(
        drifting()
    )
    Console(file=pipe, width=100).print(drifting())
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in pipe.getvalue()


def test_a_terminal_that_knows_only_ascii() -> None:
    raw = BytesIO()
    file = TextIOWrapper(raw, encoding="ascii", write_through=True)
    Console(file=file, width=300).print(many_orders())
    assert b"1 -> 5 -> 3 -> 2 -> 4" in raw.getvalue()


def test_printing_and_showing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    report = drifting()
    assert str(report) == text_of(report, 80)
    sys.displayhook(report)
    assert capsys.readouterr().out == f"{report}\n"
    report.show()
    assert "Filter over comments" in capsys.readouterr().out


def test_in_a_notebook_the_text_is_returned_and_not_shown_by_rich(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outside = repr(drifting())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert Console().is_jupyter
    assert repr(drifting()) == outside != ""
