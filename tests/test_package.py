"""What the package says of itself, and what it does not import."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import eddyline
from eddyline.app.cli import main
from tests.fresh_process import printed_lines

ROOT = Path(__file__).parents[1]


def test_there_is_one_version(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    attribute = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert attribute == "eddyline.__version__"
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"eddyline {eddyline.__version__}\n"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {eddyline.__version__}" in changes


@pytest.mark.parametrize(
    ("there", "only_connect"),
    [
        ({"pyspark", "pyspark.sql.connect"}, True),  # the package pyspark-client
        ({"pyspark", "pyspark.sql.connect", "pyspark.core"}, False),
        ({"pyspark", "pyspark.sql.connect", "pyspark.context"}, False),  # PySpark 3.5
        ({"pyspark", "pyspark.context"}, False),
        (set(), False),
    ],
)
def test_a_pyspark_without_a_jvm_is_recognized(
    monkeypatch: pytest.MonkeyPatch, there: set[str], *, only_connect: bool
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in there else None)
    assert eddyline._has_only_connect() == only_connect


FILTERED = """
import json, sys
import eddyline
first = "numba" in sys.modules, "pyspark" in sys.modules
spark = eddyline.session(master="local[2]")
from pyspark.sql.functions import udf

@udf("boolean")
def odd(n):
    import sys
    if "numba" in sys.modules:
        raise ValueError("a worker has imported numba")
    return n % 2 == 1

@udf("boolean")
def third(n):
    return n % 3 == 0

fast = eddyline.adapt(spark.range(3_000).filter(odd("id") & third("id")))
count = fast.count()
in_eddies = len(eddyline.report(fast).blocks)
print(json.dumps([*first, "numba" in sys.modules, count, in_eddies]))
"""


@pytest.mark.slow(7)
def test_only_joins_import_numba() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILTERED],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [False, False, False, 500, 1]


def test_the_package_alone_imports_nothing_large() -> None:
    large = ("numba", "numpy", "pandas", "pyarrow", "pyspark", "rich")
    code = f"import sys, eddyline\nprint([each for each in {large} if each in sys.modules])"
    assert printed_lines(code) == ["[]"]


SENT = """
import sys
from pyspark.cloudpickle import cloudpickle
before = set(sys.modules)  # PySpark 4.0 imports NumPy by itself
from eddyline.standing.tasks.sent_cell import SentCell

class Handle:
    def getMapState(self, *_):
        pass
    getValueState = getMapState

cell = lambda: __import__("numpy")  # it stands for a cell, which runs where there are rows
cloudpickle.loads(cloudpickle.dumps(SentCell(cell))).init(Handle())
large = {"numba", "numpy", "pandas", "pyarrow"} & (sys.modules.keys() - before)
print(sorted(large))
"""


def test_what_plans_a_job_imports_nothing_large() -> None:
    assert printed_lines(SENT) == ["[]"]
