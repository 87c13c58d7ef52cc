"""A Spark session that works at once, on any machine with Python."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from eddyline.catalyst import get_ready
from eddyline.errors import BashNotFoundError
from eddyline.host.java import java_for_launch
from eddyline.host.users_settings import settings_of_the_user

QUIET_LOGGING = Path(__file__).with_name("quiet_log4j2.properties")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

DAEMON_MODULE = "spark.python.daemon.module"
SPARKS_DAEMON = "pyspark.daemon"
WORKER_DAEMON = "eddyline.tasks.daemon"
"""The module that starts the workers, which is named, not imported: it runs in their Python."""


PACKAGES = Path(__file__).parents[2]
"""The folder that this package is in."""


class SettingsIgnoredWarning(UserWarning):
    """Settings were asked for, but Spark runs already and was started with others."""


def session(
    app_name: str = "eddyline",
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the Spark session of this process; start one that works at once if there is none.

    A running session is returned as it is; if ``master`` or ``config`` ask for other settings than
    it has, a :class:`SettingsIgnoredWarning` is given.

    Otherwise Spark starts with ``master``, by default on all cores of this machine (``local[*]``),
    and with the settings in ``config``, which override all that follow. Workers run the driver's
    Python, unless ``PYSPARK_PYTHON`` names another. In local mode, unless ``PYSPARK_SUBMIT_ARGS``
    or ``spark-defaults.conf`` say otherwise,

    - the driver listens on this machine only, without a web interface or a progress bar;
    - only errors are logged, unless ``SPARK_CONF_DIR`` brings its own rules;
    - a shuffle has one partition per core;
    - workers start with pandas, pyarrow and the eddy imported (:mod:`eddyline.tasks.daemon`).

    Under ``spark-submit`` only ``app_name``, ``master`` and ``config`` are passed on: the command
    line has decided the rest. (One line of the JVM's own may still appear, about an incubator
    module that Spark asks for.)

    Raises ``JavaNotFoundError`` if there is no Java 17 or newer (``eddyline[spark]`` brings one),
    and ``BashNotFoundError`` where there is no bash, which Spark's scripts need.
    """
    asked = dict(config or {})
    if master is not None:
        asked["spark.master"] = master
    running = _running_session()
    if running is not None:
        _warn_of_ignored(asked, running)
        return running

    builder = SparkSession.builder.appName(app_name)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM already
        return _start(builder, asked)
    if os.name == "posix" and shutil.which("bash") is None:
        raise BashNotFoundError
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = {"spark.master": "local[*]", **asked}
    cores = local_cores(settings["spark.master"])
    if cores is not None:
        made = settings_of_the_user()
        ours = {name: value for name, value in _local_settings(cores).items() if name not in made}
        settings = ours | settings
        if "SPARK_CONF_DIR" not in os.environ:
            settings[JAVA_OPTIONS] = _quiet(asked.get(JAVA_OPTIONS, ""))
        prepared = _workers_are_like_this_process(settings)
        # Said in both cases: a JVM has the settings that it was launched with.
        settings = {DAEMON_MODULE: WORKER_DAEMON if prepared else SPARKS_DAEMON, **settings}
    with java_for_launch(), _package_for_workers():
        return _start(builder, settings)


def _start(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder.config(key, value)
    started = builder.getOrCreate()
    get_ready()
    return started


def local_cores(master: str) -> int | None:
    """Return how many tasks a local master runs at once, None for a cluster.

    >>> local_cores("local"), local_cores("local[4]"), local_cores("local[2, 3]")
    (1, 4, 2)
    >>> local_cores("spark://example:7077") is None
    True
    """
    match = re.fullmatch(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?", master)
    if match is None:
        return None
    if match[1] == "*":
        return os.cpu_count() or 1
    return int(match[1] or 1)


def _workers_are_like_this_process(settings: Mapping[str, str]) -> bool:
    """Tell whether workers run this Python and find this package."""
    chosen = {"spark.pyspark.python", "spark.pyspark.driver.python"} & settings.keys()
    if chosen or os.environ["PYSPARK_PYTHON"] != sys.executable:
        return False
    return _is_installed() or SparkContext._gateway is None  # noqa: SLF001  # a JVM is to be launched


def _is_installed() -> bool:
    return PACKAGES.name in {"site-packages", "dist-packages"}


@contextmanager
def _package_for_workers() -> Iterator[None]:
    """Let workers of a JVM that is launched in the block find this package where it is.

    Where it is installed they do, and installed packages are not to come before Python's own.
    """
    before = os.environ.get("PYTHONPATH")
    if not _is_installed():
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [before]), str(PACKAGES)])
    try:
        yield
    finally:
        if before is not None:
            os.environ["PYTHONPATH"] = before
        else:
            os.environ.pop("PYTHONPATH", None)


def _running_session() -> SparkSession | None:
    try:
        running = SparkSession.active()
    except PySparkRuntimeError:
        return None
    # After sparkContext.stop() PySpark still hands out the session, but all it does fails.
    context_is_gone = SparkContext._active_spark_context is None  # noqa: SLF001
    return None if context_is_gone and not is_remote() else running


def _warn_of_ignored(asked: Mapping[str, str], running: SparkSession) -> None:
    ignored = [
        f"{key}={value}"
        for key, value in asked.items()
        if running.conf.get(key, None)
        not in {value, _quiet(value) if key == JAVA_OPTIONS else value}
    ]
    if ignored:
        warnings.warn(
            f"Spark runs already, so these settings have no effect: {', '.join(ignored)}. "
            "Stop the running session first (spark.stop()), or set what can be changed at run "
            "time with spark.conf.set().",
            SettingsIgnoredWarning,
            stacklevel=3,
        )


def _local_settings(cores: int) -> dict[str, str]:
    return {
        # A laptop's host name often does not resolve, or to an address behind a firewall.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _quiet(java_options: str) -> str:
    """Put our logging rules before the user's Java options, which win where they differ.

    Not where the package is an archive: Java would look for a file.
    """
    if not QUIET_LOGGING.exists():
        return java_options
    return f"-Dlog4j2.configurationFile={QUIET_LOGGING.as_uri()} {java_options}".rstrip()
