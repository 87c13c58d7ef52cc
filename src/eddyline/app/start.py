"""Starts Spark for a command, quietly, and lets its workers import what the driver can.

All that Spark writes to disk goes below one folder, which goes when the command ends; and a
command that is interrupted ends Spark's processes before it ends itself.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import py4j
from pyspark import accumulators
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

import eddyline
from eddyline.app.endings import RunError
from eddyline.app.interrupts import (
    before_interrupts,
    interrupts_put_off,
    take_over,
    temporary_folder,
)
from eddyline.app.jvm_stderr import jvm_noise_dropped
from eddyline.app.processes import Process, children, end
from eddyline.app.spark_errors import comes_of_interrupt, essence
from eddyline.catalyst import GONE, let_go_of_call

# What goes wrong in a query reaches the user as one exception, told in a few lines.
# Spark would log the same from every executor, each time with the JVM's stack.
_SETTINGS = {"spark.log.level": "OFF"}

_LOCAL_DIRS = "SPARK_LOCAL_DIRS"
_OPTIONS = "SPARK_SUBMIT_OPTS"  # that Spark's launcher hands to its JVM


@contextmanager
def running_spark(console: Console) -> Iterator[SparkSession]:
    """Start Spark, and stop it at the end of the block.

    If Spark runs in this process already it is used and goes on running; the
    session is a new one then, with tables and functions of its own.

    Raises :class:`RunError` if it does not start.
    """
    silence_libraries()
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running.newSession()
        return
    _require_local_folders()
    others = children()
    own: frozenset[Process] | None = None
    with temporary_folder("eddyline-") as folder:
        try:
            with before_interrupts(let_go_of_call):
                spark = _started(folder, console)
                own = children() - others
                try:
                    yield spark
                except Exception:
                    _stop(spark)
                    raise
                _stop(spark)
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt | GeneratorExit)
            # Or an object to be cleared up called a JVM that nobody talks to any more.
            if not interrupted and not comes_of_interrupt(error):
                raise
            # PySpark would ask a JVM to stop that may be busy, and let it end when it likes.
            with interrupts_put_off():
                end(children() - others if own is None else own)
            if interrupted:
                raise
            raise KeyboardInterrupt from error


def _stop(spark: SparkSession) -> None:
    with suppress(*GONE):
        spark.stop()


def _require_local_folders() -> None:
    """Raise :class:`RunError` if Spark can write nowhere; without a word it would just end."""
    chosen = os.environ.get(_LOCAL_DIRS)
    if not chosen:
        return
    for folder in chosen.split(","):
        with suppress(OSError):
            Path(folder).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return
    raise RunError(f"Spark has no folder to write to: {_LOCAL_DIRS} is {chosen}")


def _started(folder: Path, console: Console) -> SparkSession:
    # Spark would make a folder for tables of its own in the current one.
    settings = _SETTINGS | {"spark.sql.warehouse.dir": str(folder / "warehouse")}
    try:
        with jvm_noise_dropped(), console.status("Starting Spark"), _writing_below(folder):
            return eddyline.session("eddyline", config=settings)
    except PySparkException as error:
        raise RunError(f"Spark does not start: {essence(error)}") from error
    except GONE as error:
        raise RunError("Spark has ended while it started") from error
    finally:
        # PySpark's own handler calls the JVM in the middle of the call that it interrupts,
        # which breaks the connection; here Ctrl-C ends the block, and that stops Spark.
        take_over()


@contextmanager
def _writing_below(folder: Path) -> Iterator[None]:
    """Let Spark write all that is temporary below a folder, if it starts in the block.

    Folders that the user has chosen, in SPARK_LOCAL_DIRS or ``spark.local.dir``, stay as they are.
    """
    (temporary := folder / "tmp").mkdir()
    options = f"-Djava.io.tmpdir={shlex.quote(str(temporary))}"
    if given := os.environ.get(_OPTIONS):
        options = f"{given} {options}"
    before = tempfile.tempdir
    tempfile.tempdir = str(temporary)
    try:
        with _environment({_OPTIONS: options, "TMPDIR": str(temporary)}):
            yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let this process import the modules of a folder, before all others of their names."""
    path = str(folder.resolve())
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


@contextmanager
def importable_by_workers(folder: Path, spark: SparkSession) -> Iterator[None]:
    """Let Python workers do the same, those of functions that are made inside the block."""
    environment = spark.sparkContext.environment
    before = environment.get("PYTHONPATH")
    paths = [str(folder.resolve()), *([] if before is None else [before])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    try:
        yield
    finally:
        if before is None:
            del environment["PYTHONPATH"]
        else:
            environment["PYTHONPATH"] = before


# PySpark logs every error about a query as JSON, and raises it too.
_QUERY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

_PY4J = str(Path(py4j.__file__).parent)


def silence_libraries() -> None:
    """Switch off logs of what ends a command: errors of queries, and calls cut by Ctrl-C.

    They stay off for the rest of the process. So does what PySpark's server of accumulators writes
    to standard error when the JVM that talks to it ends.
    """
    for name, server in vars(accumulators).items():
        if name.startswith("Accumulator") and name.endswith("Server"):
            server.handle_error = _say_nothing
    for name in _QUERY_LOGGERS:
        logging.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)


def _say_nothing(*_: object) -> None:
    """Take what the base class of a server has to say of an error."""


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not of Py4J's, some of whose messages go to the root logger."""
    return not record.pathname.startswith(_PY4J)
