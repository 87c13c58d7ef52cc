"""One query, run by plain Spark and in eddies: rows, calls of each function, and the report."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import eddyline
from bench.calls.functions import Counters
from bench.calls.queries import Query, query_of
from eddyline.reports.records import FunctionRecord

ROWS: Final = {"t": 60, "u": 36, "e": 24}
"""Rows of the tables: few, as there are thousands of queries, but of more than one task."""

COLUMNS: Final = {
    "t": ("id", "id * 11 % 60 AS a", "id % 7 AS k", "if(id % 5 = 3, NULL, id % 9) AS v"),
    "u": ("id", "id * 5 % 36 AS b", "id % 6 AS k", "if(id % 4 = 1, NULL, id % 8) AS v"),
    "e": ("id", "id % 10 AS c", "id % 4 AS k", "if(id % 7 = 2, NULL, id % 3) AS v"),
}

SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "2",
    # How many rows Spark takes ahead of a limit depends on these; whole partitions with this.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}

TRIES: Final = 3
"""Runs of a query that seems to be called more often: what a limit cuts off is a matter of time."""

Action = Callable[[DataFrame], DataFrame]

ACTIONS: Final[Mapping[str, Action]] = {
    "rows": lambda df: df,
    "a column": lambda df: df.select(df.columns[0]),
    "count": lambda df: df.selectExpr("1 AS one").groupBy().count(),
    "a filter": lambda df: df.filter(df[df.columns[0]].isNotNull()),
}
"""What is done with a query in the end, after it was adapted."""


@dataclass(frozen=True)
class Way:
    """How a query is run."""

    enabled: bool
    joins: str
    action: str
    adaptive: bool
    broadcast: bool

    def __str__(self) -> str:
        """Return the way in words."""
        verb = "enable" if self.enabled else "adapt"
        spark = f"adaptive {self.adaptive}, broadcast {self.broadcast}"
        return f"{verb}(joins={self.joins}), {self.action}; {spark}"


def way_of(seed: int) -> Way:
    """Return the way in which the query of a seed is run."""
    chance = random.Random(f"way {seed}")
    return Way(
        joins=chance.choice(["auto", "always"]),
        enabled=chance.random() < 0.5,
        action=chance.choice(["rows", "rows", "rows", *ACTIONS]),
        adaptive=chance.random() < 0.5,
        broadcast=chance.random() < 0.5,
    )


class Spared(Enum):
    """Why Spark leaves out a part of a plan while the query runs."""

    EMPTY = auto()  # it is a side of a join of which the other one has turned out to be empty
    TWICE = auto()  # it has been computed for another place


@dataclass(frozen=True)
class Run:
    """What a query gave, and how often it called each function.

    ``spared`` is why Spark has left out parts of the plan while the query ran.
    """

    rows: Counter[str]
    calls: Mapping[str, int]
    spared: frozenset[Spared]


@dataclass(frozen=True)
class Finding:
    """What is wrong with a query in eddies."""

    seed: int
    kind: str
    query: Query
    way: Way
    told: str

    def __str__(self) -> str:
        """Return all that is needed to see it again."""
        return f"{self.kind}: seed {self.seed}, {self.way}\n  {self.query.text}\n  {self.told}"


class Compared(StrEnum):
    """What was compared of a query."""

    ALL = "rows, calls and report"
    ROWS = "rows only, as plain Spark left out a side of a join while the query ran"
    FILTERED = "rows only, as a filter was added to what had been adapted"
    NOTHING = "nothing, as Spark refuses the query"


class Comparison:
    """A session with tables and functions, in which queries are compared one after the other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        """Register tables and functions, which count in an empty folder."""
        self.spark = spark
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        self.counters = Counters(spark, folder)
        java: Any = spark.sparkContext._jsc  # noqa: SLF001 - nothing public knows running tasks
        self._tracker = java.sc().statusTracker()
        for name, rows in ROWS.items():
            table = spark.range(0, rows, 1, 2).selectExpr(*COLUMNS[name])
            if name != "u":
                table.cache().count()
            table.createOrReplaceTempView(name)

    def findings(self, seed: int) -> list[Finding]:
        """Return what is wrong with the query of a seed; nothing where all is as it should be."""
        query, way = query_of(seed), way_of(seed)
        self.compared = Compared.ALL
        self.spark.conf.set("spark.sql.adaptive.enabled", str(way.adaptive).lower())
        bound = "10MB" if way.broadcast else "-1"
        self.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", bound)
        try:
            plain = self._plain(query, way)
        except AnalysisException:  # such as of a function in the condition of an outer join
            self.compared = Compared.NOTHING
            return []
        found, report = self._adapted(query, way)
        if found.rows != plain.rows and not (query.any_rows and same_number(plain, found)):
            told = f"only plain {plain.rows - found.rows}, only adapted {found.rows - plain.rows}"
            return [Finding(seed, "rows", query, way, told)]
        if way.action == "a filter" and not way.enabled:
            self.compared = Compared.FILTERED
            return []
        # An empty side may be another one, where statistics have Spark broadcast the other.
        same_again = plain.spared == found.spared == frozenset({Spared.TWICE})
        if plain.spared and (report.joins or not same_again):
            self.compared = Compared.ROWS
            return []
        # A block of joins asks in any order, also where plain Spark filters between two functions.
        # And which of its tasks have the first rows is another matter than in plain Spark.
        together = report.joins > 0
        limited = query.any_rows and together
        more_rows = int(query.text.rpartition("LIMIT ")[2]) if limited else 0
        more = _more(found.calls, plain.calls, more_rows, together=together)
        for _ in range(TRIES - 1):
            if not more:
                break
            calls = _most(plain.calls, self._plain(query, way).calls)
            plain = replace(plain, calls=calls)
            again, report = self._adapted(query, way)
            found = replace(found, calls=again.calls)
            more = _more(found.calls, plain.calls, more_rows, together=together)
        findings = []
        if more:
            told = f"plain {dict(plain.calls)}, adapted {dict(found.calls)}"
            findings.append(Finding(seed, "calls", query, way, told))
        # What is given up, or computed once for two places, is in no record.
        cut = query.any_rows or way.adaptive or bool(found.spared)
        if told := report.differing(found.calls, plain.calls, cut=cut):
            findings.append(Finding(seed, "report", query, way, told))
        return findings

    def _plain(self, query: Query, way: Way) -> Run:
        return self._ran(ACTIONS[way.action](self.spark.sql(query.text)), query, way)

    def _adapted(self, query: Query, way: Way) -> tuple[Run, Reported]:
        if way.enabled:
            with eddyline.enable(self.spark, joins=way.joins):
                df = ACTIONS[way.action](self.spark.sql(query.text))
                return self._ran(df, query, way), Reported.of(df)
        df = ACTIONS[way.action](eddyline.adapt(self.spark.sql(query.text), joins=way.joins))
        return self._ran(df, query, way), Reported.of(df)

    def _ran(self, df: DataFrame, query: Query, way: Way) -> Run:
        """Run a query to its end.

        It has its rows before tasks have ended that a limit or adaptive execution gives up.
        """
        rows = df.collect()
        while any(each.numRunningTasks() for each in self._tracker.getExecutorInfos()):
            time.sleep(0.002)
        if query.any_rows or way.adaptive:  # workers that are told to end do so in their own time
            time.sleep(0.05)
        calls = self.counters.taken()
        return Run(Counter(map(repr, rows)), calls, _spares(executed_plan(df)))


