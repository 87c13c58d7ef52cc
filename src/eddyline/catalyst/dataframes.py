"""From DataFrames to plans and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Final, TypeGuard, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from eddyline.catalyst.dropped import loses_filters, whole_plan
from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    LOGICAL,
    dataframe_of,
    execution_of,
    fetched,
    in_python,
    instance_of,
    java_class,
    java_session,
    new_identity,
    scala_none,
    scala_seq,
    static,
    tree_pattern,
)
from eddyline.catalyst.handles import CatalystExpression, Plan
from eddyline.catalyst.new_expressions import aliased, attribute_like, in_terms_of
from eddyline.catalyst.new_plans import projected
from eddyline.catalyst.pipeline import Later, maker, put_off, questions
from eddyline.catalyst.plan_nodes import outputs, project_item
from eddyline.catalyst.raised_errors import raise_failures_of_subqueries
from eddyline.catalyst.rules_at_work import any_rules, plans_left_alone
from eddyline.quirks import scala_collections
from eddyline.quirks.catalyst_arguments import DATAFRAMES_ARE_SCALARS
from eddyline.quirks.classic_frames import ClassicDataFrame

_DOING: Final = frozenset(
    {"InsertIntoDir", "UnresolvedExecuteImmediate", "ExecuteImmediateQuery", "Call"}
)
"""Statements that Spark does not call commands, though they are; in 4.0 one has another name."""

_SCRIPT: Final = "org.apache.spark.sql.exceptions.SqlScriptingException"
"""What Spark 4.0 raises for BEGIN … END where a session does not let it run."""

_NAME: Final = re.compile(r"(\w+|`([^`]|``)+`)(\.(\w+|`([^`]|``)+`))*")
"""The name of a view or a table, as SQL writes it."""

_DROPPED: Final = "dropped_filters"


def is_classic(df: object) -> TypeGuard[ClassicDataFrame]:
    """Whether this is a DataFrame whose plan lives in a JVM of ours."""
    return isinstance(df, ClassicDataFrame)


def is_query(spark: SparkSession, sql: str) -> bool:
    """Whether a statement asks for rows; all others do something, at once.

    Raises PySpark's ``ParseException`` for what is no SQL.
    """
    parser = java_session(spark).sessionState().sqlParser()
    try:
        statements = [parser.parsePlan(sql)]
    except Py4JJavaError as error:
        if str(error.java_exception.getClass().getName()) == _SCRIPT:
            return False
        raise
    for statement in statements:
        # WITH stands before INSERT, too, and FROM before several of them.
        if any(instance_of(statement, LOGICAL + kind) for kind in ("UnresolvedWith", "Union")):
            statements += in_python(statement.children())
    return not any(map(_does_something, statements))


def _does_something(statement: Any) -> bool:  # noqa: ANN401  # Py4J has no types
    """Whether a node of a parsed statement is more than a question."""
    if str(statement.getClass().getSimpleName()) in _DOING:
        return True
    return any(instance_of(statement, LOGICAL + kind) for kind in ("Command", "ParsedStatement"))


def optimized_plan(df: ClassicDataFrame, *, as_written: bool = False) -> Plan:
    """Return the optimized logical plan, cached relations included, partitions not pruned.

    A streaming DataFrame has no such plan until it runs, so the optimizer is
    asked for one; and so it is where a session applies rules of ours, and the plan is wanted
    ``as_written``, without what these do. Filters that Spark drops are in it all the same, unless
    rules of ours were applied; :func:`dropped_filters` tells which these are.
    """
    execution = execution_of(df)
    if df.isStreaming or (as_written and any_rules()):
        optimizer = java_session(df.sparkSession).sessionState().optimizer()
        plan = execution.analyzed() if df.isStreaming else execution.withCachedData().clone()
        with plans_left_alone() if as_written else nullcontext():
            optimized = put_off(optimizer.execute(plan))
    else:
        optimized = put_off(execution.optimizedPlan())
    plan = _without_pruning(optimized)
    if not loses_filters(plan):
        return plan
    whole = whole_plan(fetched(optimized), java_session(df.sparkSession))
    if as_written or not any_rules():
        plan = _without_pruning(put_off(whole.plan))
    plan.told[_DROPPED] = whole.dropped
    return plan


def _without_pruning(optimized: Any) -> Plan:  # noqa: ANN401  # Py4J has no types
    if isinstance(optimized, Later):
        return Plan(maker(optimized.pipeline).withoutPruning(optimized))
    return Plan(optimized)


def dropped_filters(plan: Plan) -> tuple[str, ...]:
    """Return the filters that Spark dropped from an optimized plan, as texts."""
    return cast("tuple[str, ...]", plan.told.get(_DROPPED, ()))


def reads_the_clock(df: ClassicDataFrame) -> bool:
    """Whether the query asks for the current time or date; optimizing it fixes the answer."""
    return bool(execution_of(df).analyzed().containsPattern(tree_pattern("CURRENT_LIKE")))


def dataframe_like(original: ClassicDataFrame, plan: Plan) -> ClassicDataFrame:
    """Return a DataFrame over ``plan`` which to its users is the original one.

    Its columns keep the names, qualifiers (``df.alias("a")``) and identities of
    the original, and a hint on top of the original stays on top.
    """
    analyzed = put_off(execution_of(original).analyzed())
    optimized = _with_renewable_leaves(plan.java)
    java = java_class(LOGICAL + "Project")(_as_analyzed(analyzed, optimized), optimized)
    if str(analyzed.nodeName()) == "ResolvedHint":
        java = analyzed.withNewChildren(scala_seq([java]))
    # The parts were analyzed already, and some nodes that the optimizer makes are
    # unknown to the analyzer.
    java.setAnalyzed()
    return dataframe_of(original.sparkSession, java)


def _as_analyzed(analyzed: Any, optimized: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the analyzed output, column by column, in terms of the optimized plan's."""
    outputs = optimized.outputSet()
    if bool(analyzed.outputSet().subsetOf(outputs)):
        return analyzed.output()
    # The optimizer renamed some columns, as where it inlines a common table expression twice.
    columns = zip(in_python(analyzed.output()), in_python(optimized.output()), strict=True)
    return scala_seq(
        column
        if outputs.contains(column)
        else attribute_like(CatalystExpression(column), CatalystExpression(given)).java
        for column, given in columns
    )


