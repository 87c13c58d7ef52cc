"""What Ctrl-C leaves of the connection to the JVM, and machines on which Spark cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from rich.console import Console

from eddyline.app import start
from eddyline.app.spark_errors import spark_errors_explained

pytestmark = pytest.mark.slow(25)

SCRIPT = """
    import os, signal, threading
    from rich.console import Console
    from eddyline.app.start import running_spark

    with running_spark(Console(quiet=True)) as spark:
        jvm = spark._jvm
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            jvm.java.lang.Thread.sleep(3_000)
        except KeyboardInterrupt as error:
            held = error.__traceback__  # as it is while blocks are left: so are the connections
            print(jvm.java.lang.Math.abs(-5), spark.range(7).count())
"""


@pytest.mark.parametrize("kind", [Py4JNetworkError, ConnectionResetError, AnalysisException])
def test_what_fails_while_an_interrupt_is_on_its_way_is_that(kind: type[Exception]) -> None:
    @spark_errors_explained()
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise kind("of clearing up")

    with pytest.raises(KeyboardInterrupt):
        interrupted()


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_fails_amid_an_interrupt_ends_spark_as_that_does(
    monkeypatch: pytest.MonkeyPatch, *, interrupted: bool
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(start, "_started", lambda *_: None)
    monkeypatch.setattr(start, "_stop", lambda _: None)
    monkeypatch.setattr(start, "end", ended.append)

    def fails() -> None:
        with start.running_spark(Console(quiet=True)):
            try:
                if interrupted:
                    raise KeyboardInterrupt
            finally:
                raise ConnectionRefusedError

    with pytest.raises(KeyboardInterrupt if interrupted else ConnectionRefusedError):
        fails()
    assert len(ended) == interrupted


def test_an_interrupted_call_is_not_answered_by_the_next() -> None:
    done = subprocess.run(
        [sys.executable, "-c", dedent(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "5 7\n", done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("PATH", "/nowhere", "Spark is started by scripts for bash, and there is no bash on PATH."),
        ("SPARK_LOCAL_DIRS", "/proc/no", "no folder to write to: SPARK_LOCAL_DIRS is /proc/no"),
    ],
)
def test_a_machine_on_which_spark_cannot_start_is_told_in_one_line(
    variable: str, value: str, complaint: str
) -> None:
    done = started_with(variable, value)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr


def test_after_what_java_says_itself_there_is_one_line() -> None:
    done = started_with("SPARK_SUBMIT_OPTS", "-javaagent:nowhere.jar")
    assert done.returncode == 1
    *others, last = done.stderr.splitlines()
    assert any("nowhere.jar" in line for line in others)
    assert not any("Traceback" in line for line in others)
    assert last.startswith("eddyline: error: Spark does not start: ")


def started_with(variable: str, value: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eddyline", "sql", "--plain", "SELECT 1"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), variable: value},
    )


WITHOUT_TEMPORARY_FOLDER = """
    import sys
    import tempfile

    tempfile._candidate_tempdir_list = lambda: ["/proc/nowhere"]
    from eddyline.app.cli import main

    sys.exit(main(["sql", "--plain", "SELECT 1"]))
"""

KILLED = """
    import os, signal, sys, threading, time
    from eddyline.app import processes
    from eddyline.app.cli import main

    def kill():
        while not (found := processes.children()) or not marked():
            time.sleep(0.1)
        for each in found:
            os.kill(each.number, signal.SIGKILL)

    def marked():
        return os.path.exists("mark")

    threading.Thread(target=kill, daemon=True).start()
    query = "SELECT count(*) FROM range(100) WHERE waits(id)"
    sys.exit(main(["sql", "--udf=waiting:waits", query]))
"""

WAITING = """
    import time
    from pathlib import Path

    def waits(number: int) -> bool:
        Path("mark").touch()
        time.sleep(60)
        return True
"""


def answer(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def test_no_folder_for_temporary_files_is_told_in_one_line(tmp_path: Path) -> None:
    done = answer(WITHOUT_TEMPORARY_FOLDER, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("eddyline: error: a temporary folder cannot be made: ")
    assert done.stderr.count("\n") == 1


def test_a_jvm_that_is_killed_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(dedent(WAITING), encoding="utf-8")
    done = answer(KILLED, tmp_path)
    assert done.returncode == 1
    message = "Spark's Java process has ended; was there too little memory?"
    assert done.stderr == f"eddyline: error: {message}\n"