def same_number(one: Run, other: Run) -> bool:
    """Whether two runs gave as many rows."""
    return one.rows.total() == other.rows.total()


def _more(
    found: Mapping[str, int], plain: Mapping[str, int], rows: int, *, together: bool
) -> list[str]:
    """Return the functions that were called more often; ``together``: all, by all calls.

    Each may be called for so many ``rows`` more.
    """
    if together:
        more = sum(found.values()) > sum(plain.values()) + rows * len(found)
        return sorted(found) if more else []
    return [name for name, calls in found.items() if calls > plain.get(name, 0) + rows]


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    names = one.keys() | other.keys()
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in names}


@dataclass(frozen=True)
class Reported:
    """What the report of a DataFrame says of its functions, by their names.

    ``left`` are those that Spark calls itself somewhere in the plan; ``joins`` counts the blocks
    of joins.
    """

    functions: tuple[FunctionRecord, ...]
    left: frozenset[str]
    compared: Mapping[str, Any] | None
    joins: int

    @classmethod
    def of(cls, df: DataFrame) -> Reported:
        """Read the report of a DataFrame after its action."""
        report = eddyline.report(df)
        records = [block.record for block in report.blocks if block.record is not None]
        outside = re.sub(r"eddy\[[^\n]*", "", optimized_text(df))
        return cls(
            tuple(function for record in records for function in record.functions),
            frozenset(_NAMES.findall(outside)),
            report.to_dict()["compared"],
            sum(bool(block.inputs) for block in report.blocks),
        )

    def differing(self, made: Mapping[str, int], plain: Mapping[str, int], *, cut: bool) -> str:
        """Return in words where the report and the functions disagree; empty where they agree.

        Where a limit has ``cut`` tasks off, these have told less than they did.
        """
        reported: Counter[str] = Counter()
        for each in self.functions:
            for name in _NAMES.findall(f"{each.name}("):
                reported[name] += each.calls
        wrong = [
            f"{name}: {made.get(name, 0)} made, {reported[name]} reported"
            for name in sorted(made.keys() | reported.keys())
            if reported[name] > made.get(name, 0)
            or (reported[name] < made.get(name, 0) and not cut and name not in self.left)
        ]
        told, expected = self.compared, sum(plain.values())
        if told and not told["estimated"] and not cut:
            number = told["plain_calls"]
            # A nest f(g(x)) that Spark runs in one go is one call of the report's.
            nested = any(len(_NAMES.findall(each.name)) > 1 for each in self.functions)
            fewer = number < expected and not told["least"] and not self.left and not nested
            if number > expected or fewer:
                wrong.append(f"plain Spark: {expected} made, {number} reported")
        return "; ".join(wrong)


