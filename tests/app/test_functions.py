"""A user's module is imported before Spark starts, but for one that asks for Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from eddyline.app import prepared_query
from tests.app.conftest import Run

ASKS_FOR_SPARK = """
    import eddyline
    from pyspark.sql.functions import udf

    spark = eddyline.session(config={"spark.eddyline.test": "of the module"})


    @udf("boolean")
    def even(number):
        return number % 2 == 0
"""

MIMICKED = """
    from pathlib import Path

    from eddyline.app.user_functions import load_before_spark
    from eddyline.app.invocation import FunctionSource
    from pyspark.sql import SparkSession

    load_before_spark(FunctionSource("asks", "even"))
    load_before_spark(FunctionSource("decorated", "even"))
    print(SparkSession._instantiatedSession)
"""


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        ("broken:f", "broken.py, line 3: ValueError: math domain error"),
        ("rules:nothing", "the module rules has no function nothing"),
        ("rules:odd", "what rules:odd returns is not known"),
        ("udfs:fifth:boolean", "says what it returns already"),
    ],
)
def test_a_mistake_in_a_module_is_told_before_spark_starts(
    run: Run, monkeypatch: pytest.MonkeyPatch, function: str, complaint: str
) -> None:
    def start(_console: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(prepared_query, "running_spark", start)
    answer = run("sql", f"--udf={function}", "SELECT 1")
    assert answer.code == 2
    assert complaint in answer.err


def test_a_module_that_asks_for_spark_does_not_start_it(tmp_path: Path) -> None:
    text = dedent(ASKS_FOR_SPARK)
    (tmp_path / "asks.py").write_text(text, encoding="utf-8")
    without = "\n".join(line for line in text.splitlines() if "session" not in line)
    (tmp_path / "decorated.py").write_text(without, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", dedent(MIMICKED)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.stdout == "None\n", done.stderr
