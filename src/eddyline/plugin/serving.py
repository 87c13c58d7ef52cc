"""The process from its begin to its end: it attaches to the application, and answers it."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline import __version__
from eddyline.catalyst import Application, Plan, RewrittenPlan
from eddyline.host.versions import TESTED, installed_version
from eddyline.planner.adapt import adapt
from eddyline.planner.block_registry import registry_of
from eddyline.planner.enabling import adapted_plan
from eddyline.planner.operating import operating_of
from eddyline.planner.self_check import check_once
from eddyline.plugin.session_choices import SessionChoices
from eddyline.plugin.sql_tables import SqlTables
from eddyline.plugin.workers import Workers, send_package
from eddyline.quirks.minor_versions import minor_version

_log: Final = logging.getLogger("eddyline")


def serve() -> int:
    """Answer what the application's JVM asks until it closes this process's standard input."""
    logging.basicConfig(format="eddyline: %(message)s")
    application = Application()
    why = unfit(*application.versions())
    if why:
        application.refuse(f"Queries run as Spark plans them: {why}")
        return 1
    workers = Workers()
    context = application.attach(workers.why_not)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # PySpark's own handler would cancel all jobs
    send_package(context)
    sessions = AdaptedSessions(context)
    application.serve(sessions.rewritten, SqlTables(context).answer)
    operating_of(context).begin()  # with threads that answer
    sys.stdin.buffer.read()
    registry_of(context).learned.save()
    sys.stderr.flush()
    os._exit(0)  # threads that serve wait in the JVM


def unfit(spark: str, jar: str, pyspark: str | None = None) -> str:
    """Return why this process cannot serve a Spark, and what to do; empty where it can.

    >>> unfit("4.3.0", __version__, "4.3.1")
    ''
    >>> unfit("4.2.0", __version__, "4.3.0")
    "Spark 4.2.0 needs a Python with PySpark 4.2, and Eddyline's has 4.3.0; \
spark.eddyline.python names another one"
    """
    found = installed_version() if pyspark is None else pyspark
    if minor_version(found) != minor_version(spark):
        minor = ".".join(map(str, minor_version(spark)))
        return (
            f"Spark {spark} needs a Python with PySpark {minor}, and Eddyline's has {found}; "
            "spark.eddyline.python names another one"
        )
    if jar != __version__:
        return (
            f"the jar is that of Eddyline {jar}, and {sys.executable} has {__version__}; "
            "`eddyline jar` prints the path of the one that belongs to it"
        )
    if minor_version(spark) < TESTED[1]:
        return f"the plug-in needs Spark 4.0 or newer, not {spark}"
    return ""


class AdaptedSessions:
    """What becomes of the plans of an application."""

    def __init__(self, context: SparkContext) -> None:
        """Read what the application has chosen for all its sessions."""
        self._choices: Final = SessionChoices(context)

    def rewritten(self, spark: SparkSession, plan: Plan) -> RewrittenPlan:
        """Return what becomes of a plan that a session is about to run, as the session chose."""
        check_once(spark, lambda query, claimed: adapt(query, joins=claimed))
        choice = self._choices.of(spark)
        return adapted_plan(spark, plan, choice.chosen, choice.memory, choice.run)
