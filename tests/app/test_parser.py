"""What the command line accepts, and what it answers to what it does not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from eddyline.app.invocation import (
    DemoInvocation,
    DemoLookupsInvocation,
    ExplainInvocation,
    FunctionSource,
    Query,
    ReportInvocation,
    Script,
    SqlInvocation,
    TableSource,
)
from eddyline.app.parser import POLICIES, parse
from eddyline.engine.policies.catalogue import PolicyName
from tests.fresh_process import printed_lines

SQL = "SELECT * FROM t"


def test_sql_takes_tables_and_functions() -> None:
    first = ("--table", "t=a/b=c.csv", "--udf", "my.rules:score:struct<a:int,b:string>")
    second = ("--udf", "rules:odd", "--table", "u=s3a://bucket/u.parquet")
    invocation = parse(["sql", *first, *second, SQL])
    tables = (TableSource("t", "a/b=c.csv"), TableSource("u", "s3a://bucket/u.parquet"))
    functions = (
        FunctionSource("my.rules", "score", "struct<a:int,b:string>"),
        FunctionSource("rules", "odd"),
    )
    assert invocation == SqlInvocation(Query(SQL, tables, functions), limit=20)


def test_a_report_is_of_all_actions_or_one() -> None:
    log = ["report", "--event-log", "logs/local-1"]
    assert parse(log) == ReportInvocation(Path("logs/local-1"))
    files = ["--html", "a.html", "--json", "a.json", "--action", "0"]
    assert parse([*log, *files]) == ReportInvocation(
        Path("logs/local-1"), 0, Path("a.html"), Path("a.json")
    )
    with pytest.raises(SystemExit):
        parse(["report"])


def test_a_policy_is_one_of_those_that_there_are() -> None:
    assert sorted(POLICIES) == sorted(PolicyName)
    plain, chosen = parse(["sql", SQL]), parse(["sql", "--policy", "rank", SQL])
    assert isinstance(plain, SqlInvocation)
    assert isinstance(chosen, SqlInvocation)
    assert (plain.policy, chosen.policy) == ("adaptive", "rank")


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ([], 20),
        (["--limit", "7"], 7),
        (["--limit", "0"], None),
        (["--output", "rows.csv"], None),
        (["--output", "rows.csv", "--limit", "7"], 7),
    ],
)
def test_the_default_limit_is_for_printing_only(options: list[str], limit: int | None) -> None:
    invocation = parse(["sql", *options, SQL])
    assert isinstance(invocation, SqlInvocation)
    assert invocation.limit == limit


def test_explain_takes_a_script_or_a_query() -> None:
    assert parse(["explain", "job.py"]) == ExplainInvocation(Script(Path("job.py"), "df"))
    named = parse(["explain", "job.py", "--name", "late"])
    assert named == ExplainInvocation(Script(Path("job.py"), "late"))
    query = Query(SQL, (TableSource("t", "t.csv"),))
    assert parse(["explain", "--sql", SQL, "--table", "t=t.csv"]) == ExplainInvocation(query)


def test_demo_needs_no_options() -> None:
    assert parse(["demo"]) == DemoInvocation(3, None, Path("eddyline-demo.html"))
    given = parse(["demo", "--runs", "1", "--sample", "1000", "--out", "x.html"])
    assert given == DemoInvocation(1, 1000, Path("x.html"))


def test_the_demo_of_lookups_has_defaults_of_its_own() -> None:
    assert parse(["demo", "lookups"]) == DemoLookupsInvocation(1, 1_500)
    given = parse(["demo", "lookups", "--runs", "2", "--sample", "50"])
    assert given == DemoLookupsInvocation(2, 50)
    assert parse(["demo", "--sample", "50", "lookups"]) == DemoLookupsInvocation(1, 50)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "a command is needed: demo, sql, explain, report, rules or jar"),
        (["bench"], "invalid choice: 'bench'"),
        (["sql"], "the following arguments are required: QUERY"),
        (["sql", " "], "the query is empty"),
        (["sql", SQL, "--table", "t"], "'t' is not of the form NAME=PATH"),
        (["sql", SQL, "--table", "t="], "'t=' is not of the form NAME=PATH"),
        (["sql", SQL, "--table", "a-b=c.csv"], "'a-b' cannot be the name of a table"),
        (["sql", SQL, "--table", "t=a.csv", "--table", "T=b.csv"], "two tables named t"),
        (["sql", SQL, "--udf", "rules"], "'rules' is not of the form MODULE:FUNCTION[:TYPE]"),
        (["sql", SQL, "--udf", "rules.py:f"], "names a file; its module is rules"),
        (["sql", SQL, "--udf", "./rules:f"], "is not of the form MODULE:FUNCTION[:TYPE]"),
        (["sql", SQL, "--udf", "rules:f:"], "is not of the form MODULE:FUNCTION[:TYPE]"),
        (["sql", SQL, "--udf", "a:f", "--udf", "b:f"], "two functions named f"),
        (["sql", SQL, "--output", "rows.xlsx"], "must end in one of .parquet, .csv, .json"),
        (["sql", SQL, "--limit", "-1"], "'-1' is not a number of rows"),
        (["sql", SQL, "--limit", "2147483647"], "2147483647 is too large"),
        (["sql", SQL, "--policy", "fastest"], "invalid choice: 'fastest'"),
        (["sql", SQL, "--plain", "--policy", "rank"], "--plain runs no eddy"),
        (["sql", SQL, "--plain", "--report", "r.html"], "--plain runs no eddy"),
        (["explain"], "either a script or --sql is needed"),
        (["explain", "job.py", "--sql", SQL], "either a script or --sql is needed"),
        (["explain", "job.py", "--table", "t=t.csv"], "--table and --udf belong to --sql"),
        (["explain", "--sql", SQL, "--name", "x"], "--name belongs to a script"),
        (["demo", "--runs", "0"], "0 is too few"),
        (["demo", "--runs", "x"], "'x' is not a number of runs"),
        (["demo", "flights"], "invalid choice: 'flights'"),
        (["demo", "lookups", "--out", "x.html"], "--out belongs to the race"),
        (["demo", "--sample", "many"], "'many' is not a number of rows"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert complaint in err
    assert "--help)" in err


@pytest.mark.parametrize("command", [[], ["demo"], ["sql"], ["explain"]])
def test_help_shows_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*command, "--help"])
    assert ended.value.code == 0
    help_text = capsys.readouterr().out
    assert "examples:" in help_text
    assert f"eddyline {' '.join(command)}" in help_text.partition("examples:")[2]


@pytest.mark.parametrize("command", ["demo", "sql", "explain"])
def test_the_examples_in_the_help_can_be_run(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([command, "--help"])
    examples = capsys.readouterr().out.partition("examples:")[2].replace("\\\n", " ")
    lines = [line for line in examples.splitlines() if line.lstrip().startswith("eddyline ")]
    assert len(lines) >= 3
    for line in lines:
        parse(shlex.split(line)[1:])


def test_help_and_version_import_neither_spark_nor_rich() -> None:
    code = (
        "import sys, eddyline.app.cli as c\ntry: c.main(['--version'])\nexcept SystemExit: pass\n"
    )
    code += "print([name for name in ('pyspark', 'pyarrow', 'rich') if name in sys.modules])"
    version, modules = printed_lines(code)
    assert version.startswith("eddyline 0.")
    assert modules == "[]"
