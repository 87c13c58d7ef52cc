"""The benchmark of the first use: what its queries give, and what its tables say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import eddyline
from bench.first_use.benchmark import (
    Case,
    Measured,
    Run,
    differences,
    parts,
    repetitions,
    write_tables,
)
from bench.first_use.one_process import PARTS, QUERIES, cpu_of_all


@pytest.mark.parametrize("query", QUERIES)
def test_queries_have_rows_and_run_in_eddies(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    write_tables(tmp_path)
    frame = QUERIES[query](spark, tmp_path)
    adapted = eddyline.adapt(frame)
    assert (adapted is frame) == (query == "native filter")
    rows = adapted.collect()
    assert rows
    assert sorted(rows) == sorted(frame.collect())


def run(use: float, cpu: float) -> Run:
    seconds = {**dict.fromkeys(PARTS, 0.0), "start": 5.0, "query": use, "again": use / 10}
    return Run(seconds, cpu, 7)


def test_differences_are_those_of_a_turn() -> None:
    runs = {
        "plain": [run(1.0, 2.0), run(2.0, 2.0), run(3.0, 2.0)],
        "enable": [run(1.25, 3.0), run(2.5, 3.0), run(3.5, 3.0)],
    }
    measured = Measured(Case("join"), runs)
    assert measured.verdicts() == ["join, enable: +0.50 s, target +0.3 s, missed"]
    assert Measured(Case("join", tiny=False), runs).verdicts() == []
    cells = [list(column.cells) for column in differences([measured]).columns]
    assert cells == [
        ["join"],
        ["2.00"],
        *([""], [""]),
        *(["0.50 (0.25-0.50)"], ["1.00 (1.00-1.00)"]),
    ]
    cells = [list(column.cells) for column in repetitions([measured]).columns]
    assert cells == [["join"], ["200"], [""], ["1.25 (1.17-1.25)"]]
    assert [list(column.cells)[1] for column in parts([measured]).columns][:2] == ["join", "enable"]


def test_cases_have_names_of_their_own() -> None:
    assert Case("join").name == "join"
    assert Case("join", "spark", tiny=False, installed=False).name == (
        "join, spark's session, very first, just installed"
    )
    assert Case("native filter").contestants == ("plain", "enable")


def test_cpu_time_grows() -> None:
    before = cpu_of_all()
    assert before > 0
    assert cpu_of_all() >= before
