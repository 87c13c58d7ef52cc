"""Eddyline makes queries on Spark adapt while they run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eddyline.deterministic_mark import deterministic
from eddyline.errors import EddylineError
from eddyline.forgetful_mark import forgetful
from eddyline.stateless_mark import stateless

if TYPE_CHECKING:
    from eddyline.sources.http_lookup import HttpLookup
    from eddyline.sources.lookup_method import LookupMethod
    from eddyline.sources.python_lookup import PythonLookup
    from eddyline.sources.sql_lookup import SqlLookup
    from eddyline.spark.adapt import adapt, explain
    from eddyline.spark.concurrent import concurrent
    from eddyline.spark.enabling import disable, enable
    from eddyline.spark.host.session import session
    from eddyline.spark.live.progress import progress
    from eddyline.spark.lookup_table import lookup_table
    from eddyline.spark.reporting import report
    from eddyline.spark.status import forget, status
    from eddyline.spark.streaming.standing_queries import StandingQueries
    from eddyline.spark.watching.watch import watch
    from eddyline.web.live_page import live

__version__ = "0.1.0"
"""The version of this package; ``pyproject.toml`` takes it from here."""

__all__ = [
    "EddylineError",
    "HttpLookup",
    "LookupMethod",
    "PythonLookup",
    "SqlLookup",
    "StandingQueries",
    "__version__",
    "adapt",
    "concurrent",
    "deterministic",
    "disable",
    "enable",
    "explain",
    "forget",
    "forgetful",
    "live",
    "lookup_table",
    "progress",
    "report",
    "session",
    "stateless",
    "status",
    "watch",
]

# Public names that need Spark, and where they live. They are imported on first
# use: `import eddyline` takes 12 ms so, and 110 ms with PySpark behind it.
_ON_FIRST_USE = {
    "HttpLookup": "eddyline.sources.http_lookup",
    "LookupMethod": "eddyline.sources.lookup_method",
    "PythonLookup": "eddyline.sources.python_lookup",
    "SqlLookup": "eddyline.sources.sql_lookup",
    "StandingQueries": "eddyline.spark.streaming.standing_queries",
    "adapt": "eddyline.spark.adapt",
    "concurrent": "eddyline.spark.concurrent",
    "disable": "eddyline.spark.enabling",
    "enable": "eddyline.spark.enabling",
    "explain": "eddyline.spark.adapt",
    "forget": "eddyline.spark.status",
    "live": "eddyline.web.live_page",
    "lookup_table": "eddyline.spark.lookup_table",
    "progress": "eddyline.spark.live.progress",
    "report": "eddyline.spark.reporting",
    "session": "eddyline.spark.host.session",
    "status": "eddyline.spark.status",
    "watch": "eddyline.spark.watching.watch",
}


_LOOKUPS = {
    "HttpLookup",
    "LookupMethod",
    "PythonLookup",
    "SqlLookup",
    "concurrent",
    "lookup_table",
}


# What reads plans in the JVM is compiled there, which takes half a second in one that has just
# started: meanwhile Python imports what these names need, 0.2 s.
_READ_PLANS = {"adapt", "enable", "explain", "watch"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _ON_FIRST_USE:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    # Before all else that needs PySpark, which would fail on an old one for no clear reason.
    importlib.import_module("eddyline.spark.host.versions").require_tested_version()
    if name in _READ_PLANS:
        importlib.import_module("eddyline.spark.host.catalyst").get_ready()
    try:
        module = importlib.import_module(_ON_FIRST_USE[name])
    except ModuleNotFoundError as error:
        if name not in _LOOKUPS or (error.name or "").startswith("eddyline"):
            raise
        message = f'eddyline.{name} needs {error.name}: pip install "eddyline[lookups]"'
        raise ModuleNotFoundError(message, name=error.name) from error
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, whether imported already or not."""
    return __all__
