"""What a node of a plan is, and what is in it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eddyline.spark.host.catalyst.gateway import (
    EXPRESSIONS,
    LOGICAL,
    each_of,
    in_python,
    instance_of,
    java_class,
    json_of,
    jvm,
    scala_seq,
    static,
    texts_of,
    tree_pattern,
)
from eddyline.spark.host.catalyst.handles import CatalystExpression, Plan, remembered


@dataclass(frozen=True, slots=True)
class NodeText:
    """One node of a plan without its children, read in bulk.

    ``json`` is Catalyst's own form; ``deterministic`` says whether every
    expression of the node gives the same answer for the same row.
    """

    json: str
    deterministic: bool


@remembered
def class_name(plan: Plan) -> str:
    """Return the full class name of the top node."""
    return str(plan.java.getClass().getName())


@remembered
def children(plan: Plan) -> tuple[Plan, ...]:
    """Return the nodes right below."""
    return tuple(Plan(java) for java in in_python(plan.java.children()))


def with_children(plan: Plan, new: Sequence[Plan]) -> Plan:
    """Return the top node over other children."""
    return Plan(plan.java.withNewChildren(scala_seq(child.java for child in new)))


@remembered
def has_python_function(plan: Plan) -> bool:
    """Whether a Python function is called anywhere in the plan, subqueries included."""
    return bool(plan.java.containsPattern(tree_pattern("PYTHON_UDF")))


@remembered
def has_join(plan: Plan) -> bool:
    """Whether there is a join anywhere in the plan, subqueries included."""
    return bool(plan.java.containsPattern(tree_pattern("JOIN")))


@remembered
def has_semijoin(plan: Plan) -> bool:
    """Whether there is a semijoin or an antijoin anywhere in the plan, subqueries included."""
    return bool(plan.java.containsPattern(tree_pattern("LEFT_SEMI_OR_ANTI_JOIN")))


@remembered
def has_subquery(plan: Plan) -> bool:
    """Whether there is a subquery expression anywhere in the plan."""
    return bool(plan.java.containsPattern(tree_pattern("PLAN_EXPRESSION")))


@remembered
def read_node(plan: Plan) -> NodeText:
    """Read the top node alone: its JSON has one dummy child."""
    alone = plan.java.withNewChildren(_dummy_in(id(jvm())))
    return NodeText(json_of(alone), bool(alone.deterministic()))


@functools.cache
def _dummy_in(_gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    return scala_seq([java_class(LOGICAL + "OneRowRelation")()])


def condition(plan: Plan) -> CatalystExpression:
    """Return the condition of a ``Filter``."""
    return CatalystExpression(plan.java.condition())


def project_item(plan: Plan, index: int) -> CatalystExpression:
    """Return entry ``index`` of a ``Project``'s list."""
    return CatalystExpression(plan.java.projectList().apply(index))


def grouping(plan: Plan) -> list[CatalystExpression]:
    """Return what an ``Aggregate`` groups by."""
    return [CatalystExpression(java) for java in in_python(plan.java.groupingExpressions())]


def aggregated(plan: Plan) -> list[CatalystExpression]:
    """Return the output of an ``Aggregate``, each with its name."""
    return [CatalystExpression(java) for java in in_python(plan.java.aggregateExpressions())]


def expanded(plan: Plan) -> list[tuple[CatalystExpression, CatalystExpression]]:
    """Return the outputs of an ``Expand``, each with its value in the first of its projections."""
    values = in_python(plan.java.projections().apply(0))
    outputs = in_python(plan.java.output())
    return [
        (CatalystExpression(output), CatalystExpression(value))
        for output, value in zip(outputs, values, strict=True)
    ]


def project_list(plan: Plan) -> list[CatalystExpression]:
    """Return the entries of a ``Project``'s list."""
    return [CatalystExpression(java) for java in in_python(plan.java.projectList())]


def evaluated_function(plan: Plan, index: int) -> CatalystExpression:
    """Return ``PythonUDF`` number ``index`` of a node that evaluates Python functions."""
    return CatalystExpression(plan.java.udfs().apply(index))


