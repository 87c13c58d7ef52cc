"""Analysis of SQL over tables that are known by their columns alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType
from pyspark.sql.udf import UserDefinedFunction

from eddyline.catalyst.gateway import java_class, java_session, static, tree_pattern
from eddyline.catalyst.handles import Plan
from eddyline.catalyst.pipeline import new_alone
from eddyline.catalyst.plan_nodes import class_name, rdd_number, read_ahead
from eddyline.catalyst.rules_at_work import set_rule

_EXCLUDED: Final = "spark.sql.optimizer.excludedRules"

_UNREADABLE: Final = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in (
        "DecimalAggregates",  # has decimals added up as whole numbers of their last digit
        "PruneFilters",  # leaves nothing of a query whose condition is never true
        "PropagateEmptyRelation",
    )
)
"""Rules that the optimizer must not apply: what they leave says less of what was asked for."""

_DISTINCT: Final = re.compile(r"\bdistinct\b", re.IGNORECASE)


class AnalyzedQuery(NamedTuple):
    """The optimized plan of a query and its columns.

    ``asks_for_now`` is whether it asks for the current time or date, which the optimizer has made
    constants of: those of the analysis.
    """

    plan: Plan
    schema: StructType
    asks_for_now: bool


class Analyst:
    """A copy of a session in which some names are tables of given columns and no rows.

    It has the session's functions, settings and other tables as they are when it is made; later
    changes to one of the two are not seen by the other.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Mapping[str, StructType],
        constants: Mapping[str, DataType],
    ) -> None:
        """Copy a session; ``constants`` are functions without arguments, with their types."""
        self._copy = java_session(spark).cloneSession()
        set_rule(self._copy, None)  # queries are read as they are written
        excluded = self._copy.conf().get(_EXCLUDED, "")
        self._copy.conf().set(_EXCLUDED, ",".join([*filter(None, [excluded]), *_UNREADABLE]))
        self._leaves: dict[int, str] = {}
        self.asked_the_clock = False
        """Whether the last query asks for the current time or date, which is a constant then."""
        context = java_class("org.apache.spark.api.java.JavaSparkContext")(
            self._copy.sparkContext()
        )
        for name, schema in tables.items():
            nothing = context.emptyRDD().rdd()
            columns = static("org.apache.spark.sql.types.DataType", "fromJson")(schema.json())
            # Over an RDD: the optimizer would leave nothing of a local relation without rows.
            table = self._copy.internalCreateDataFrame(nothing, columns, False)  # noqa: FBT003 - no stream
            table.createOrReplaceTempView(name)
            self._leaves[int(nothing.id())] = name
        for name, kind in constants.items():
            function = UserDefinedFunction(_never_called, kind, name)
            self._copy.udf().registerPython(name, function._judf)

    def optimized(self, sql: str) -> AnalyzedQuery:
        """Return the optimized plan of a query.

        Raises PySpark's ``ParseException`` and ``AnalysisException``.
        """
        rows = self._copy.sql(sql)
        schema = StructType.fromJson(json.loads(rows.schema().json()))
        execution = rows.queryExecution()
        asks_for_now = bool(execution.analyzed().containsPattern(tree_pattern("CURRENT_LIKE")))
        if _DISTINCT.search(sql):
            execution = self._with_marks(execution)
        plan = Plan(execution.optimizedPlan())
        read_ahead(plan)
        return AnalyzedQuery(plan, schema, asks_for_now)

    def optimized_again(self, plan: Plan) -> Plan:
        """Return what the optimizer makes of a plan that was made of parts of an optimized one."""
        plan.java.setAnalyzed()
        again = Plan(self._copy.sessionState().optimizer().execute(plan.java))
        read_ahead(again)
        return again

    def _with_marks(self, execution: Any) -> Any:  # noqa: ANN401 - Py4J has no types
        """Return a plan whose aggregates of distinct values stay the single ones that they are.

        What they are about is in ``KnownNullable`` instead of what says that they are distinct.
        """
        try:
            marks = new_alone("DistinctMarks")
        except (Py4JError, TypeError):  # nothing can be compiled
            return execution
        marked = marks.apply(execution.analyzed())
        mode = static("org.apache.spark.sql.execution.CommandExecutionMode", "SKIP")()
        return self._copy.sessionState().executePlan(marked, mode)

    def table_of(self, leaf: Plan) -> str | None:
        """Return the name of the table that a leaf of a plan is, None where it is none of them."""
        if not class_name(leaf).endswith(".LogicalRDD"):
            return None
        return self._leaves.get(rdd_number(leaf))


def _never_called() -> None:
    """Stand for a constant that is put in later."""
