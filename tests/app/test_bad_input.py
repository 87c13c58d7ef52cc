"""Whatever is wrong with what the user gave is told in one line, with exit code 2."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from eddyline.app import output
from eddyline.app.cli import main
from tests.app.conftest import Run

TABLE = "--table=rows=rows.parquet"
ONE = "SELECT 1"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--table=t=nowhere.csv", ONE], "table t: there is no file nowhere.csv"),
        (["--table=t=no*.csv", ONE], "table t: there is no file no*.csv"),
        (["--table=t=notes.txt", ONE], "notes.txt is of no kind that can be read"),
        (["--table=t=.", ONE], "holds files of several kinds"),
        (["--table=t=not.parquet", ONE], "cannot be read as parquet: "),
        (["--table=t=not.json", ONE], "something else than JSON objects"),
        (["--table=t=gone**.csv", ONE], "table t: there is no file gone**.csv"),
        (["--table=t=~nobody-here/t.csv", ONE], "there is no file ~nobody-here/t.csv"),
        ([f"--table=t={'x' * 300}.csv", ONE], "x.csv cannot be read: File name too long"),
        (["--table=t=empty.csv", ONE], "empty.csv is empty, it has no columns"),
        (["--table=t=empty.parquet", ONE], "empty.parquet is empty, it has no columns"),
        ([TABLE, "SELECT * FROM row"], "there is no table row; the tables are rows (line 1"),
        ([TABLE, "SELECT nam FROM rows"], "`nam` cannot be resolved. Did you mean"),
        ([TABLE, "SELECT id FROM rows WHERE far(id)"], "there is no function far; name one of"),
        ([TABLE, "SELECT id FRM rows x y"], "the SQL does not parse: Syntax error at or near"),
        ([TABLE, "SELECT\n id, FROM FROM rows"], "(line 2, column "),
        ([TABLE, "DROP VIEW rows"], "the statement is no query"),
        (["SET spark.sql.ansi.enabled = false"], "the statement is no query"),
        (["INSERT INTO nowhere SELECT 1"], "the statement is no query"),
        (["INSERT OVERWRITE DIRECTORY 'x' USING csv SELECT 1"], "the statement is no query"),
        (["WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a"], "the statement is no query"),
        ([TABLE, "FROM rows INSERT INTO a SELECT * INSERT INTO b SELECT *"], "no query"),
        (
            [TABLE, "FROM rows INSERT OVERWRITE LOCAL DIRECTORY 'x' USING csv SELECT *"],
            "the statement is no query",
        ),
        (["EXECUTE IMMEDIATE 'SET a = 1'"], "the statement is no query"),
        (["BEGIN SELECT 1; END"], "the statement is no query"),
        (["CALL nowhere()"], "the statement is no query"),
        (["--udf=nowhere:f", ONE], "there is no module nowhere"),
        (["--udf=rules.deeper:f", ONE], "there is no module rules.deeper"),
        (["--udf=rules:nothing", ONE], "the module rules has no function nothing"),
        (["--udf=rules:LIMIT", ONE], "rules:LIMIT is not a function"),
        (["--udf=broken:f", ONE], "broken.py, line 3: ValueError: math domain error"),
        (["--udf=rules:odd", ONE], "what rules:odd returns is not known"),
        (["--udf=rules:misspelt", ONE], "what rules:misspelt returns is not known"),
        (["--udf=rules:odd:boolen", ONE], "boolen is no type of Spark's"),
        (["--udf=udfs:fifth:boolean", ONE], "says what it returns already"),
        (["--output=nowhere/rows.csv", ONE], "there is no folder nowhere"),
        (["--report=nowhere/report.html", ONE], "there is no folder nowhere"),
        (["--output=/proc/rows.csv", ONE], "/proc/rows.csv cannot be written: "),
        (["--report=/proc/report.html", ONE], "/proc/report.html cannot be written: "),
        ([TABLE, "--output=rows2.csv", "SELECT array(id) AS a FROM rows"], "CSV"),
    ],
)
def test_one_line_tells_what_is_wrong(run: Run, arguments: list[str], complaint: str) -> None:
    answer = run("sql", *arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("eddyline: error: ")
    assert answer.err.count("\n") == 1
    assert complaint in answer.err


def test_a_missing_script_is_told_before_spark_starts(run: Run) -> None:
    answer = run("explain", "nowhere.py")
    assert answer.code == 2
    assert answer.err == "eddyline: error: there is no file nowhere.py\n"


def test_a_disk_that_fills_up_is_told_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "_join_text", full)
    answer = run("sql", "--output=rows3.csv", ONE)
    assert answer.code == 1
    message = "rows3.csv cannot be written: No space left on device"
    assert answer.err == f"eddyline: error: {message}\n"


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_columns_of_one_name_are_refused_before_the_query_runs(
    run: Run, tmp_path: Path, kind: str
) -> None:
    target = tmp_path / f"rows.{kind}"
    fails = "SELECT id AS b, raise_error('it ran') AS B FROM rows"
    answer = run("sql", TABLE, f"--output={target}", fails)
    assert answer.code == 2
    message = "there are two columns named b; rename one by AS"
    assert answer.err == f"eddyline: error: {target} cannot be written: {message}\n"
    assert not target.exists()


@pytest.mark.parametrize("arguments", [["--version"], ["sql", ONE]])
def test_a_closed_standard_output_is_told_in_one_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(arguments) == 1
    message = "standard output cannot be written: it is closed"
    assert capsys.readouterr().err == f"eddyline: error: {message}\n"


@pytest.mark.parametrize(
    "arguments", [["--version"], ["sql", ONE], ["sql", "--plain", ONE], ["explain", "--sql", ONE]]
)
def test_a_standard_output_that_takes_nothing_is_told_in_one_line(
    run: Run, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8") as unwritable:
        monkeypatch.setattr(sys, "stdout", unwritable)
        answer = run(*arguments)
    assert answer.code == 1
    message = "standard output cannot be written: Bad file descriptor"
    assert answer.err == f"eddyline: error: {message}\n"


@pytest.mark.parametrize("plain", [[], ["--plain"]])
def test_a_function_that_raises_shows_the_users_own_lines(run: Run, plain: list[str]) -> None:
    functions = ("--udf=rules:picky", "--udf=rules:third")
    query = "SELECT count(*) FROM rows WHERE picky(id) AND third(id)"
    answer = run("sql", *plain, TABLE, *functions, query)
    assert answer.code == 1
    assert answer.out == ""
    lines = answer.err.splitlines()
    assert lines[0] == "eddyline: error: a Python function failed"
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[2].endswith("in picky")
    assert "rules.py" in lines[2]
    assert lines[-1] == "ValueError: cannot judge 1500"
    assert len(lines) <= 6
    assert "eddyline/" not in answer.err
    assert "pyspark" not in answer.err


def test_an_error_of_sql_itself_while_it_runs_is_one_line(run: Run) -> None:
    answer = run("sql", TABLE, "SELECT sum(1 / (id - 7)) FROM rows")
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert "the query failed: Division by zero" in answer.err


def test_letters_that_a_locale_does_not_know_are_told(run: Run) -> None:
    answer = run("sql", "SELECT '\udce9'")
    assert answer.code == 2
    assert "set LC_ALL=C.UTF-8" in answer.err


def test_a_current_folder_that_is_gone_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    answer = run("sql", "SELECT 1")
    assert answer.code == 2
    assert answer.err.startswith("eddyline: error: the current folder cannot be read")
    assert answer.err.count("\n") == 1
