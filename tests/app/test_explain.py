"""``eddyline explain``: the explanation of a script's DataFrame or of a query, on stdout."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.app.conftest import Run

SCRIPT = """
    from pyspark.sql.functions import udf

    import rules
    import udfs

    print("a script may print")

    @udf("boolean")
    def even(number):
        return number % 2 == 0

    rows = spark.read.parquet("rows.parquet")
    df = rows.filter(even("id") & udfs.fifth("id"))
    late = df.filter("id > 3").select("name")
    if __name__ != "__main__":
        raise SystemExit("started as something else")
"""


@pytest.fixture
def script(folder: Path) -> Path:
    path = folder / "job.py"
    path.write_text(dedent(SCRIPT).replace("rows.parquet", f"{folder}/rows.parquet"), "utf-8")
    return path


def test_a_scripts_dataframe_is_explained(run: Run, script: Path) -> None:
    answer = run("explain", str(script))
    assert answer.code == 0
    assert "Would run in eddies" in answer.out
    assert "even(id)" in answer.out
    assert "fifth(id)" in answer.out
    assert answer.err == "a script may print\n"


def test_another_name_can_be_chosen(run: Run, script: Path) -> None:
    answer = run("explain", str(script), "--name", "rows")
    assert answer.code == 0
    assert answer.out == "No predicate depends on a Python function.\n"


def test_a_query_is_explained(run: Run) -> None:
    answer = run(
        "explain", "--table", "rows=rows.parquet", "--udf", "rules:third", "--udf", "udfs:fifth",
        "--sql", "SELECT * FROM rows WHERE third(id) AND fifth(id)",
    )  # fmt: skip
    assert answer.code == 0
    assert "third(id)" in answer.out
    assert answer.err == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\ndf = spark.table('nowhere')", "line 2: The table or view `nowhere` cannot"),
        ("def f():\n    return {}['x']\nf()", "line 2: KeyError: 'x'"),
        ("import math\nmath.sqrt(\n    -1)", "line 2: ValueError: math domain error"),
        ("df = spark.range(3", "line 1: SyntaxError: '(' was never closed"),
        ("raise SystemExit(3)", "the script ended itself with exit code 3"),
        ("raise SystemExit('no\\nway')", "the script ended itself: no way"),
        ("x = 1\0", "job.py: SyntaxError: source code string cannot contain null bytes"),
        ("frame = spark.range(3)", "no DataFrame named df; it has frame: choose by --name"),
        ("df = 3", "no DataFrame named df; it has none at all"),
        (
            (
                "from pyspark.sql.functions import udf\n"
                "inverse = udf(lambda x: 1 // x, 'int')\n"
                "df = spark.range(3).select(inverse('id'))\n"
                "df.collect()"
            ),
            # the innermost line of the user's, though a worker ran it
            "line 2: ZeroDivisionError: integer division or modulo by zero",
        ),
    ],
)
def test_a_script_that_fails_is_named_with_its_line(
    run: Run, tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "job.py"
    path.write_text(text, encoding="utf-8")
    answer = run("explain", str(path))
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert complaint in answer.err
    assert ("job.py" in answer.err) or "SystemExit" in text


def test_a_script_may_end_itself_well(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text("df = spark.range(3)\nraise SystemExit(0)", encoding="utf-8")
    assert run("explain", str(path)).code == 0
