"""What ``--help`` shows as examples does something in an eddy."""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import dedent

import pandas as pd
import pytest

from eddyline.app import help_texts
from tests.app.conftest import Run

RULES = """
    def is_odd(number):
        return int(number) % 2 == 1


    def is_late(delay):
        return str(delay) > "1"


    def score(text: str) -> float:
        return len(text) / 10
"""

ANNOTATED = "\n\n\ndef is_odd(number) -> bool:\n    return int(number) % 2 == 1\n"

JOB = """
    from pyspark.sql.functions import udf

    odd = udf(lambda n: n % 2 == 1, "boolean")
    third = udf(lambda n: n % 3 == 0, "boolean")
    suspicious = df = spark.range(9).filter(odd("id") & third("id"))
"""


def examples(text: str, command: str) -> list[list[str]]:
    """The commands of an epilog, as the shell would read them."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if f" eddyline {command} " in line]


SQL = [*examples(help_texts.EXAMPLES, "sql"), *examples(help_texts.SQL_EXAMPLES, "sql")]
EXPLAIN = [
    *examples(help_texts.EXAMPLES, "explain"),
    *examples(help_texts.EXPLAIN_EXAMPLES, "explain"),
]


@pytest.fixture
def here(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that the examples name."""
    del run  # whose folder was entered before
    monkeypatch.chdir(tmp_path)
    ids = list(range(100))
    orders = pd.DataFrame(
        {"id": ids, "day": ids, "amount": ids, "customer": ids, "text": ["a long text"] * 100}
    )
    orders.to_parquet("orders.parquet")
    orders.to_csv("orders.csv", index=False)
    pd.DataFrame({"customer": ids}).to_json("customers.json", orient="records", lines=True)
    pd.DataFrame({"dep_delay": ids, "flight": ids}).to_parquet("flights.parquet")
    (tmp_path / "job.py").write_text(dedent(JOB), encoding="utf-8")
    return tmp_path


def test_there_are_examples() -> None:
    assert len(SQL) == 4
    assert len(EXPLAIN) == 4


@pytest.mark.parametrize("arguments", SQL, ids=" ".join)
def test_examples_of_sql_run_in_an_eddy(run: Run, here: Path, arguments: list[str]) -> None:
    module = dedent(RULES) + (ANNOTATED if "rules:is_odd:boolean" not in arguments else "")
    # Modules are imported once for all tests.
    name = f"rules_{abs(hash(tuple(arguments)))}"
    (here / f"{name}.py").write_text(module, encoding="utf-8")
    answer = run(*(each.replace("rules:", f"{name}:") for each in arguments))
    assert answer.code == 0, answer.err
    if "--plain" in arguments:
        assert "Block" not in answer.err
    else:
        assert "No part of this query" not in answer.err
        assert "is_odd" in answer.err or "Too few rows" in answer.err


@pytest.mark.parametrize("arguments", EXPLAIN, ids=" ".join)
def test_examples_of_explain_find_an_eddy(run: Run, here: Path, arguments: list[str]) -> None:
    (here / "explained_rules.py").write_text(dedent(RULES), encoding="utf-8")
    answer = run(*(each.replace("rules:", "explained_rules:") for each in arguments))
    assert answer.code == 0, answer.err
    assert "Would run in eddies" in answer.out
