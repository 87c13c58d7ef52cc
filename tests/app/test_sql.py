"""``eddyline sql``: rows to stdout or into a file, the rest to stderr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eddyline.app.commands.sql import _fuller
from eddyline.reports.records import TaskRecord
from tests.app.conftest import ROWS, Run
from tests.reports.samples import drifting

TABLE = ("--table", "rows=rows.parquet")
PREDICATES = ("--udf", "rules:heavy", "--udf", "rules:odd:boolean", "--udf", "udfs:fifth")
QUERY = "SELECT id, name FROM rows WHERE heavy(id) IS NOT NULL AND odd(id) AND fifth(id)"
EXPECTED = [number for number in range(ROWS) if number % 2 == 1 and number % 5 == 0]


def test_rows_go_to_stdout_and_the_routing_to_stderr(run: Run) -> None:
    answer = run("sql", *TABLE, *PREDICATES, "--limit", "0", QUERY)
    assert answer.code == 0
    heading, rule, *rows = answer.out.splitlines()
    assert heading.split() == ["id", "name"]
    assert set(rule) == {"-", " "}
    assert [int(row.split()[0]) for row in rows] == EXPECTED
    for shown in ("heavy(id)", "odd(id)", "fifth(id)", "2,000 rows in, 200 out", "avoided"):
        assert shown in answer.err


def test_plain_spark_prints_the_same_rows_and_no_report(run: Run) -> None:
    adapted = run("sql", *TABLE, *PREDICATES, "--limit", "0", QUERY)
    plain = run("sql", "--plain", *TABLE, *PREDICATES, "--limit", "0", QUERY)
    assert plain.code == 0
    assert plain.out == adapted.out
    assert plain.err == ""


def test_a_limit_is_announced_where_it_cut(run: Run) -> None:
    cut = run("sql", "--plain", *TABLE, "--limit", "3", "SELECT id FROM rows ORDER BY id")
    assert cut.out.split() == ["id", "--", "0", "1", "2"]
    assert "the first 3 rows; --limit 0 prints all" in cut.err
    whole = run("sql", "--plain", *TABLE, "--limit", "3", "SELECT id FROM rows WHERE id < 3")
    assert whole.out == cut.out
    assert whole.err == ""


def test_twenty_rows_are_printed_by_default(run: Run) -> None:
    answer = run("sql", "--plain", *TABLE, "SELECT id FROM rows")
    assert len(answer.out.splitlines()) == 22
    assert "the first 20 rows" in answer.err


def test_a_query_without_python_predicates_says_so(run: Run) -> None:
    answer = run("sql", *TABLE, "SELECT count(*) AS n FROM rows")
    assert answer.out.split() == ["n", "-" * 4, "2000"]
    assert answer.err.splitlines() == [
        "",
        "No part of this query runs in an eddy.",
        "No predicate depends on a Python function.",
    ]


def test_what_is_left_to_spark_is_told_with_its_reason(run: Run) -> None:
    query = "SELECT id FROM rows WHERE chancy(id) AND id < 3"
    answer = run("sql", *TABLE, "--udf", "udfs:chancy", query)
    assert answer.code == 0
    explained = run("explain", *TABLE, "--udf", "udfs:chancy", "--sql", query)
    assert "chancy(id): it is not deterministic" in explained.out
    assert answer.err == f"\nNo part of this query runs in an eddy.\n{explained.out}"


def test_too_few_rows_to_tell_of_say_what_to_do(run: Run) -> None:
    answer = run("sql", *TABLE, *PREDICATES, "--limit", "1", QUERY)
    assert "This is the first row; --limit 0 prints all." in answer.err
    assert "--limit 0 runs" in answer.err
    assert "Collect, count, show" not in answer.err


def test_no_rows_that_came_to_an_eddy_are_told(run: Run) -> None:
    answer = run("sql", *TABLE, *PREDICATES, f"{QUERY} AND id < 0")
    assert answer.code == 0
    assert "Collect, count, show" not in answer.err
    assert "--limit 0" not in answer.err
    assert "no rows" in answer.err.lower()


def test_functions_return_what_they_are_annotated_with(run: Run) -> None:
    functions = [f"--udf=rules:{name}" for name in ("named", "day", "price", "third")]
    query = "SELECT named(name) n, day(id) d, price(id) p, third(id) t FROM rows WHERE id = 30"
    answer = run("sql", "--plain", *TABLE, *functions, query)
    assert answer.err == ""
    assert answer.out.splitlines()[-1].split("  ") == [
        "[row, 30]", "2013-01-03", "7.500000000000000000", "true",
    ]  # fmt: skip


def test_a_function_goes_before_sparks_own_of_the_same_name(run: Run) -> None:
    query = """
        SELECT day(id) AS day FROM rows
        WHERE id = 30 AND third(id) AND day(id) > date '2013-01-02'
    """
    adapted = run("sql", *TABLE, "--udf=rules:day", "--udf=rules:third", query)
    assert adapted.out.split() == ["day", "-" * 10, "2013-01-03"]
    assert "third, day" in adapted.err
    without = run("sql", "--plain", "SELECT day(date '2013-01-30') AS day")
    assert without.out.split() == ["day", "---", "30"]


def test_tables_can_be_csv_and_json_and_folders(run: Run, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(3):
        text = f'{{"id": {number}}}\n'
        (parts / f"{number}.jsonl").write_text(text, encoding="utf-8")
    (parts / "_SUCCESS").touch()
    query = """
        SELECT c.id, c.text, c.share, l.tags FROM c
        JOIN l USING (id) JOIN a USING (id) JOIN p USING (id)
        ORDER BY id
    """
    tables = ("c=rows.csv", "l=lines.json", "a=array.json", f"p={parts}")
    answer = run("sql", "--plain", *(f"--table={table}" for table in tables), query)
    assert answer.err == ""
    assert [line.split("  ")[-1].strip() for line in answer.out.splitlines()[2:]] == ["[a]", "NULL"]
    assert 'a "quoted", one' in answer.out
    assert "0.25" in answer.out


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_all_rows_are_written_in_order_into_one_file(run: Run, tmp_path: Path, kind: str) -> None:
    target = tmp_path / f"rows.{kind}"
    target.write_text("what was there before", encoding="utf-8")
    query = "SELECT id, name, NULL AS gone FROM rows WHERE odd(id) AND third(id) ORDER BY id DESC"
    query = query.replace("NULL AS gone", "cast(NULL AS string) AS gone")
    functions = ("--udf", "rules:odd:boolean", "--udf", "rules:third")
    answer = run("sql", *TABLE, *functions, "--output", str(target), query)
    assert answer.code == 0
    assert answer.out == ""
    expected = [number for number in range(ROWS) if number % 6 == 3][::-1]
    if kind == "json":
        lines = target.read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["id"] for line in lines] == expected
    elif kind == "csv":
        table = pyarrow.csv.read_csv(target)
        assert table.column_names == ["id", "name", "gone"]
        assert table["id"].to_pylist() == expected
    else:
        table = pq.read_table(target)
        assert table["id"].to_pylist() == expected
        assert table["gone"].null_count == len(expected)
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_written_can_be_read_again(run: Run, tmp_path: Path) -> None:
    query = "SELECT '  sp ' AS s, 'a\\nb' AS t, 'c\"d' AS u, CAST(NULL AS INT) AS v, 1 AS w"
    kept = ["s", "t", "u", "v", "w"]
    for kind in ("csv", "json"):
        target = tmp_path / f"rows.{kind}"
        assert run("sql", "--plain", "--output", str(target), query).code == 0
        told = run("sql", "--plain", f"FROM '{target}' SELECT * WHERE s = '  sp ' AND t = 'a\\nb'")
        heading, _, *rows = told.out.splitlines()
        assert sorted(heading.split()) == kept
        assert len(rows) == 1
    assert json.loads((tmp_path / "rows.json").read_text(encoding="utf-8")) == {
        "s": "  sp ", "t": "a\nb", "u": 'c"d', "v": None, "w": 1,
    }  # fmt: skip


def test_an_empty_result_is_written_too(run: Run, tmp_path: Path) -> None:
    for kind in ("parquet", "csv", "json"):
        target = tmp_path / f"rows.{kind}"
        answer = run(
            "sql", "--plain", *TABLE, "--output", str(target), "SELECT * FROM rows LIMIT 0"
        )
        assert answer.code == 0
    assert pq.read_schema(tmp_path / "rows.parquet").names == ["id", "name"]
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8") == "id,name\n"
    assert (tmp_path / "rows.json").read_text(encoding="utf-8") == ""


def test_timestamps_keep_their_range_in_parquet(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    query = "SELECT timestamp_ntz '3000-01-01 00:00:00' AS a, timestamp '3000-01-01 00:00:00Z' AS b"
    assert run("sql", "--plain", "--output", str(target), query).code == 0
    row = pq.read_table(target).to_pylist()[0]
    assert [value.year for value in row.values()] == [3000, 3000]


def test_the_report_is_written_as_a_page(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    answer = run("sql", *TABLE, *PREDICATES, "--limit", "0", "--report", str(page), QUERY)
    assert answer.code == 0
    assert f"Report: {page}" in answer.err
    assert "fifth(id)" in page.read_text(encoding="utf-8")


def test_a_running_session_is_left_as_it_was(run: Run, spark: SparkSession) -> None:
    run("sql", *TABLE, *PREDICATES, QUERY)
    assert not spark.catalog.tableExists("rows")
    assert not spark.catalog.functionExists("heavy")
    assert "PYTHONPATH" not in spark.sparkContext.environment
    assert spark.sparkContext.applicationId


def test_what_tasks_told_before_a_limit_ended_them_is_in_the_report() -> None:
    (block,) = drifting().blocks
    assert block.record is not None
    fewer, more = (replace(block.record, rows_in=rows) for rows in (5, 70))
    other = replace(block, title="another block", record=replace(block.record, rows_in=900))

    def rows_of(recorded: TaskRecord | None, told: Sequence[TaskRecord]) -> list[int]:
        seen = [other, *(replace(block, record=record) for record in told)]
        found = _fuller([replace(block, record=recorded)], seen)
        return [-1 if each.record is None else each.record.rows_in for each in found]

    assert rows_of(None, []) == [-1]
    assert rows_of(None, [fewer]) == [5]
    assert rows_of(fewer, [more]) == [70]
    assert rows_of(more, [fewer]) == [70]
