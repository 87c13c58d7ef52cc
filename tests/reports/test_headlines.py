"""The totals of a block: counts have the number that they need, a total is told once."""

from __future__ import annotations

from dataclasses import replace

from eddyline.reports.block_report import BlockReport
from eddyline.reports.figures import PAGE, TERMINAL
from eddyline.reports.headlines import headlines
from eddyline.reports.records import TaskRecord, ToldApartRecord
from tests.reports.samples import broadcast, drifting, joined


def sentences(block: BlockReport) -> list[str]:
    assert block.record is not None
    return [TERMINAL.sentence(headline.sentence) for headline in headlines(block, block.record)]


def tiles(block: BlockReport) -> list[str]:
    assert block.record is not None
    return [tile.name for headline in headlines(block, block.record) for tile in headline.tiles]


def test_one_is_one() -> None:
    one = TaskRecord(block="b", rows_in=1, rows_out=1, seconds=1.0, decisions=1, tasks=1)
    said = sentences(BlockReport("t", "static", None, (), one))
    assert said[0] == "1 row in, 1 out (100 %); 1 task"
    assert said[-1].endswith("; 1 decision")


def test_a_column_by_which_rows_were_told_apart_is_named() -> None:
    told = ToldApartRecord(column="country", classes=3, rows=1200)
    record = TaskRecord(block="b", rows_in=2000, rows_out=1, told_apart=(told,))
    expected = "1,200 rows told apart by country, each of 3 classes in an order of its own"
    assert expected in sentences(BlockReport("t", "adaptive", None, (), record))


def test_what_is_told_at_a_glance() -> None:
    times = ["Time in the block", "Routing"]
    assert tiles(drifting().blocks[0]) == ["Rows kept", "Calls avoided", "Time spared", *times]
    assert tiles(broadcast().blocks[0]) == ["Joined rows", "Calls made", *times]
    assert tiles(joined().blocks[0])[-2:] == ["Largest task", "Spilled to disk"]


def test_the_parts_of_the_time_are_told_where_they_were_measured() -> None:
    (block,) = drifting().blocks
    assert block.record is not None
    assert not any("went" in sentence for sentence in sentences(block))
    measured = replace(block, record=replace(block.record, output_seconds=1.5))
    (said,) = (sentence for sentence in sentences(measured) if "went" in sentence)
    assert "1.50 s putting results together" in said


def test_only_figures_are_spelled_otherwise_in_a_page() -> None:
    """A table may be called as a unit is."""
    (block,) = broadcast().blocks
    assert block.record is not None
    named = replace(block, layout="no shuffle: table 12 us stays in place")
    record = replace(block.record, core_seconds=12e-6)
    said = [PAGE.sentence(headline.sentence) for headline in headlines(named, record)]
    assert "no shuffle: table 12 us stays in place" in said
    assert any("12.0 µs waiting for a core" in sentence for sentence in said)
