"""What any client can ask in SQL: table functions that tell what became of queries.

``SELECT * FROM eddyline_report('view')``, ``eddyline_explain('view or query')``,
``eddyline_status()``, ``eddyline_live()``. Each gives one row: a text for people, and the same as
JSON for programs.
"""

from __future__ import annotations

import json
import os
import runpy
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.monitor.live_page import LivePage, live
from eddyline.monitor.status import status
from eddyline.planner.adapt import explain
from eddyline.planner.reporting import report
from eddyline.plugin.sql_lookups import SqlLookups

FUNCTIONS: Final = "spark.eddyline.functions"
"""Setting: a file of Python whose functions every session of the application has."""

PAGES: Final = 20
"""Sessions with a live page, those that asked last; each page is a port and two threads."""

REGISTER: Final = "functions"
"""What is asked for when a session begins; nobody can ask for it in SQL."""

LOOKUP: Final = "lookup"
"""What is asked for when a plan has a lookup table of a catalog; likewise."""

_WITHOUT_ARGUMENT: Final = frozenset({"live", "status"})


class SqlTables:
    """The table functions of an application, and the functions that it gives its sessions."""

    def __init__(self, context: SparkContext) -> None:
        """Read no file yet: that needs a session."""
        self._path: Final = context.getConf().get(FUNCTIONS)
        self._functions: Mapping[str, Any] | None = None
        self._reading: Final = threading.Lock()
        self._lookups: Final = SqlLookups()
        self._pages: Final[OrderedDict[str, LivePage]] = OrderedDict()  # by session, latest last
        self._tables: Final[Mapping[str, Callable[[SparkSession, str | None], tuple[str, str]]]] = {
            "explain": _explained,
            "live": self._live,
            "report": _reported,
            "status": _status,
        }

    def answer(self, spark: SparkSession, name: str, argument: str | None) -> catalyst.Answer:
        """Return what a table function gives a session; None after giving it functions.

        Of a lookup table, the leaf that stands for it in plans.
        """
        if name == LOOKUP:
            return self._lookups.leaf(spark, argument or "")
        if name == REGISTER:
            for function, made in self._given().items():
                spark.udf.register(function, made)
            return None
        if argument is not None and name in _WITHOUT_ARGUMENT:
            raise ValueError(f"eddyline_{name}() takes no argument")
        return self._tables[name](spark, argument)

    def _live(self, spark: SparkSession, _: str | None) -> tuple[str, str]:
        """Serve a page of the session's queries from now on, unless there is one."""
        session = catalyst.identity_of(spark)
        with self._reading:
            page = self._pages.pop(session, None) or live(spark)
            self._pages[session] = page
            while len(self._pages) > PAGES:
                self._pages.popitem(last=False)[1].stop()
        return page.url, json.dumps({"url": page.url})

    def _given(self) -> Mapping[str, Any]:
        with self._reading:
            if self._functions is None:
                found = runpy.run_path(self._path or os.devnull)
                self._functions = {
                    name: made
                    for name, made in found.items()
                    if hasattr(made, "evalType") and not name.startswith("_")
                }
            return self._functions


def _explained(spark: SparkSession, query: str | None) -> tuple[str, str]:
    explanation = explain(catalyst.query_or_table(spark, _required("explain", query)))
    found = {
        "blocks": [str(block) for block in explanation.blocks],
        "claimable": [str(block) for block in explanation.claimable],
        "left": [{"predicate": left.text, "why": str(left.why)} for left in explanation.left],
        "dropped": explanation.dropped,
    }
    return str(explanation), json.dumps(found)


def _reported(spark: SparkSession, query: str | None) -> tuple[str, str]:
    found = report(catalyst.query_or_table(spark, _required("report", query)))
    return str(found), json.dumps(found.to_dict(), default=str)


def _status(_: SparkSession, __: str | None) -> tuple[str, str]:
    found = status()
    process = {"pid": os.getpid(), "threads": threading.active_count()}
    return str(found), json.dumps(asdict(found) | process)


def _required(name: str, argument: str | None) -> str:
    if argument is None:
        raise ValueError(f"eddyline_{name} needs a view or a query: eddyline_{name}('my_view')")
    return argument
