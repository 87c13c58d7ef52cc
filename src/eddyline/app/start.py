"""Starts Spark for a command, quietly, and lets workers import what the driver can."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

import eddyline
from eddyline.app.jvm_stderr import jvm_announcement_dropped

# What goes wrong in a query reaches the user as one exception, told in a few lines;
# Spark would log the same, from every executor, with the JVM's stack below it.
_SETTINGS = {"spark.log.level": "OFF"}


@contextmanager
def running_spark(console: Console) -> Iterator[SparkSession]:
    """Start Spark and stop it at the end of the block; a session that runs already is used."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with jvm_announcement_dropped(), console.status("Starting Spark"):
        spark = eddyline.session("eddyline", config=_SETTINGS)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def importable(folder: Path, spark: SparkSession) -> Iterator[None]:
    """Let the driver and the Python workers import modules of a folder, before all others."""
    path = str(folder.resolve())
    sys.path.insert(0, path)
    environment = spark.sparkContext.environment  # of the workers of functions made from now on
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = path if before is None else os.pathsep.join((path, before))
    try:
        yield
    finally:
        sys.path.remove(path)
        if before is None:
            del environment["PYTHONPATH"]
        else:
            environment["PYTHONPATH"] = before
