"""Sessions of a driver with the plug-in, as configuration would start it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import eddyline

PLUGIN: Final = "eddyline.spark.EddylinePlugin"


def session(
    name: str, config: Mapping[str, str], *, plugged_in: bool, cores: int = 2
) -> SparkSession:
    """Return a session in this process, with the plug-in or without.

    The plug-in's Python, as those of tasks, finds this package and the benchmarks.
    """
    settings = dict(config)
    if plugged_in:
        settings |= {"spark.plugins": PLUGIN, "spark.jars": eddyline.jar()}
        os.environ |= environment()
    return eddyline.session(name, master=f"local[{cores}]", config=settings)


def environment() -> dict[str, str]:
    """Return that of a driver whose Pythons find this package and the benchmarks."""
    here = Path(__file__).parents[1]
    path = os.pathsep.join((str(Path(eddyline.__file__).parents[1]), str(here)))
    return os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
