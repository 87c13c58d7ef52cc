"""Join blocks in the report: their records add up, and every face shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from html import unescape

import pytest

from eddyline.reports.block_report import BlockReport
from eddyline.reports.charts import column_chart
from eddyline.reports.html import page
from eddyline.reports.merging import merge
from eddyline.reports.records import FunctionRecord, JoinRecord, SteMRecord, TaskRecord
from eddyline.reports.routing_report import RoutingReport
from eddyline.reports.text import plain
from eddyline.reports.wording import compact
from tests.reports.samples import JOIN_INPUTS, broadcast, joined, joined_task, sections_of
from tests.reports.test_html import wide


def text_of(report: RoutingReport, width: int = 120) -> str:
    return plain(sections_of(report), width)


def html_of(report: RoutingReport) -> str:
    return unescape(wide(page(sections_of(report))))


def record_of(report: RoutingReport) -> tuple[TaskRecord, JoinRecord]:
    record = report.blocks[0].record
    assert record is not None
    assert record.join is not None
    return record, record.join


# ---------------------------------------------------------------- records


def without_times(record: TaskRecord) -> JoinRecord:
    """Return a record of joins without sums of times, which differ in their last bits."""
    join = record.join
    assert join is not None
    return replace(join, stems=tuple(replace(stem, seconds=0.0) for stem in join.stems))


def test_tasks_add_up() -> None:
    tasks = [joined_task(number) for number in range(12)]
    whole = reduce(merge, tasks)
    parts = [task.join for task in tasks if task.join is not None]
    join = whole.join
    assert join is not None
    for number, stem in enumerate(join.stems):
        of_tasks = [part.stems[number] for part in parts]
        for name in ("builds", "probes", "matches", "bounced", "killed"):
            assert getattr(stem, name) == sum(getattr(each, name) for each in of_tasks)
        assert stem.rows == max(each.rows for each in of_tasks)
        assert stem.bytes == max(each.bytes for each in of_tasks)
        assert join.read[number] == sum(part.read[number] for part in parts)
        assert join.came[number] == sum(part.came[number] for part in parts)
    assert whole.rows_in == sum(join.read)
    assert join.cells == tuple(sorted((c for part in parts for c in part.cells), reverse=True))
    assert join.spilled_bytes == sum(part.spilled_bytes for part in parts)
    assert without_times(reduce(merge, tasks[::-1])) == without_times(whole)


def test_a_record_without_joins_takes_nothing_away() -> None:
    with_join = joined_task(0)
    without = replace(joined_task(1), join=None)
    assert merge(with_join, without).join == merge(without, with_join).join == with_join.join


@pytest.mark.parametrize(
    ("cells", "skew"),
    [((), None), ((5,), None), ((6, 2), 1.5), ((9, 3, 3, 2, 1), 3.0), ((9, 0, 0), None)],
)
def test_skew_is_that_over_the_median(cells: tuple[int, ...], skew: float | None) -> None:
    assert JoinRecord(stems=(), cells=cells).skew == skew


def test_matches_a_probe() -> None:
    assert SteMRecord(relation="r", probes=4, matches=10).fanout == 2.5
    assert SteMRecord(relation="r").fanout is None


def test_no_calls_are_avoided_where_more_were_made() -> None:
    more = FunctionRecord(name="f", calls=9, calls_possible=4, seconds=3.0)
    less = FunctionRecord(name="g", calls=1, calls_possible=4, seconds=1.0)
    assert (more.avoided, more.seconds_spared) == (0, 0.0)
    record = TaskRecord(block="b", functions=(more, less))
    assert (record.calls_avoided, record.seconds_spared) == (3, 3.0)


# ---------------------------------------------------------------- names of steps


def labels(*inputs: str, predicates: int = 2) -> tuple[str, ...]:
    steps = (*("p" for _ in range(predicates)), *(f"join {name}" for name in inputs))
    return BlockReport("t", "static", None, steps, inputs=inputs).labels


def test_steps_are_named_by_their_inputs() -> None:
    assert labels("flights", "planes") == ("1", "2", "flights", "planes")
    assert labels(predicates=3) == ("1", "2", "3")


@pytest.mark.parametrize(
    "inputs",
    [("planes", "planes"), ("input 1", "planes"), ("a_table_of_a_long_name", "another_of_them")],
)
def test_by_letters_where_names_would_be_misread(inputs: tuple[str, ...]) -> None:
    assert labels(*inputs) == ("1", "2", "A", "B")


def test_more_inputs_than_letters() -> None:
    found = labels(*(f"t{number}" for number in range(40)))
    assert found[2:5] == ("A", "B", "C")
    assert len(set(found)) == 42


# ---------------------------------------------------------------- text


def test_text_of_a_join() -> None:
    text = text_of(joined())
    record, join = record_of(joined())
    assert "Block 1: flights join planes join ports" in text
    rows_in, rows_out = compact(record.rows_in), compact(record.rows_out)
    assert f"{rows_in} rows of 3 inputs, {rows_out} joined rows out; 12 tasks" in text
    assert "12 cells of one shuffle: 12 by flights.tail_number = planes.tail_number" in text
    assert "The largest task had 4.62 times the rows of the median one" in text
    assert "12.0 MiB spilled to disk, in 48 files" in text
    assert "flights -> 1 -> planes -> 2 -> ports" in text
    (planes,) = (line.split() for line in text.splitlines() if line.strip().startswith("planes"))
    assert planes[1] == compact(join.read[1])
    assert "Killed" in text
    assert "Bounced" not in text  # there was none
    assert "decided by another predicate" not in text


@pytest.mark.parametrize("face", [text_of, html_of])
def test_no_share_is_more_than_all_and_nothing_is_negative(
    face: Callable[[RoutingReport], str],
) -> None:
    for report in (joined(), broadcast()):
        shown = face(report)
        assert all(float(share) <= 100 for share in re.findall(r"([\d.]+) %", shown))
        body = re.sub(r"<svg.*?</svg>|<style.*?</style>|<meta[^>]*>", "", shown, flags=re.DOTALL)
        assert not re.search(r"-\d", body.replace("2025-10-09", ""))


def test_more_calls_than_in_a_fixed_plan_are_said_plainly() -> None:
    assert "54 calls made; a fixed plan makes 18" in text_of(broadcast())
    html = html_of(broadcast())
    assert "<dt>Calls made</dt><dd><b>54</b> <span>18 in a fixed plan</span>" in html
    assert "<dt>Calls avoided</dt><dd><b>" not in html


def test_inputs_keep_their_names_in_a_narrow_terminal() -> None:
    text = text_of(joined(), 60)
    for name in JOIN_INPUTS:
        assert any(line.split()[:1] == [name] for line in text.splitlines())


# ---------------------------------------------------------------- HTML


def test_html_of_a_join() -> None:
    html = html_of(joined())
    assert html.count("<svg") == 3
    assert "12 cells of one shuffle" in html
    assert "<dt>Largest task</dt><dd><b>4.62 x</b>" in html
    assert "<dt>Spilled to disk</dt><dd><b>12.0 MiB</b> <span>48 files</span>" in html
    assert "flights → 1 → planes → 2 → ports (73.8 %)" in html
    assert "of all" not in html
    for name in ("Rows read", "Arrived", "In SteM", "Built", "Probes", "Matches", "Killed"):
        assert f'<th scope="col">{name}</th>' in html


def test_every_step_has_its_bars() -> None:
    svg = re.findall(r"<svg.*?</svg>", wide(page(sections_of(joined()))), re.DOTALL)[1]
    assert "1: delayed(delay_minutes) &gt; 0.5" in svg
    assert "join planes" in svg
    assert "none arrived" in svg  # flights are only streamed
    assert "0.95 per tuple" in svg


def test_names_are_escaped() -> None:
    html = page(sections_of(broadcast()))
    assert "<some>" not in html
    assert "as &lt;some&gt; people" in html


def test_few_tasks_need_no_picture_of_their_rows() -> None:
    block = joined().blocks[0]
    record, join = record_of(joined())
    few = replace(record, join=replace(join, cells=(50, 40)))
    report = RoutingReport((replace(block, record=few),))
    assert wide(page(sections_of(report))).count("<svg") == 2


def test_columns_of_many_tasks_share_their_places() -> None:
    svg = column_chart([1000 - n for n in range(901)], "T", "x", "y")
    assert svg.count("<rect") == 1 + 181
    assert "1 to 5: 998" in svg
    assert "median: 550" in svg
    assert column_chart([], "T", "x", "y").count("<rect") == 1


# ---------------------------------------------------------------- data


def test_data_of_a_join() -> None:
    (block,) = joined().to_dict()["blocks"]
    _, join = record_of(joined())
    assert block["inputs"] == list(JOIN_INPUTS)
    assert block["predicates"][2:] == ["join flights", "join planes", "join ports"]
    assert block["layout"].startswith("12 cells")
    run = block["run"]["join"]
    assert [stem["relation"] for stem in run["stems"]] == list(JOIN_INPUTS)
    assert [stem["read"] for stem in run["stems"]] == list(join.read)
    assert [stem["fanout"] for stem in run["stems"]] == [None, 1.0, pytest.approx(0.95, abs=0.01)]
    assert run["cells"] == list(join.cells)
    assert run["skew"] == join.skew
    assert {order["order"][0] for order in block["run"]["orders"]} == {2}
