"""Programs in Java and Scala are adapted, compiled by whatever is on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from eddyline.host.java import find_java
from tests.plugin.applications import PLUGIN, SPARK_HOME, ran

pytestmark = [pytest.mark.spark, pytest.mark.slow(30)]

HERE: Final = Path(__file__).parent

QUERY: Final = "SELECT id FROM range(500) WHERE even(id) AND tenth(id)"

JARS: Final = sorted(map(str, (SPARK_HOME / "jars").glob("*.jar")))


def compilers() -> dict[str, Sequence[str]]:
    """What compiles each language, to be followed by options: Spark brings the latter two."""
    java = str(find_java().home / "bin" / "java")
    path = ("-cp", os.pathsep.join(JARS))
    found: dict[str, Sequence[str]] = {}
    if javac := shutil.which("javac"):
        found["java"] = (javac, *path)
    elif any("janino" in jar for jar in JARS):
        janino = "org.codehaus.commons.compiler.samples.CompilerDemo"
        found["java"] = (java, *path, janino, "-classpath", os.pathsep.join(JARS))
    if any("scala-compiler" in jar for jar in JARS):
        quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        found["scala"] = (java, *quick, *path, "scala.tools.nsc.Main", "-usejavacp")
    return found


@pytest.mark.parametrize("language", ["java", "scala"])
def test_a_main(tmp_path: Path, language: str) -> None:
    compiler = compilers().get(language)
    if compiler is None:
        pytest.skip(f"nothing here compiles {language}")
    name = f"{language.capitalize()}Main"
    source = str(HERE / f"{name}.{language}")
    subprocess.run([*compiler, "-d", str(tmp_path), source], check=True, timeout=200)
    settings = PLUGIN | {
        "spark.driver.extraClassPath": str(tmp_path),
        "spark.eddyline.functions": str(HERE / "functions.py"),
    }
    run = ran(tmp_path, "spark-submit", "--class", name, "spark-internal", QUERY, settings=settings)
    assert "count: 50" in run.stdout.splitlines(), run.stderr
    assert "eddy[" in run.stdout