def _with_renewable_leaves(plan: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a plan whose output the analyzer can give new identities, for a join with itself.

    It cannot where a column comes from a leaf whose scan was planned, as that of a table of
    version 2. Such a leaf gets new attributes, and a projection right above it that gives them
    the names and identities of the old ones. A projection above the whole plan would not do:
    ``a#1 AS a#1`` is no valid plan, nor what the optimizer makes of two that undo each other.
    """
    fixed = _fixed_leaves(plan)
    if not fixed:
        return plan
    renewed = static("scala.collection.immutable.Map$", "MODULE$").empty()
    for leaf in fixed:
        renewed = renewed.updated(leaf, _over_new_attributes(leaf))
    return plan.transformUp(renewed)  # a map is a partial function, so it can be a rule


def _fixed_leaves(plan: Any) -> list[Any]:  # noqa: ANN401  # Py4J has no types
    if isinstance(plan, Later):
        leaves = questions(plan.pipeline).fixedLeaves(plan)
        return [leaves.get(index) for index in range(leaves.size())]
    outputs = plan.outputSet()
    return [leaf for leaf in in_python(plan.collectLeaves()) if _is_fixed(leaf, outputs)]


def _is_fixed(leaf: Any, outputs: Any) -> bool:  # noqa: ANN401  # Py4J has no types
    """Whether the analyzer can give a leaf no new attributes though ``outputs`` has some of it."""
    multiple = "org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation"
    return not instance_of(leaf, multiple) and bool(leaf.outputSet().intersect(outputs).nonEmpty())


def _over_new_attributes(leaf: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the projection to a leaf's attributes over the same leaf with new ones."""
    old = outputs(Plan(leaf))
    new = [CatalystExpression(attribute.java.newInstance()) for attribute in old]
    pairs = scala_collections.zipped(leaf.output(), scala_seq(attribute.java for attribute in new))
    renewal = static(EXPRESSIONS + "AttributeMap$", "MODULE$").apply(pairs)
    items = [attribute_like(one, other) for one, other in zip(old, new, strict=True)]
    return projected(items, Plan(leaf.rewriteAttrs(renewal))).java


def dataframe_over(spark: SparkSession, plan: Plan) -> ClassicDataFrame:
    """Return a DataFrame over a plan."""
    plan.java.setAnalyzed()
    return dataframe_of(spark, plan.java)


def analyzed_plan(df: DataFrame) -> Plan:
    """Return the plan of a DataFrame before it is optimized; TypeError for one of Connect."""
    if not is_classic(df):
        raise TypeError("only a classic DataFrame has its plan at hand")
    return Plan(put_off(execution_of(df).analyzed()))


def exists_where(
    spark: SparkSession,
    rows: Plan,
    condition: CatalystExpression,
    outer: Sequence[CatalystExpression],
) -> CatalystExpression:
    """Return whether a row of a plan fits; ``outer`` are the other attributes of the condition.

    From Spark 4.0 on.
    """
    asked = spark.range(1).select(dataframe_over(spark, rows).exists().alias("v"))
    exists = aliased(project_item(analyzed_plan(asked), 0)).java
    refer = java_class(EXPRESSIONS + "OuterReference")
    outside = [(one, CatalystExpression(refer(one.java))) for one in outer]
    inside = in_terms_of(condition, outside)
    filtering = java_class(LOGICAL + "Filter")(inside.java, rows.java)
    attributes = scala_seq([one.java for one in outer])
    return CatalystExpression(exists.withNewPlan(filtering).withNewOuterAttrs(attributes))


def scalar_subquery(spark: SparkSession, plan: Plan) -> CatalystExpression:
    """Return the value of a plan of one row and one column, which runs before the query does."""
    raise_failures_of_subqueries()
    if isinstance(plan.java, Later):
        plan.java.setAnalyzed()
        return CatalystExpression(maker(plan.java.pipeline).scalarSubquery(plan.java))
    if not DATAFRAMES_ARE_SCALARS:
        plan.java.setAnalyzed()
        nothing, none = scala_seq([]), scala_none()
        make = java_class(EXPRESSIONS + "ScalarSubquery")
        java = make(plan.java, nothing, new_identity(plan.java), nothing, none, none)
        return CatalystExpression(java)
    value = dataframe_over(spark, plan).scalar()
    asked = analyzed_plan(spark.range(1).select(value.alias("value")))
    return aliased(project_item(asked, 0))


def query_or_table(spark: SparkSession, text: str) -> ClassicDataFrame:
    """Return the rows of a view or table, or of a query; ``ValueError`` for a command.

    Nothing runs. Raises PySpark's ``ParseException`` for what is no SQL, and its
    ``AnalysisException`` for what is not there.
    """
    if _NAME.fullmatch(text.strip()):
        found = spark.table(text.strip())
    elif is_query(spark, text):
        found = spark.sql(text)
    else:
        raise ValueError(f"neither a view nor a query, but a command: {text}")
    if not is_classic(found):
        raise TypeError(text)
    return found
