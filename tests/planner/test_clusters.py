"""Executors are other processes, on a cluster of other machines: the main paths, on loopback."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark
import pytest

import eddyline
from eddyline.host.java import java_for_launch
from tests import quick_java
from tests.bare_packages import linked_packages

pytestmark = [pytest.mark.cluster, pytest.mark.slow(60)]

PROGRAM: Final = Path(__file__).with_name("cluster_paths.py")

SOURCE: Final = Path(eddyline.__file__).parents[1]

SETTINGS: Final = (
    "spark.driver.bindAddress=127.0.0.1",
    "spark.driver.host=127.0.0.1",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    f"spark.executor.extraJavaOptions={os.environ[quick_java.VARIABLE]}",
    "spark.log.level=OFF",
    "spark.sql.shuffle.partitions=2",
    "spark.ui.enabled=false",
    "spark.ui.showConsoleProgress=false",
)

STARTING_SECONDS: Final = 60.0
"""A master listens after 2 s; a machine can be busy."""

EXPECTED: Final = {
    "filter": "filter: 200 rows, 2000 reported",
    "join": "join: 100 rows, 1 block",
    "lookup": "lookup: sum 900",
    "enable": "enable: 200 rows, 2000 reported",
    "short tasks": "short tasks: 134 rows, asked",
    "watch": "watch: 200 rows",
    "live": "live: 2000 rows seen",
}


def run_program(master: str, *arguments: str, **environment: str) -> list[str]:
    """Return the lines that the program printed."""
    run = subprocess.run(
        [sys.executable, str(PROGRAM), master, *SETTINGS, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(SOURCE), "SPARK_LOCAL_IP": "127.0.0.1"} | environment,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_main_paths_where_executors_have_the_package() -> None:
    lines = run_program("local-cluster[2,1,1024]", *EXPECTED)
    assert lines == list(EXPECTED.values())


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """This Python with all that it has installed, but without Eddyline."""
    packages = linked_packages(tmp_path / "packages")
    script = tmp_path / "bare_python"
    script.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH="$PYTHONPATH:{packages}" PYTHONNOUSERSITE=1 exec {sys.executable} -S "$@"\n'
    )
    script.chmod(0o700)
    return str(script)


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """The package as an archive, as `pip wheel` makes it but for its name."""
    return shutil.make_archive(str(tmp_path / "eddyline"), "zip", SOURCE, "eddyline")


@contextlib.contextmanager
def started(log: Path, *command: str) -> Iterator[None]:
    """A daemon of Spark, and what it starts in its turn, until the end of the block."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    environment |= {
        "SPARK_DAEMON_JAVA_OPTS": os.environ[quick_java.VARIABLE],
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(log.with_suffix("")),
    }
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with java_for_launch(), log.open("wb") as output:
        daemon = subprocess.Popen(
            [str(spark_class), *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment | {"JAVA_HOME": os.environ.get("JAVA_HOME", "")},
            start_new_session=True,  # so that executors can be ended with it
        )
    try:
        yield
    finally:
        daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()


def found_in(log: Path, pattern: str) -> str:
    """Return what a daemon says in its log, as soon as it does."""
    until = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < until:
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[0]
        time.sleep(0.1)
    raise AssertionError(f"{pattern} is not said in {log.read_text(errors='replace')}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A standalone master and a worker for two executors of one core, on free ports of loopback."""
    deploy = "org.apache.spark.deploy"
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    log, worker = tmp_path / "master.log", tmp_path / "worker.log"
    with contextlib.ExitStack() as running:
        running.enter_context(started(log, f"{deploy}.master.Master", *ports))
        address = found_in(log, r"spark://127\.0\.0\.1:\d+")
        command = (f"{deploy}.worker.Worker", *ports, "--cores", "2", "--memory", "1400m")
        running.enter_context(started(worker, *command, address))
        found_in(worker, "Successfully registered")
        yield address


def test_a_standalone_cluster_to_which_the_package_is_sent(
    master: str, bare_python: str, archive: str
) -> None:
    first, *others = run_program(
        master,
        "filter",
        f"send={archive}",
        "filter",
        "join",
        PYSPARK_PYTHON=bare_python,
    )
    assert first.startswith("filter: ModuleNotFoundError: There is no module 'eddyline' for ")
    assert "docs/clusters.md" in first
    assert others == [EXPECTED["filter"], EXPECTED["join"]]
