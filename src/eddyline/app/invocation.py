"""What the user asked for on the command line, as frozen data: one class a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TableSource:
    """``--table NAME=PATH``: a file, a folder of files, or an address that Spark can read.

    ``in_query`` marks one that the query itself names, as ``FROM 'trades.csv'``.
    """

    name: str
    path: str
    in_query: bool = False

    @property
    def label(self) -> str:
        """What messages about the table begin with."""
        return "" if self.in_query else f"table {self.name}: "


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """``--udf MODULE:FUNCTION[:TYPE]``; the type is Spark's, None where it was not given."""

    module: str
    function: str
    return_type: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """An SQL query, and where its tables and its Python functions come from."""

    sql: str
    tables: tuple[TableSource, ...] = ()
    functions: tuple[FunctionSource, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A user's Python file that binds a DataFrame to ``name``."""

    path: Path
    name: str = "df"


@dataclass(frozen=True, slots=True)
class SqlInvocation:
    """``eddyline sql``: run a query.

    ``limit`` is the number of rows to print or to write, None for all. ``plain``
    leaves the query to Spark. ``output`` and ``report`` are files to write,
    ``policy`` is the routing policy.
    """

    query: Query
    limit: int | None
    plain: bool = False
    output: Path | None = None
    report: Path | None = None
    policy: str = "adaptive"


@dataclass(frozen=True, slots=True)
class ExplainInvocation:
    """``eddyline explain``: tell what would run in eddies, or show one ``stage`` of the way."""

    subject: Query | Script
    stage: str | None = None


@dataclass(frozen=True, slots=True)
class ReportInvocation:
    """``eddyline report``: show the reports in an event log; of one ``action``, None for all.

    ``html`` and ``json`` are files to write.
    """

    event_log: Path
    action: int | None = None
    html: Path | None = None
    json: Path | None = None


@dataclass(frozen=True, slots=True)
class JarInvocation:
    """``eddyline jar``: print where the plug-in's jar is."""


@dataclass(frozen=True, slots=True)
class DemoInvocation:
    """``eddyline demo``: race plain Spark.

    ``runs`` is the number of runs of each side, ``sample`` the number of flights
    to take, None for all, and ``out`` the report to write.
    """

    runs: int
    sample: int | None
    out: Path


@dataclass(frozen=True, slots=True)
class DemoLookupsInvocation:
    """``eddyline demo lookups``: join flights with services on loopback.

    ``runs`` is the number of runs of each way, ``sample`` the number of flights in each.
    """

    runs: int
    sample: int


@dataclass(frozen=True, slots=True)
class DemoRulesInvocation:
    """``eddyline demo rules``: standing queries over ``sample`` flights, None for all."""

    sample: int | None


@dataclass(frozen=True, slots=True)
class RulesRunInvocation:
    """``eddyline rules run``: run the standing queries that a file describes."""

    config: Path


@dataclass(frozen=True, slots=True)
class RulesAskInvocation:
    """``eddyline rules add``, ``drop``, ``pause``, ``resume`` and ``list``: ask a running job.

    ``where`` is its state directory, or the file that it was started from; ``request`` is as in
    :mod:`eddyline.standing.requests`.
    """

    where: Path
    request: Mapping[str, object]


Invocation = (
    SqlInvocation
    | ExplainInvocation
    | DemoInvocation
    | DemoLookupsInvocation
    | DemoRulesInvocation
    | JarInvocation
    | ReportInvocation
    | RulesRunInvocation
    | RulesAskInvocation
)
