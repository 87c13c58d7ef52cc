"""``eddyline rules``: a job from a file, changed by other processes; mistakes in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eddyline.app.endings import UsageError
from eddyline.app.invocation import DemoRulesInvocation, RulesAskInvocation, RulesRunInvocation
from eddyline.app.parser import parse
from eddyline.app.rules_config import read_rules, state_of
from tests.app.conftest import Run

pytestmark = pytest.mark.slow(30)

CONFIG = """
state = "state"
sink = "out"
trigger = "100 milliseconds"
[streams.trades]
format = "parquet"
schema = "symbol string, price double"
path = "incoming"
[queries]
dear = "SELECT symbol, price FROM trades WHERE price > 100"
[[templates]]
name = "limit"
sql = "SELECT symbol FROM trades WHERE symbol = :symbol AND price < :least"
parameters = "limits.csv"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "limits.csv").write_text("symbol,least\nA,5.0\nB,7.0\n")
    path = tmp_path / "rules.toml"
    path.write_text(CONFIG)
    return path


def give(config: Path, number: int, *rows: tuple[str, float]) -> None:
    columns = {"symbol": [row[0] for row in rows], "price": [row[1] for row in rows]}
    hidden = config.parent / f"hidden{number}"
    pq.write_table(pa.table(columns), hidden)
    hidden.rename(config.parent / "incoming" / f"{number}.parquet")


def test_a_job_is_run_and_changed_by_others(config: Path, spark: SparkSession, run: Run) -> None:
    give(config, 0, ("A", 200.0), ("A", 4.0), ("B", 6.0), ("B", 8.0))
    command = [sys.executable, "-m", "eddyline", "rules"]
    job = subprocess.Popen([*command, "run", str(config)], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(
            lambda: results(spark, config) == {("dear", "A"), ("limit-0", "A"), ("limit-1", "B")}
        )
        added = run("rules", "add", str(config), "all", "SELECT symbol FROM trades")
        assert (added.code, added.out) == (0, "")
        refused = run("rules", "add", str(config), "bad", "SELECT nothing FROM trades")
        assert refused.code == 2
        assert refused.err.startswith("eddyline: error: A column, variable, or function parameter")
        assert refused.err.count("\n") == 1
        assert run("rules", "drop", str(config.parent / "state"), "dear").code == 0
        give(config, 1, ("C", 300.0))
        wait_for(lambda: ("all", "C") in results(spark, config))
        listed = run("rules", "list", str(config)).out.splitlines()
        assert [line.split()[0] for line in listed] == ["name", "limit-0", "limit-1", "all"]
    finally:
        job.send_signal(signal.SIGINT)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 130, errors
    assert "Traceback" not in errors
    assert ("dear", "C") not in results(spark, config)
    gone = subprocess.run(
        [*command, "list", str(config)], capture_output=True, text=True, check=False
    )
    assert gone.returncode == 1
    assert "no job runs" in gone.stderr


def results(spark: SparkSession, config: Path) -> set[tuple[str, str]]:
    out = config.parent / "out"
    if not list(out.glob("batch=*/*.parquet")):
        return set()
    return {(row["query"], row["symbol"]) for row in spark.read.parquet(str(out)).collect()}


def wait_for(condition: object, seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]  # a function
        assert time.monotonic() < until
        time.sleep(0.2)


MISTAKES = {
    "": "there is no [streams.NAME]",
    "state = ": "is no TOML",
    '[streams.s]\nformat = "rate"': "there is no state",
    'state = "s"\n[streams.s]': "there is no streams.s.format",
    'state = "s"\nsinks = "x"\n[streams.s]\nformat = "rate"': "the file has no 'sinks'",
    'state = "s"\n[streams.s]\nformat = "rate"\nwatermark = "time"': 'is ["column", "delay"]',
    'state = "s"\n[streams.s]\nformat = "rate"\n[queries]\nq = 1': "queries.q is a text",
    'state = "s"\nby_query = 1\n[streams.s]\nformat = "rate"': "by_query is true or false",
    'state = "s"\nmax_results = -1\n[streams.s]\nformat = "rate"': "max_results is a number",
    'state = "s"\n[streams.s]\nformat = "rate"\n[queries.q]\nkeep = "1 hour"': "no queries.q.sql",
    'state = "s"\n[streams.s]\nformat = "rate"\n[queries.q]\nsql = "x"\nkept = "1"': "no 'kept'",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_in_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        read_rules(path)
    assert MISTAKES[text] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        state_of(tmp_path / "missing.toml")
    ended = run("rules", "run", str(tmp_path / "missing.toml"))
    assert ended.code == 2


def test_arguments() -> None:
    assert parse(["rules", "run", "a.toml"]) == RulesRunInvocation(Path("a.toml"))
    added = {"do": "add", "name": "n", "sql": "SELECT 1", "backfill": None, "keep": None}
    assert parse(["rules", "add", "s", "n", "SELECT 1"]) == RulesAskInvocation(Path("s"), added)
    kept = parse(["rules", "add", "s", "n", "SELECT 1", "--keep", "1 hour"])
    assert kept == RulesAskInvocation(Path("s"), added | {"keep": "1 hour"})
    dropped = {"do": "drop", "names": ["a", "b"]}
    assert parse(["rules", "drop", "s", "a", "b"]) == RulesAskInvocation(Path("s"), dropped)
    assert parse(["demo", "rules", "--sample", "9"]) == DemoRulesInvocation(9)
    with pytest.raises(SystemExit):
        parse(["demo", "rules", "--runs", "2"])
    with pytest.raises(SystemExit):
        parse(["rules"])


def test_the_demo_ends_with_equality(run: Run) -> None:
    ended = run("demo", "rules", "--sample", "2400")
    assert ended.code == 0
    assert "each once" in ended.out
    assert "24 of 24, rules changed" in ended.out
