"""Whatever becomes of the process that adapts queries, these run as Spark plans them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from eddyline.host.java import java_for_launch
from tests.plugin.applications import PLUGIN, command, environment, is_gone, is_json, ran

pytestmark = [pytest.mark.spark, pytest.mark.slow(60)]

HERE: Final = Path(__file__).parent

LIMIT: Final = 10.0

SETTINGS: Final = PLUGIN | {"spark.eddyline.rewriteTimeout": f"{LIMIT:.0f}s"}

Said = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Said]:
    """What the job has said, by name; it waits, and is ended with the file."""
    folder = tmp_path_factory.mktemp("faults")
    with java_for_launch(), (folder / "log").open("w") as log:
        job = subprocess.Popen(
            command("spark-submit", str(HERE / "faults.py"), settings=SETTINGS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env=environment(),
        )
        assert job.stdout is not None
        found = {}
        for line in filter(is_json, job.stdout):
            made = json.loads(line)
            found[made.pop("name")] = made
            if "pids" in found:
                break
        try:
            assert "pids" in found, (folder / "log").read_text()
            yield found | {"": {"stderr": (folder / "log").read_text()}}
        finally:
            job.kill()
            job.communicate()


def test_a_query_while_the_process_is_killed_runs_all_the_same(said: Said) -> None:
    assert said["first"]["right"]
    assert said["killed"]["right"]
    assert "has ended, with 137" in said[""]["stderr"]


def test_a_process_that_was_killed_is_begun_again(said: Said) -> None:
    assert said["again"]["right"]
    assert said["again"]["other"]


def test_a_stopped_process_holds_a_query_up_no_longer_than_the_limit(said: Said) -> None:
    assert said["stopped"]["right"]
    assert LIMIT <= said["stopped"]["took"] < LIMIT + 10  # the query itself, on a busy machine
    assert said["after"]["gone"]
    assert said["third"]["other"]


def test_nothing_is_left_of_a_jvm_that_is_killed(said: Said) -> None:
    pids = said["pids"]
    os.kill(pids["java"], signal.SIGKILL)
    assert is_gone(pids["python"])


def test_without_a_python_one_line_says_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "from pyspark.sql import SparkSession, functions as F\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "for _ in range(2):\n"
        "    rows = spark.range(100).filter(F.udf(lambda n: n % 2 == 0, 'boolean')('id'))\n"
        "    print(rows.count())\n"
    )
    missing = PLUGIN | {"spark.eddyline.python": "/nowhere/python"}
    run = ran(tmp_path, "spark-submit", str(script), settings=missing)
    assert run.stdout.split() == ["50", "50"], run.stderr
    (line,) = (line for line in run.stderr.splitlines() if "Eddyline's Python does not" in line)
    assert "spark.eddyline.python" in line
