"""What a user has set outside of the program is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.host.users_settings import settings_of_the_user

pytestmark = pytest.mark.slow(20)

UI = {"spark.ui.enabled": "true", "spark.ui.showConsoleProgress": "true"}

STARTED = """
import json, sys
import eddyline
from pyspark.sql import SparkSession

config = json.loads(sys.argv[1])
if "builder" in sys.argv:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.port", "0")
    for key, value in config.items():
        builder.config(key, value)
    builder.getOrCreate()
    config = None
spark = eddyline.session(config=config)
keys = ["spark.ui.enabled", "spark.ui.showConsoleProgress", "spark.driver.host"]
print(json.dumps([spark.conf.get(key) for key in keys]), spark.sparkContext.uiWebUrl is not None)
"""

OPTIONS = " ".join(f"--conf {key}={value}" for key, value in UI.items())
DEFAULTS = "# as we like it\n" + "\n".join(f"{key}  {value}" for key, value in UI.items())


@pytest.mark.parametrize("way", ["config", "builder", "options", "file"])
def test_the_interface_stays_as_the_user_has_set_it(tmp_path: Path, way: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if way == "options":
        environment["PYSPARK_SUBMIT_ARGS"] = f"{OPTIONS} pyspark-shell"
    elif way == "file":
        environment["SPARK_CONF_DIR"] = str(tmp_path)
    config = UI if way in {"config", "builder"} else {}
    done = subprocess.run(
        [sys.executable, "-c", STARTED, json.dumps(config), way],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    settings, has_interface = done.stdout.strip().rsplit(" ", 1)
    assert json.loads(settings)[:2] == ["true", "true"]
    assert has_interface == "True"
    if way != "builder":  # all else is as always
        assert json.loads(settings)[2] == "127.0.0.1"


def test_all_ways_to_make_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "! a note\n\n a.b c\nd=e\nf:g\n#h i\n", encoding="utf-8"
    )
    home = {"SPARK_HOME": str(tmp_path)}
    assert settings_of_the_user(home) == {"a.b", "d", "f"}
    folder = {"SPARK_CONF_DIR": str(tmp_path / "conf"), "SPARK_HOME": "/nowhere"}
    assert settings_of_the_user(folder) == {"a.b", "d", "f"}
    (tmp_path / "own.conf").write_text("x 1\n", encoding="utf-8")
    options = (
        f"-c k=1 --conf 'l = 2 3' --conf=m=4 --properties-file {tmp_path}/own.conf pyspark-shell"
    )
    assert settings_of_the_user(home | {"PYSPARK_SUBMIT_ARGS": options}) == {"k", "l", "m", "x"}
    assert settings_of_the_user({"SPARK_HOME": "/nowhere"}) == frozenset()
