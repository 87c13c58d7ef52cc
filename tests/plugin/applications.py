"""Applications of Spark with the plug-in, started as people start them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark

import eddyline
from eddyline.host.java import java_for_launch
from tests import quick_java

SOURCE: Final = Path(eddyline.__file__).parents[1]

SPARK_HOME: Final = Path(pyspark.__file__).parent

SETTINGS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "WARN",
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

PLUGIN: Final = {"spark.plugins": "eddyline.spark.EddylinePlugin"}

QUIET: Final = Path(eddyline.__file__).parent / "host" / "quiet_log4j2.properties"


def command(
    program: str, *arguments: str, settings: Mapping[str, str] = PLUGIN, jar: bool = True
) -> list[str]:
    """Return the command that starts one of Spark's programs with the plug-in."""
    given = SETTINGS | dict(settings)
    pairs = [word for name, value in given.items() for word in ("--conf", f"{name}={value}")]
    jars = ["--jars", eddyline.jar()] if jar else []
    return [str(SPARK_HOME / "bin" / program), *pairs, *jars, *arguments]


def environment(**more: str) -> dict[str, str]:
    """Return that of a program: with this package, and without what only a test's process needs."""
    return (
        {name: os.environ[name] for name in ("PATH", "HOME", quick_java.VARIABLE)}
        | {
            "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(SOURCE),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        | more
    )


def ran(
    folder: Path, program: str, *arguments: str, settings: Mapping[str, str] = PLUGIN, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of Spark's to its end, in a folder."""
    with java_for_launch():
        return subprocess.run(
            command(program, *arguments, settings=settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
            cwd=folder,
            env=environment(**more),
        )


def is_json(line: str) -> bool:
    """Whether a line is one that a job says: Spark puts warnings of its Python among them."""
    return line.startswith("{")


def is_gone(pid: int) -> bool:
    """Whether a process is gone, or goes within some seconds."""
    for _ in range(300):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