_NAMES: Final = re.compile(r"\b([a-z]+_(?:row|pickled|pandas|arrow))\b")
"""Names of functions, as in the text of a plan."""


def executed_plan(df: Any) -> Any:  # noqa: ANN401 - its plan is not public
    """Return the executed plan of a DataFrame that has run."""
    return df._jdf.queryExecution().executedPlan()  # noqa: SLF001 - likewise


def _spares(plan: Any) -> frozenset[Spared]:  # noqa: ANN401 - likewise
    """Return what a plan that has run has left out of itself; see :class:`Run`."""
    name = str(plan.getClass().getSimpleName())
    below = [plan.children(), plan.subqueries()]
    parts = [nodes.apply(n) for nodes in below for n in range(nodes.size())]
    if name.startswith("Reused"):
        return frozenset({Spared.TWICE})
    empty = name.startswith("EmptyRelation")
    if name == "BroadcastExchangeExec":
        empty = not plan.metrics().apply("numOutputRows").value()
    elif name == "LocalTableScanExec":
        empty = not plan.rows().size()
    elif name == "AdaptiveSparkPlanExec":
        first, last = str(plan.initialPlan()), str(plan.executedPlan())
        empty = last.count("Exchange ") < first.count("Exchange ")
        parts.append(plan.executedPlan())
    elif name.endswith("QueryStageExec"):
        parts.append(plan.plan())
    found = {Spared.EMPTY} if empty else set()
    return frozenset(found.union(*map(_spares, parts)))


def optimized_text(df: Any) -> str:  # noqa: ANN401 - its plan is not public
    """Return the optimized plan of a DataFrame as text."""
    return str(df._jdf.queryExecution().optimizedPlan().toString())  # noqa: SLF001 - likewise
