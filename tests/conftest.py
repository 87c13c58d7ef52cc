"""What all tests may ask for."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

import eddyline
from eddyline.catalyst.compiled_java import VARIABLE
from eddyline.engine.storage.few_rows import compile_at_once
from eddyline.quirks.pyspark_at_hand import MINOR
from tests import (
    looked_up,
    properties,
    quick_closures,
    quick_files,
    without_arrow_tables,
    without_arrow_udf,
)
from tests.quick_java import QuickJava
from tests.validated import SETTINGS

properties.register()


files_with_spark: Final[set[Path]] = set()
"""Files with tests that are marked so, once they are collected."""

WITH_SPARK: Final = ("tests/app/", "tests/docs/", "tests/host/", "tests/oracle/", "tests/planner/")
"""Folders whose tests start Spark, be it in processes of their own."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave folders alone of which no test is asked for."""
    if "not spark" not in config.option.markexpr:
        return None
    folder = f"{collection_path.relative_to(config.rootpath).as_posix()}/"
    return True if folder in WITH_SPARK else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest: Counter[str] = Counter()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.nodeid.startswith(WITH_SPARK):
            item.add_marker("spark")
            files_with_spark.add(item.path)
        for mark in item.iter_markers("slow"):
            longest[file_of(item)] = max(longest[file_of(item)], *mark.args)
    # Begun last, a file that is long would keep one process busy when all others have nothing left.
    items.sort(key=lambda item: -longest[file_of(item)])


def pytest_collection_finish() -> None:
    """Leave out of Python's garbage collections what is there before the first test.

    Of all tests that is half a million objects, which take 0.3 s each time; who watches a query
    has garbage collected, and so do tests.
    """
    gc.collect()
    gc.freeze()


def file_of(item: pytest.Item) -> str:
    """Return the file of a test."""
    return item.nodeid.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    looked_up.remember()
    without_arrow_udf.skip_where_asked()
    without_arrow_tables.stand_in_where_needed()
    compile_at_once()  # what stands in for few rows has tests of its own
    java = QuickJava(config.rootpath / ".pytest_cache" / "java")
    java.use()
    os.environ.setdefault(VARIABLE, str(config.rootpath / ".pytest_cache" / "classes"))
    if getattr(config.option, "numprocesses", None) and "not spark" not in config.option.markexpr:
        java.make_archive()
        config.add_cleanup(java.end)
    if MINOR <= (4, 1):
        # Such a PySpark leaves the socket of every collect() to the garbage collector.
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    if MINOR < (4, 0):
        # Such a PySpark compares versions by what Python's distutils had, at each of its calls.
        line = "ignore:distutils Version classes are deprecated:DeprecationWarning"
        config.addinivalue_line("filterwarnings", line)
        line = "ignore:Arrow optimization for Python UDFs cannot be enabled:UserWarning"
        config.addinivalue_line("filterwarnings", line)  # of functions without arguments


@pytest.fixture(scope="module", autouse=True)
def each_file_begins_alike(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undo what a file's tests leave of Spark: its views, and a session of their own as active.

    Catalyst writes instants in the time zone of the active session, whatever frame they are in.
    """
    yield
    if request.path not in files_with_spark or SparkSession.getActiveSession() is None:
        return
    session = SparkSession.builder.getOrCreate()
    session.createDataFrame([], "id int")  # makes it the active one
    for table in session.sql("SHOW TABLES").collect():
        if table["isTemporary"]:
            session.catalog.dropTempView(table["tableName"])


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for the whole run, on two cores, as a user would start it."""
    session = eddyline.session("eddyline-tests", master="local[2]", config=SETTINGS)
    quick_closures.use(session)
    quick_files.use(session)
    yield session
    session.stop()
