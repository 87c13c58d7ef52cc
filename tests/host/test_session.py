"""A session starts on a bare machine, quietly, and is the same one ever after."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import eddyline
from eddyline.host.java import java_for_launch
from eddyline.host.session import (
    SPARKS_DAEMON,
    WORKER_DAEMON,
    SettingsIgnoredWarning,
)
from eddyline.quirks.pyspark_at_hand import MINOR
from tests import quick_java
from tests.validated import SETTINGS

pytestmark = pytest.mark.slow(50)

# What Spark's own launch scripts call.
SHELL_TOOLS = ("bash", "dirname", "env", "sh")

# How well code is compiled is nothing that a machine has to have.
QUICK = {quick_java.VARIABLE: " ".join(quick_java.QUICK)}

FIRST_QUERY = """
import json, os, sys
import eddyline
assert "pyspark" not in sys.modules, "importing eddyline must not import PySpark"
spark = eddyline.session(config={"spark.sql.shuffle.partitions": "3", "spark.x": "a b"})
from pyspark.sql.functions import udf
@udf("string")
def interpreter(_):
    import sys
    return sys.executable
rows = spark.range(2).select(interpreter("id").alias("python")).collect()
keys = ["spark.app.name", "spark.master", "spark.driver.host", "spark.ui.enabled",
        "spark.ui.showConsoleProgress", "spark.sql.shuffle.partitions", "spark.x"]
print(json.dumps({
    "pythons": [row.python for row in rows],
    "java_home": os.environ.get("JAVA_HOME"),
    **{key: spark.conf.get(key) for key in keys},
}))
spark.stop()
"""


def test_a_machine_with_nothing_but_python_runs_a_query(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in SHELL_TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    answer = subprocess.run(
        [sys.executable, "-c", FIRST_QUERY],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": str(tools), "HOME": str(tmp_path)} | QUICK,
    )
    assert answer.stderr == ""
    assert answer.returncode == 0
    assert json.loads(answer.stdout) == {
        "pythons": [sys.executable, sys.executable],
        "java_home": None,
        "spark.app.name": "eddyline",
        "spark.master": "local[*]",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.x": "a b",
    }
    assert list(tmp_path.glob(".cache/eddyline/java/*/bin/java")), "Java is the bundled one"


WORKERS = """
import json, os, sys
sys.path.append(sys.argv[1])
import eddyline
from eddyline.host.session import DAEMON_MODULE

def workers(config):
    spark = eddyline.session(master="local[2]", config=config)
    from pyspark.sql.functions import udf
    @udf("string")
    def state(_):
        import gc, json, sys
        import pyspark
        names = ["pandas", "pyarrow", "eddyline.tasks.filter_task"]
        imported = [name for name in names if name in sys.modules]
        return json.dumps([imported, ".zip" in pyspark.__file__, gc.get_freeze_count() > 0])
    rows = spark.range(20).select(state("id").alias("state")).distinct().collect()
    daemon = spark.conf.get(DAEMON_MODULE)
    spark.stop()
    return daemon, *[json.loads(row.state) for row in rows]


ours = workers({})
theirs = workers({"spark.pyspark.python": sys.executable}) if "both" in sys.argv else None
print(json.dumps([ours, theirs, os.environ.get("PYTHONPATH")]))
"""


PREPARED_WORKERS = [
    WORKER_DAEMON,
    [["pandas", "pyarrow", "eddyline.tasks.filter_task"], False, True],
]


def test_workers_begin_with_what_they_need(tmp_path: Path) -> None:
    ours, _ = _sessions_of_an_environment(tmp_path, installed=True)
    assert ours == PREPARED_WORKERS


def test_a_package_that_is_not_installed_is_found_by_workers(tmp_path: Path) -> None:
    """And workers of another Python begin as they do without the package, in the same JVM."""
    ours, others = _sessions_of_an_environment(tmp_path, "both", installed=False)
    assert ours == PREPARED_WORKERS
    by_themselves = ["pyarrow"] if MINOR > (4, 0) else []
    assert others == [SPARKS_DAEMON, [by_themselves, True, False]]


def _sessions_of_an_environment(tmp_path: Path, *sessions: str, installed: bool) -> list[Any]:
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    package = Path(eddyline.__file__).parents[1]
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "other.pth").write_text(f"{Path(pyspark.__file__).parents[1]}\n", encoding="utf-8")
    if installed:
        (packages / "eddyline").symlink_to(package / "eddyline")
    answer = subprocess.run(
        [environment / "bin" / "python", "-c", WORKERS, package, *sessions],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={name: os.environ[name] for name in ("HOME", "PATH", quick_java.VARIABLE)},
    )
    found: list[Any]
    *found, path = json.loads(answer.stdout)
    assert path is None, "the environment is as before"
    return found


SUBMITTED = """
import eddyline
spark = eddyline.session("submitted", config={"spark.sql.shuffle.partitions": "3"})
keys = ["spark.app.name", "spark.master", "spark.sql.shuffle.partitions"]
print(*[spark.conf.get(key) for key in keys])
spark.stop()
"""


def test_under_spark_submit_the_command_line_decides(tmp_path: Path) -> None:
    script = tmp_path / "submitted.py"
    script.write_text(SUBMITTED, encoding="utf-8")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    with java_for_launch():
        answer = subprocess.run(
            [submit, *options, script],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    assert answer.stdout.split() == ["submitted", "local[1]", "3"]


def test_a_running_session_is_returned_as_it_is(spark: SparkSession) -> None:
    before = spark.conf.getAll
    assert eddyline.session() is spark
    assert eddyline.session("other", master="local[2]", config={}) is spark
    assert eddyline.session(config=SETTINGS) is spark, "the very settings that it began with"
    assert spark.conf.getAll == before


def test_a_running_session_is_found_from_another_thread(spark: SparkSession) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(eddyline.session()))
    thread.start()
    thread.join()
    assert found == [spark]


def test_settings_that_come_too_late_are_named(spark: SparkSession) -> None:
    config = {"spark.sql.shuffle.partitions": "77", "spark.ui.enabled": "false"}
    with pytest.warns(SettingsIgnoredWarning) as caught:
        eddyline.session(master="local[9]", config=config)
    message = str(caught[0].message)
    assert "spark.sql.shuffle.partitions=77" in message
    assert "spark.master=local[9]" in message
    assert "spark.ui.enabled" not in message  # as asked for already
    assert caught[0].filename == __file__
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_shuffle_has_one_partition_a_core(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_run_the_drivers_python(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == os.environ["PYSPARK_PYTHON"] == sys.executable