@remembered
def evaluated_functions(plan: Plan) -> tuple[CatalystExpression, ...]:
    """Return the ``PythonUDF``s that the top node evaluates with Arrow."""
    name = class_name(plan).rpartition(".")[2]
    if name == "MapInArrow":
        return (CatalystExpression(plan.java.functionExpr()),)
    if name != "ArrowEvalPython":
        return ()
    return tuple(CatalystExpression(java) for java in in_python(plan.java.udfs()))


def cached(plan: Plan) -> list[Plan]:
    """Return the plan that filled the cache, if the top node reads one."""
    if not class_name(plan).endswith(".InMemoryRelation"):
        return []
    return [Plan(plan.java.cacheBuilder().logicalPlan())]


def result_attribute(plan: Plan, index: int) -> CatalystExpression:
    """Return the attribute that carries the result of function ``index``."""
    return CatalystExpression(plan.java.resultAttrs().apply(index))


@remembered
def join_type(plan: Plan) -> str:
    """Return the type of a ``Join``, as ``INNER``, ``LEFT OUTER`` or ``EXISTENCE``."""
    kind = plan.java.joinType()
    # The one type that no SQL says: an EXISTS or IN that is no condition by itself.
    if instance_of(kind, "org.apache.spark.sql.catalyst.plans.ExistenceJoin"):
        return "EXISTENCE"
    return str(kind.sql())


def existence(plan: Plan) -> CatalystExpression:
    """Return the attribute that says whether a row has a match, of an ``EXISTENCE`` join."""
    return CatalystExpression(plan.java.joinType().exists())


def join_condition(plan: Plan) -> CatalystExpression | None:
    """Return the condition of a ``Join``, None where there is none."""
    given = plan.java.condition()
    return CatalystExpression(given.get()) if given.isDefined() else None


@remembered
def outputs(plan: Plan) -> tuple[CatalystExpression, ...]:
    """Return the attributes of a plan's output."""
    return tuple(CatalystExpression(java) for java in in_python(plan.java.output()))


@remembered
def output_numbers(plan: Plan) -> tuple[int, ...]:
    """Return the numbers in the identities of a plan's output, in some calls for all."""
    identities = each_of(plan.java.output(), EXPRESSIONS + "NamedExpression", "exprId")
    return tuple(map(int, texts_of(each_of(identities, EXPRESSIONS + "ExprId", "id"))))


@remembered
def subqueries(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans of the subquery expressions in the top node."""
    if not has_subquery(plan):
        return ()
    return tuple(Plan(java) for java in in_python(plan.java.subqueries()))


def with_subqueries(plan: Plan, new: Sequence[Plan]) -> Plan | None:
    """Return the top node with other plans in its subquery expressions, in order.

    None if the node holds one where it is not found: neither a field that is an
    expression nor in a sequence or an option of expressions.
    """
    remaining = iter([replacement.java for replacement in new])
    fields = plan.java.productIterator().toArray(static("scala.reflect.ClassTag", "Any")())
    for position in range(len(fields)):
        field = fields[position]
        if instance_of(field, EXPRESSIONS + "Expression"):
            fields[position] = _with_plans(field, remaining)
        elif instance_of(field, "scala.Some") and instance_of(
            field.get(), EXPRESSIONS + "Expression"
        ):
            fields[position] = java_class("scala.Some")(_with_plans(field.get(), remaining))
        elif instance_of(field, "scala.collection.immutable.Seq"):
            elements = in_python(field) if field.size() else []
            if elements and all(instance_of(each, EXPRESSIONS + "Expression") for each in elements):
                fields[position] = scala_seq(_with_plans(each, remaining) for each in elements)
    if next(remaining, None) is not None:
        return None
    return Plan(plan.java.makeCopy(fields))


def _with_plans(java: Any, remaining: Iterator[Any]) -> Any:  # noqa: ANN401  # Py4J has no types
    if not java.containsPattern(tree_pattern("PLAN_EXPRESSION")):
        return java
    if instance_of(java, EXPRESSIONS + "PlanExpression"):
        return java.withNewPlan(next(remaining))
    return java.withNewChildren(
        scala_seq(_with_plans(child, remaining) for child in in_python(java.children()))
    )
