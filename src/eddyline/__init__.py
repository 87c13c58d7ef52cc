"""Eddyline makes queries on Spark adapt while they run."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eddyline.deterministic_mark import deterministic
from eddyline.errors import EddylineError
from eddyline.forgetful_mark import forgetful
from eddyline.stateless_mark import stateless

if TYPE_CHECKING:
    import eddyline.policies
    import eddyline.testing  # noqa: F401 - both are attributes of this package
    from eddyline.asking.http_lookup import HttpLookup
    from eddyline.asking.lookup_source import LookupMethod
    from eddyline.asking.python_lookup import PythonLookup
    from eddyline.asking.sql_lookup import SqlLookup
    from eddyline.declaring.concurrent import concurrent, kept
    from eddyline.engine.policies.policy import Policy
    from eddyline.host.session import session
    from eddyline.host.show_versions import show_versions
    from eddyline.monitor.live_page import live
    from eddyline.monitor.progress import progress
    from eddyline.monitor.status import forget, status
    from eddyline.monitor.telemetry import telemetry
    from eddyline.planner.adapt import adapt, explain
    from eddyline.planner.declare.cascade import cascade
    from eddyline.planner.declare.kept_folders import ledger
    from eddyline.planner.declare.lookup_registration import lookup_table
    from eddyline.planner.enabling import disable, enable
    from eddyline.planner.reporting import learned, report
    from eddyline.plugin.jar_file import jar
    from eddyline.standing.standing_queries import StandingQueries
    from eddyline.watching.watch import watch

__version__ = "0.1.0"
"""The version of this package; ``pyproject.toml`` takes it from here."""

__all__ = [
    "EddylineError",
    "HttpLookup",
    "LookupMethod",
    "Policy",
    "PythonLookup",
    "SqlLookup",
    "StandingQueries",
    "__version__",
    "adapt",
    "cascade",
    "concurrent",
    "deterministic",
    "disable",
    "enable",
    "explain",
    "forget",
    "forgetful",
    "jar",
    "kept",
    "learned",
    "ledger",
    "live",
    "lookup_table",
    "progress",
    "report",
    "session",
    "show_versions",
    "stateless",
    "status",
    "telemetry",
    "watch",
]

# Public names that need Spark, and where they live. They are imported on first
# use: `import eddyline` takes 12 ms so, and 110 ms with PySpark behind it.
_ON_FIRST_USE = {
    "HttpLookup": "eddyline.asking.http_lookup",
    "LookupMethod": "eddyline.asking.lookup_source",
    "Policy": "eddyline.engine.policies.policy",
    "PythonLookup": "eddyline.asking.python_lookup",
    "SqlLookup": "eddyline.asking.sql_lookup",
    "StandingQueries": "eddyline.standing.standing_queries",
    "adapt": "eddyline.planner.adapt",
    "cascade": "eddyline.planner.declare.cascade",
    "concurrent": "eddyline.declaring.concurrent",
    "kept": "eddyline.declaring.concurrent",
    "disable": "eddyline.planner.enabling",
    "enable": "eddyline.planner.enabling",
    "explain": "eddyline.planner.adapt",
    "forget": "eddyline.monitor.status",
    "jar": "eddyline.plugin.jar_file",
    "learned": "eddyline.planner.reporting",
    "ledger": "eddyline.planner.declare.kept_folders",
    "live": "eddyline.monitor.live_page",
    "lookup_table": "eddyline.planner.declare.lookup_registration",
    "progress": "eddyline.monitor.progress",
    "report": "eddyline.planner.reporting",
    "session": "eddyline.host.session",
    "show_versions": "eddyline.host.show_versions",
    "status": "eddyline.monitor.status",
    "telemetry": "eddyline.monitor.telemetry",
    "watch": "eddyline.watching.watch",
}

# Verbs that know DataFrames and sessions of Spark Connect as well, and where those live.
_ON_CONNECT = {
    "adapt": "eddyline.connect.verbs",
    "disable": "eddyline.connect.session_hook",
    "enable": "eddyline.connect.session_hook",
    "explain": "eddyline.connect.verbs",
    "learned": "eddyline.connect.session_hook",
    "progress": "eddyline.monitor.client_progress",
    "report": "eddyline.connect.verbs",
}

# Those that take the active session where none is given.
_OF_SESSIONS = {"disable", "enable", "learned", "progress"}

_LOOKUPS = {
    "HttpLookup",
    "LookupMethod",
    "PythonLookup",
    "SqlLookup",
    "cascade",
    "concurrent",
    "kept",
    "lookup_table",
}


# What is declared the same way wherever it is called: with the client of Spark Connect alone, too.
_ANYWHERE = {"concurrent", "kept"}


# What is asked where something is wrong and PySpark may be missing, and what needs none.
_WITHOUT_SPARK = {"Policy", "jar", "show_versions"}


# Modules of public names, which are imported when one of them is first asked for.
_MODULES = {"policies", "testing"}


# What reads plans in the JVM is compiled there, which takes half a second in one that has just
# started: meanwhile Python imports what these names need, 0.2 s.
_READ_PLANS = {"adapt", "enable", "explain", "watch"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _ON_FIRST_USE:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    if name in _ON_CONNECT and _has_only_connect():
        globals()[name] = _on_connect(name)
        return globals()[name]
    if name not in _WITHOUT_SPARK and not (name in _ANYWHERE and _has_only_connect()):
        # Before all else that needs PySpark and would fail on an old one for no clear reason.
        importlib.import_module("eddyline.host.versions").require_tested_version()
    if name in _READ_PLANS:
        importlib.import_module("eddyline.catalyst").get_ready()
    collects = gc.isenabled()
    try:
        gc.disable()  # what is imported stays: looking for garbage took a fifth of 0.25 s
        module = importlib.import_module(_ON_FIRST_USE[name])
    except ModuleNotFoundError as error:
        if name not in _LOOKUPS or (error.name or "").startswith("eddyline"):
            raise
        message = f'eddyline.{name} needs {error.name}: pip install "eddyline[lookups]"'
        raise ModuleNotFoundError(message, name=error.name) from error
    finally:
        if collects:
            gc.enable()
    value: object = getattr(module, name)
    if name in _ON_CONNECT:
        value = _for_either(getattr(module, name), name)
    globals()[name] = value
    return value


def _has_only_connect() -> bool:
    """Whether PySpark is here without what talks to a JVM, as the package pyspark-client has it."""
    if importlib.util.find_spec("pyspark") is None:
        return False
    connect = importlib.util.find_spec("pyspark.sql.connect") is not None
    # The context has moved to pyspark.core in PySpark 4.0.
    contexts = ("pyspark.core", "pyspark.context")
    return connect and all(importlib.util.find_spec(name) is None for name in contexts)


def _on_connect(name: str) -> Callable[..., Any]:
    """Return a verb for Spark Connect."""
    verb: Callable[..., Any] = getattr(importlib.import_module(_ON_CONNECT[name]), name)
    return verb


def _for_either(classic: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a verb that also knows what belongs to Spark Connect."""

    @functools.wraps(classic)
    def verb(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as both have it
        subject = arguments[0] if arguments else named.get("df", named.get("spark"))
        if subject is None and name in _OF_SESSIONS:
            remote = importlib.import_module("pyspark.sql.utils").is_remote()
        else:
            remote = type(subject).__module__.startswith("pyspark.sql.connect.")
        return (_on_connect(name) if remote else classic)(*arguments, **named)

    return verb


def __dir__() -> list[str]:
    """Public names, whether imported already or not."""
    return __all__
