"""One query, run by plain Spark and in eddies: rows, calls of each function, and the report."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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


def way_of(seed: int, *, everywhere: bool) -> Way:
    """Return the way in which the query of a seed is run.

    Unless ``everywhere``, it is none in which the guide says that an eddy may call a function more
    often than plain Spark.
    """
    chance = random.Random(f"way {seed}")
    joins = chance.choice(["auto", "always"])
    enabled = chance.random() < 0.5
    # A block of joins computes what the DataFrame has that was adapted, be it dropped then or not.
    whole = joins == "always" and not enabled and not everywhere
    # Where one side of a join turns out to be empty, adaptive execution gives the other up.
    # An eddy that makes the join itself reads both.
    adaptive = joins == "auto" or everywhere
    return Way(
        enabled=enabled,
        joins=joins,
        action="rows" if whole else chance.choice(["rows", "rows", "rows", *ACTIONS]),
        adaptive=adaptive and chance.random() < 0.5,
        broadcast=chance.random() < 0.5,
    )


@dataclass(frozen=True)
class Run:
    """What a query gave, and how often it called each function."""

    rows: Counter[str]
    calls: Mapping[str, int]


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


class Comparison:
    """A session with tables and functions, in which queries are compared one after the other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        """Register tables and functions, which count in an empty folder."""
        self.spark = spark
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        self.counters = Counters(spark, folder)
        for name, rows in ROWS.items():
            table = spark.range(0, rows, 1, 2).selectExpr(*COLUMNS[name])
            if name != "u":
                table.cache().count()
            table.createOrReplaceTempView(name)

    def findings(self, seed: int, *, everywhere: bool = True) -> list[Finding]:
        """Return what is wrong with the query of a seed; nothing where all is as it should be.

        ``everywhere``: see :func:`way_of`.
        """
        query, way = query_of(seed), way_of(seed, everywhere=everywhere)
        self.spark.conf.set("spark.sql.adaptive.enabled", str(way.adaptive).lower())
        bound = "10MB" if way.broadcast else "-1"
        self.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", bound)
        plain = self._plain(query, way)
        found, report = self._adapted(query, way)
        if found.rows != plain.rows and not (query.any_rows and same_number(plain, found)):
            told = f"only plain {plain.rows - found.rows}, only adapted {found.rows - plain.rows}"
            return [Finding(seed, "rows", query, way, told)]
        # A block of joins asks in any order, also where plain Spark filters between two functions.
        together = way.joins == "always" and not everywhere
        more = _more(found.calls, plain.calls, together=together)
        for _ in range(TRIES - 1):
            if not more:
                break
            plain = Run(plain.rows, _most(plain.calls, self._plain(query, way).calls))
            again, report = self._adapted(query, way)
            found = Run(found.rows, again.calls)
            more = _more(found.calls, plain.calls, together=together)
        findings = []
        if more:
            told = f"plain {dict(plain.calls)}, adapted {dict(found.calls)}"
            findings.append(Finding(seed, "calls", query, way, told))
        # What adaptive execution gives up is in no record.
        cut = query.any_rows or way.adaptive
        if told := report.differing(found.calls, plain.calls, cut=cut):
            findings.append(Finding(seed, "report", query, way, told))
        return findings

    def _plain(self, query: Query, way: Way) -> Run:
        rows = ACTIONS[way.action](self.spark.sql(query.text)).collect()
        return Run(Counter(map(repr, rows)), self.counters.taken())

    def _adapted(self, query: Query, way: Way) -> tuple[Run, Reported]:
        if way.enabled:
            with eddyline.enable(self.spark, joins=way.joins):
                df = ACTIONS[way.action](self.spark.sql(query.text))
                rows = df.collect()
                run = Run(Counter(map(repr, rows)), self.counters.taken())
                return run, Reported.of(df)
        df = ACTIONS[way.action](eddyline.adapt(self.spark.sql(query.text), joins=way.joins))
        rows = df.collect()
        return Run(Counter(map(repr, rows)), self.counters.taken()), Reported.of(df)


def same_number(one: Run, other: Run) -> bool:
    """Whether two runs gave as many rows."""
    return one.rows.total() == other.rows.total()


def _more(found: Mapping[str, int], plain: Mapping[str, int], *, together: bool) -> list[str]:
    """Return the functions that were called more often; ``together``: all, by all calls."""
    if together:
        return sorted(found) if sum(found.values()) > sum(plain.values()) else []
    return [name for name, calls in found.items() if calls > plain.get(name, 0)]


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    names = one.keys() | other.keys()
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in names}


@dataclass(frozen=True)
class Reported:
    """What the report of a DataFrame says of its functions, by their names.

    ``left`` are those that Spark calls itself somewhere in the plan.
    """

    functions: tuple[FunctionRecord, ...]
    left: frozenset[str]
    compared: Mapping[str, Any] | None

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


def optimized_text(df: Any) -> str:  # noqa: ANN401 - its plan is not public
    """Return the optimized plan of a DataFrame as text."""
    return str(df._jdf.queryExecution().optimizedPlan().toString())  # noqa: SLF001 - likewise
