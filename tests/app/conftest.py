"""Files of a user's, and a way to run the command line on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eddyline.app.cli import main

ROWS = 2_000

RULES = """
    from __future__ import annotations

    import math
    from datetime import date
    from decimal import Decimal

    import weights


    def heavy(number: int) -> float | None:
        return sum(math.sin(number + step) for step in range(50)) * weights.FACTOR


    def odd(number):
        return number % 2 == 1


    def third(number: int) -> bool:
        return number % 3 == 0


    def named(text: str) -> list[str]:
        return text.split()


    def day(number: int) -> date:
        return date(2013, 1, 1 + number % 28)


    def price(number: int) -> Decimal:
        return Decimal(number) / 4


    def picky(number: int) -> bool:
        if number == 1_500:
            raise ValueError(f"cannot judge {number}")
        return True


    LIMIT = 3


    def misspelt(number: int) -> boool:
        return True
"""

UDFS = """
    from pyspark.sql.functions import pandas_udf, udf


    @udf("boolean")
    def fifth(number):
        return number % 5 == 0


    @udf("boolean")
    def chancy(number):
        return True

    chancy = chancy.asNondeterministic()


    @pandas_udf("boolean")
    def small(numbers):
        return numbers < 1_000
"""


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables and modules; for all tests, so that they share Python workers."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "rules.py").write_text(dedent(RULES), encoding="utf-8")
    (folder / "udfs.py").write_text(dedent(UDFS), encoding="utf-8")
    (folder / "weights.py").write_text("FACTOR = 2\n", encoding="utf-8")
    (folder / "broken.py").write_text("import math\n\nmath.sqrt(-1)\n", encoding="utf-8")
    numbers = list(range(ROWS))
    table = pa.table({"id": numbers, "name": [f"row {number}" for number in numbers]})
    pq.write_table(table, folder / "rows.parquet")
    lines = [f'{number},"a ""quoted"", one",{number / 4}' for number in range(10)]
    (folder / "rows.csv").write_text("\n".join(["id,text,share", *lines]), encoding="utf-8")
    (folder / "lines.json").write_text('{"id": 1, "tags": ["a"]}\n{"id": 2}\n', encoding="utf-8")
    (folder / "array.json").write_text('[\n{"id": 1},\n{"id": 2},\n{"id": 3}]', encoding="utf-8")
    (folder / "not.json").write_text("id: 1\n", encoding="utf-8")
    (folder / "not.parquet").write_text("id: 1\n", encoding="utf-8")
    (folder / "empty.csv").touch()
    (folder / "empty.parquet").touch()
    (folder / "notes.txt").write_text("id: 1\n", encoding="utf-8")
    return folder


@pytest.fixture
def run(
    spark: SparkSession,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the command line in this process, in the user's folder."""
    assert SparkSession.getActiveSession() is not None
    assert spark.sparkContext.environment.get("PYTHONPATH") is None
    monkeypatch.chdir(folder)

    def run_in_process(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run_in_process
