"""Whatever is wrong with what the user gave is told in one line, with exit code 2."""

from __future__ import annotations

import pytest

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
        ([TABLE, "SELECT * FROM row"], "there is no table row; the tables are rows (line 1"),
        ([TABLE, "SELECT nam FROM rows"], "`nam` cannot be resolved. Did you mean"),
        ([TABLE, "SELECT id FROM rows WHERE far(id)"], "there is no function far; name one of"),
        ([TABLE, "SELECT id FRM rows x y"], "the SQL does not parse: Syntax error at or near"),
        ([TABLE, "SELECT\n id, FROM FROM rows"], "(line 2, column "),
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
