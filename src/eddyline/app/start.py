"""Starts Spark for a command, quietly, and lets its workers import what the driver can."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

from pyspark.sql import SparkSession
from rich.console import Console

import eddyline
from eddyline.app.jvm_stderr import jvm_noise_dropped
from eddyline.app.quiet_logs import silence_libraries
from eddyline.spark.host.catalyst import let_go_of_call

# What goes wrong in a query reaches the user as one exception, told in a few lines.
# Spark would log the same from every executor, each time with the JVM's stack.
_SETTINGS = {"spark.log.level": "OFF"}


@contextmanager
def running_spark(console: Console) -> Iterator[SparkSession]:
    """Start Spark, and stop it at the end of the block.

    If Spark runs in this process already it is used and goes on running; the
    session is a new one then, with tables and functions of its own.
    """
    silence_libraries()
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running.newSession()
        return
    with TemporaryDirectory(prefix="eddyline-") as folder:
        # Spark would make a folder for tables of its own in the current one.
        settings = _SETTINGS | {"spark.sql.warehouse.dir": str(Path(folder, "warehouse"))}
        with jvm_noise_dropped(), console.status("Starting Spark"):
            spark = eddyline.session("eddyline", config=settings)
        # PySpark's own handler calls the JVM in the midst of the call that it interrupts,
        # which breaks the connection; here Ctrl-C ends the block, and that stops Spark.
        signal.signal(signal.SIGINT, _interrupt)
        try:
            yield spark
        finally:
            spark.stop()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    let_go_of_call()
    signal.default_int_handler(number, frame)


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
