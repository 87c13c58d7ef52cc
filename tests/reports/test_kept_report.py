"""A report outlives its application: as JSON of a bounded size, from which it comes back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from eddyline.reports.block_report import BlockReport
from eddyline.reports.kept_report import LARGEST, REDACTED, kept_json, kept_report
from eddyline.reports.records import ToldApartRecord
from eddyline.reports.routing_report import RoutingReport, reports_page
from tests.reports.samples import SAMPLES, drifting, joined, many_orders, waiting


def kept(report: RoutingReport) -> RoutingReport:
    text = kept_json(report)
    assert text is not None
    return kept_report(json.loads(text))


@pytest.mark.parametrize("name", SAMPLES)
def test_it_comes_back_as_it_was(name: str) -> None:
    report = SAMPLES[name]()
    back = kept_report(json.loads(json.dumps(report.to_dict())))
    assert back.to_dict() == report.to_dict()
    assert str(back) == str(report)


def test_what_rows_were_told_apart_by_comes_back_if_it_was_there() -> None:
    (block,) = drifting().blocks
    assert block.record is not None
    told = (ToldApartRecord(column="country", classes=4, rows=77),)
    report = RoutingReport((replace(block, record=replace(block.record, told_apart=told)),), ())
    (back,) = kept(report).blocks
    assert back.record is not None
    assert back.record.told_apart == told
    former = json.loads(json.dumps(report.to_dict()))
    del former["blocks"][0]["run"]["told_apart"]
    (before,) = kept_report(former).blocks
    assert before.record is not None
    assert before.record.told_apart == ()


def test_a_report_of_before_inputs_waited_is_read() -> None:
    former = waiting().to_dict()
    del former["blocks"][0]["measured"]
    (block,) = kept_report(former).blocks
    assert block.measured == ()


def test_a_large_one_loses_time_first_and_no_total() -> None:
    report = many_orders()
    assert len(json.dumps(report.to_dict())) > LARGEST
    text = kept_json(report)
    assert text is not None
    assert len(text) <= LARGEST
    (before,), (after,) = report.blocks, kept(report).blocks
    assert before.record is not None
    assert after.record is not None
    assert len(after.record.orders) < len(before.record.orders)
    assert after.record.order_rows == before.record.order_rows
    assert replace(after.record, orders=(), slice_seconds=0.0) == replace(
        before.record, orders=(), slice_seconds=0.0, action=-1, worker=None
    )


def test_many_tasks_of_a_join_keep_their_skew() -> None:
    (block,) = joined().blocks
    assert block.record is not None
    assert block.record.join is not None
    cells = tuple(range(10**9, 10**9 - 30_000, -3))
    join = replace(block.record.join, cells=cells)
    large = replace(block, record=replace(block.record, join=join))
    (after,) = kept(RoutingReport((large,))).blocks
    assert after.record is not None
    assert after.record.join is not None
    assert len(after.record.join.cells) < 200
    assert after.record.join.skew == pytest.approx(join.skew, rel=1e-3)


def test_long_texts_and_many_blocks_are_cut() -> None:
    (block,) = drifting().blocks
    texts = tuple("x" * 90_000 for _ in block.predicates)
    (after,) = kept(RoutingReport((replace(block, predicates=texts),))).blocks
    assert {len(text) for text in after.predicates} == {200}
    many = kept(RoutingReport((block,) * 400))
    assert 0 < len(many.blocks) < 400


def test_what_has_no_room_at_all_is_not_kept() -> None:
    wide = BlockReport("b", "adaptive", 0, ("p",) * 10_000, None)
    assert kept_json(RoutingReport((wide,) * 16)) is None


def test_what_spark_redacts_is_redacted() -> None:
    secret = re.compile(r"(?i)'s3cr3t-\w+'")
    block = BlockReport("f", "adaptive", 0, ("f(id, 'S3CR3T-key') > 1",), None)
    text = kept_json(RoutingReport((block,), (("g('s3cr3t-x')", "it is one"),)), secret)
    assert text is not None
    assert "3cr3t" not in text.lower()
    assert kept_report(json.loads(text)).blocks[0].predicates == (f"f(id, {REDACTED}) > 1",)


@pytest.mark.parametrize(
    "data", [{}, {"format": 2, "blocks": []}, {"format": 1, "blocks": [{}], "left": []}]
)
def test_other_data_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        kept_report(data)


def test_a_page_of_several_reports() -> None:
    page = reports_page([("Action 1: <b>", "10 s", drifting()), ("Action 2", "", joined())])
    assert page.count("<!doctype html>") == 1
    assert "<h1>Action 1: &lt;b&gt;</h1>" in page
    assert page.index("Action 1") < page.index("10 s") < page.index("Action 2")
