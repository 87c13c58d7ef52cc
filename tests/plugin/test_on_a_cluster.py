"""Executors of other machines run eddies of a job that never heard of Eddyline, where they can."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests import quick_java
from tests.bare_packages import linked_packages
from tests.plugin.applications import PLUGIN, SOURCE, is_json, ran

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.slow(60)]

JOB: Final = str(Path(__file__).with_name("cluster.py"))

CLUSTER: Final = PLUGIN | {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ[quick_java.VARIABLE],
}


def said(output: str) -> Any:  # noqa: ANN401 - it is JSON
    return json.loads(next(filter(is_json, output.splitlines())))


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """This Python with all that it has installed, but without Eddyline."""
    packages = linked_packages(tmp_path / "packages")
    script = tmp_path / "bare_python"
    script.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH="$(echo "$PYTHONPATH" | sed "s|{SOURCE}||"):{packages}" '
        f'PYTHONNOUSERSITE=1 exec {sys.executable} -S "$@"\n'
    )
    script.chmod(0o700)
    return str(script)


def test_the_package_is_sent_to_executors_that_have_none(tmp_path: Path, bare_python: str) -> None:
    settings = CLUSTER | {"spark.eddyline.python": sys.executable}
    run = ran(tmp_path, "spark-submit", JOB, settings=settings, PYSPARK_PYTHON=bare_python)
    assert run.returncode == 0, run.stderr
    found = said(run.stdout)
    assert found["counts"] == [200, 100, 200], run.stderr
    assert found["eddy"] == [True, True], run.stderr
    assert "2,000 rows in" in found["report"]


def test_a_query_whose_workers_cannot_is_left_to_spark(tmp_path: Path, bare_python: str) -> None:
    """On one machine nothing is sent, and the workers of this application have no Eddyline."""
    settings = PLUGIN | {"spark.eddyline.python": sys.executable}
    run = ran(tmp_path, "spark-submit", JOB, settings=settings, PYSPARK_PYTHON=bare_python)
    found = said(run.stdout)
    assert found["counts"] == [200, 100, 200], run.stderr
    assert found["eddy"] == [False, False]
    assert "the Python of its workers (ModuleNotFoundError" in run.stderr
