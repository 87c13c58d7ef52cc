"""Keeps libraries from logging what the user is told anyway, in fewer words."""

from __future__ import annotations

import logging
from pathlib import Path

import py4j
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

# PySpark logs every error about a query as JSON, and raises it too.
_QUERY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

_PY4J = str(Path(py4j.__file__).parent)


def silence_libraries() -> None:
    """Switch off logs of what ends a command: errors of queries, and calls cut by Ctrl-C.

    They stay off for the rest of the process. So does what PySpark's server of accumulators writes
    to standard error when the JVM that talks to it ends.
    """
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _say_nothing  # type: ignore[assignment, method-assign]
    for name in _QUERY_LOGGERS:
        logging.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)


def _say_nothing(*_: object) -> None:
    """Take what the base class of a server has to say of an error."""


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not of Py4J's, some of whose messages go to the root logger."""
    return not record.pathname.startswith(_PY4J)
