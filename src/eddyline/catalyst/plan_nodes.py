"""What a node of a plan is, and what is in it.

Over 450 lines: some forty questions of a few lines each, which nobody would look for elsewhere.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from eddyline.catalyst.expressions import is_deterministic
from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    LOGICAL,
    chained_in,
    fetched,
    in_python,
    instance_of,
    java_class,
    joined_in,
    json_of,
    jvm,
    scala_seq,
    static,
    tree_pattern,
)
from eddyline.catalyst.handles import CatalystExpression, Plan, remember, remembered
from eddyline.catalyst.pipeline import Later, maker, questions
from eddyline.catalyst.plan_data import (
    NodeFields,
    handle_of,
    read_plan,
    read_sequence,
    told_by_patterns,
)
from eddyline.quirks.cached_plans import cached_plan


@dataclass(frozen=True, slots=True)
class NodeText:
    """One node of a plan without its children, read in bulk.

    ``json`` is Catalyst's own form; ``deterministic`` says whether every
    expression of the node gives the same answer for the same row.
    """

    json: str
    deterministic: bool


_CLASS_NAME: Final = (("java.lang.Object", "getClass"), ("java.lang.Class", "getName"))

_NODES: Final = ("org.apache.spark.sql.catalyst.trees.TreeNode", "map")

_IDENTITIES: Final = (
    ("org.apache.spark.sql.catalyst.plans.QueryPlan", "output"),
    (EXPRESSIONS + "NamedExpression", "exprId"),
    (EXPRESSIONS + "ExprId", "id"),
)


@remembered
def class_name(plan: Plan) -> str:
    """Return the full class name of the top node."""
    read_plan(plan)
    if "class_name" in plan.told:
        return str(plan.told["class_name"])
    return str(chained_in(id(jvm()), *_CLASS_NAME).apply(plan.java))


SHOWN_FIELDS: Final = 25
"""Columns of a node that its text names; more are counted."""


def node_text(plan: Plan) -> str:
    """Return the line that Spark shows for the top node alone."""
    return str(plan.java.simpleString(SHOWN_FIELDS))


def tree_text(plan: Plan) -> str:
    """Return the plan as the tree that Spark shows, a line a node."""
    return str(plan.java.treeString()).rstrip("\n")


def read_ahead(plan: Plan) -> None:
    """Read the nodes of a whole plan in few calls, so that later questions about them need none.

    Some ten calls, and one for each node, where asking node by node takes eight for each. Leaves
    are not read, as they may have hundreds of columns; nor is a plan with expressions that are not
    deterministic, whose places in it have to be known.
    """
    gateway = id(jvm())
    names = str(joined_in(gateway, _NODES, *_CLASS_NAME).apply(plan.java)).split(",")
    if len(names) == 1 or not plan.java.deterministic():
        return
    leaves = static("scala.collection.immutable.Map$", "MODULE$").empty()
    for leaf in in_python(plan.java.collectLeaves()):
        leaves = leaves.updated(leaf, java_class(LOGICAL + "OneRowRelation")())
    fields = json.loads(json_of(plan.java.transformUp(leaves)))
    if len(fields) != len(names):
        return  # a node that is in a plan without being a child, as of a subquery
    pending = list(zip(fields, names, strict=True))[::-1]

    def read(node: Plan) -> None:
        of_node, name = pending.pop()
        remember(class_name, node, name)
        below = tuple(Plan(node.java.children().apply(n)) for n in range(of_node["num-children"]))
        remember(children, node, below)
        if below:
            remember(read_node, node, NodeText(json.dumps([of_node]), deterministic=True))
        for child in below:
            read(child)

    read(plan)


@remembered
def rdd_number(leaf: Plan) -> int:
    """Return the number of the RDD that a ``LogicalRDD`` reads."""
    kinds = (
        ("org.apache.spark.sql.execution.LogicalRDD", "rdd"),
        ("org.apache.spark.rdd.RDD", "id"),
    )
    return int(chained_in(id(jvm()), *kinds).apply(leaf.java))


@remembered
def children(plan: Plan) -> tuple[Plan, ...]:
    """Return the nodes right below."""
    read_plan(plan)
    if "children" in plan.told:
        return cast("tuple[Plan, ...]", plan.told["children"])
    return tuple(Plan(java) for java in in_python(plan.java.children()))


def with_children(plan: Plan, new: Sequence[Plan]) -> Plan:
    """Return the top node over other children."""
    rebuilt = Plan(plan.java.withNewChildren(scala_seq(child.java for child in new)))
    rebuilt.told |= {name: plan.told[name] for name in _OWN if name in plan.told}
    rebuilt.told["children"] = tuple(new)
    return rebuilt


_OWN: Final = ("class_name", "node_fields", "output_numbers", "join_type", "evaluated_functions")
"""What is known of a node that does not change with what is below it."""


def _has(plan: Plan, name: str, pattern: str) -> bool:
    """Whether something is anywhere in a plan, subqueries included."""
    if isinstance(plan.java, Later):
        patterns = int(questions(plan.java.pipeline).patterns(plan.java))
        plan.told |= told_by_patterns(patterns)
        return bool(plan.told[name])
    return bool(plan.java.containsPattern(tree_pattern(pattern)))


@remembered
def is_streaming(plan: Plan) -> bool:
    """Whether a plan reads a stream, or one micro-batch of it."""
    read_plan(plan)
    if (known := plan.told.get(is_streaming.__name__)) is not None:
        return bool(known)
    return bool(plan.java.isStreaming())


@remembered
def has_python_function(plan: Plan) -> bool:
    """Whether a Python function is called anywhere in the plan, subqueries included."""
    return _has(plan, "has_python_function", "PYTHON_UDF")


@remembered
def has_join(plan: Plan) -> bool:
    """Whether there is a join anywhere in the plan, subqueries included."""
    return _has(plan, "has_join", "JOIN")


@remembered
def has_semijoin(plan: Plan) -> bool:
    """Whether there is a semijoin or an antijoin anywhere in the plan, subqueries included."""
    return _has(plan, "has_semijoin", "LEFT_SEMI_OR_ANTI_JOIN")


@remembered
def has_limit(plan: Plan) -> bool:
    """Whether only so many rows of something are kept anywhere in the plan."""
    return _has(plan, "has_limit", "LIMIT")


def rows_wanted(plan: Plan, limit: int = 0) -> int:
    """Return how many rows of its child a node wants of each task, 0 for all.

    ``limit`` is how many are wanted of the node's own.
    """
    kind = class_name(plan).rpartition(".")[2]
    if kind == "LocalLimit":
        text = str(plan.java.limitExpr().toString())
        own = int(text) if text.isdecimal() else 0
        return min(own, limit) if own and limit else own or limit
    if kind == "Repartition":  # without a shuffle it only puts tasks together
        return 0 if not limit or bool(plan.java.shuffle()) else limit
    return limit if kind in {"GlobalLimit", "Project", "SubqueryAlias"} else 0


@remembered
def has_subquery(plan: Plan) -> bool:
    """Whether there is a subquery expression anywhere in the plan."""
    return _has(plan, "has_subquery", "PLAN_EXPRESSION")


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


def own_expressions(plan: Plan) -> list[CatalystExpression]:
    """Return all expressions of the top node, read in one crossing where calls are put off."""
    if isinstance(plan.java, Later):
        return [handle_of(expression) for expression in read_sequence(plan.java.expressions())]
    return [CatalystExpression(java) for java in in_python(plan.java.expressions())]


def project_item(plan: Plan, index: int) -> CatalystExpression:
    """Return entry ``index`` of a ``Project``'s list."""
    return CatalystExpression(plan.java.projectList().apply(index))


def grouping(plan: Plan) -> list[CatalystExpression]:
    """Return what an ``Aggregate`` groups by."""
    return [CatalystExpression(java) for java in in_python(plan.java.groupingExpressions())]


def aggregated(plan: Plan) -> list[CatalystExpression]:
    """Return the output of an ``Aggregate``, each with its name."""
    return [CatalystExpression(java) for java in in_python(plan.java.aggregateExpressions())]


def partitioned(plan: Plan) -> list[CatalystExpression]:
    """Return what a ``Window``, or what limits its groups, partitions rows by."""
    return [CatalystExpression(java) for java in in_python(plan.java.partitionSpec())]


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
    if (known := plan.told.get(evaluated_functions.__name__)) is not None:  # was read just now
        return cast("tuple[CatalystExpression, ...]", known)
    if name.endswith("MapInArrow"):
        return (CatalystExpression(plan.java.functionExpr()),)
    if name != "ArrowEvalPython":
        return ()
    return tuple(CatalystExpression(java) for java in in_python(plan.java.udfs()))


def called_in_one_go(function: CatalystExpression) -> CatalystExpression | None:
    """Return the function that another one gets its only argument from; None where none is."""
    given = in_python(function.java.children()) if function.java.children().size() == 1 else []
    udf = EXPRESSIONS + "PythonUDF"
    return next(
        (CatalystExpression(argument) for argument in given if instance_of(argument, udf)), None
    )


def evaluates_others(plan: Plan, beginning: str) -> bool:
    """Whether Python functions whose names begin otherwise may be evaluated for rows of a plan."""
    if isinstance(plan.java, Later):
        return bool(questions(plan.java.pipeline).evaluatesOthers(plan.java, beginning))
    return has_python_function(plan)


def cached(plan: Plan) -> list[Plan]:
    """Return the plan that filled the cache, if the top node reads one."""
    if not class_name(plan).endswith(".InMemoryRelation"):
        return []
    if isinstance(plan.java, Later):
        return [Plan(questions(plan.java.pipeline).cached(plan.java))]
    return [Plan(cached_plan(plan.java))]


def result_attribute(plan: Plan, index: int) -> CatalystExpression:
    """Return the attribute that carries the result of function ``index``."""
    return CatalystExpression(plan.java.resultAttrs().apply(index))


@remembered
def join_type(plan: Plan) -> str:
    """Return the type of a ``Join``, as ``INNER``, ``LEFT OUTER`` or ``EXISTENCE``."""
    read_plan(plan)
    if "join_type" in plan.told:
        return str(plan.told["join_type"])
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
    read_plan(plan)
    if isinstance(known := plan.told.get("node_fields"), NodeFields):
        conditions = known.fields.get("condition")
        if not conditions:
            return None
        handle = handle_of(conditions[0])
        if known.deterministic:
            remember(is_deterministic, handle, answer=True)
        return handle
    given = plan.java.condition()
    return CatalystExpression(given.get()) if given.isDefined() else None


def is_empty(leaf: Plan) -> bool:
    """Whether a leaf is a ``LocalRelation`` without rows: what the optimizer leaves of nothing."""
    return class_name(leaf).endswith(".LocalRelation") and bool(leaf.java.data().isEmpty())


def same_rows(one: Plan, other: Plan) -> bool:
    """Whether two plans are the same but for the identities of their columns."""
    return bool(one.java.sameResult(other.java))


def generator(plan: Plan) -> CatalystExpression:
    """Return what a ``Generate`` makes rows of."""
    return CatalystExpression(plan.java.generator())


def is_outer_generate(plan: Plan) -> bool:
    """Whether a ``Generate`` has a row of NULLs where there is nothing to generate."""
    return bool(plan.java.outer())


def generated(plan: Plan) -> tuple[CatalystExpression, ...]:
    """Return the attributes that a ``Generate`` adds."""
    return tuple(CatalystExpression(java) for java in in_python(plan.java.generatorOutput()))


def generated_schema(plan: Plan) -> str:
    """Return the columns that a ``Generate`` adds, under Spark's names, as JSON of a struct."""
    return str(plan.java.generator().elementSchema().json())


@remembered
def outputs(plan: Plan) -> tuple[CatalystExpression, ...]:
    """Return the attributes of a plan's output."""
    if isinstance(plan.java, Later):
        return tuple(handle_of(attribute) for attribute in read_sequence(plan.java.output()))
    return tuple(CatalystExpression(java) for java in in_python(plan.java.output()))


def output_names(plan: Plan) -> list[str]:
    """Return the names of a plan's output."""
    return [str(java.name()) for java in in_python(plan.java.output())]


@remembered
def output_numbers(plan: Plan) -> tuple[int, ...]:
    """Return the numbers in the identities of a plan's output, in one call for all."""
    if isinstance(plan.java, Later):
        numbers = str(questions(plan.java.pipeline).outputNumbers(plan.java))
    else:
        numbers = str(joined_in(id(jvm()), *_IDENTITIES).apply(plan.java))
    return tuple(map(int, numbers.split(","))) if numbers else ()


@remembered
def reference_numbers(plan: Plan) -> frozenset[int]:
    """Return the numbers in the identities of what the top node's own expressions refer to."""
    if isinstance(plan.java, Later):
        numbers = str(questions(plan.java.pipeline).referenceNumbers(plan.java))
        return frozenset(map(int, numbers.split(","))) if numbers else frozenset()
    return frozenset(int(java.exprId().id()) for java in in_python(plan.java.references().toSeq()))


def refers_to(plan: Plan, named: Sequence[CatalystExpression]) -> bool:
    """Whether a node's own expressions refer to the attributes of some named expressions."""
    used = plan.java.references()
    return any(bool(used.contains(expression.java.toAttribute())) for expression in named)


def output(plan: Plan, index: int) -> CatalystExpression:
    """Return one of the attributes of a plan's output."""
    return CatalystExpression(plan.java.output().apply(index))


def session_identity() -> str:
    """Return what the identities of all attributes of this JVM have beside their numbers."""
    return str(_jvm_identity_in(id(jvm())))


@functools.cache
def _jvm_identity_in(_gateway: int) -> str:
    return str(static(EXPRESSIONS + "NamedExpression", "newExprId")().jvmId().toString())


@remembered
def subqueries(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans of the subquery expressions in the top node."""
    if not has_subquery(plan):
        return ()
    return tuple(Plan(java) for java in in_python(plan.java.subqueries()))


def with_subqueries(plan: Plan, new: Sequence[Plan]) -> Plan | None:
    """Return the top node with other plans in its subquery expressions, in order.

    None if the node holds one elsewhere than in a field that is an expression, or in a
    sequence or an option of expressions.
    """
    javas = [replacement.java for replacement in new]
    if isinstance(plan.java, Later):
        made = maker(plan.java.pipeline).withSubqueries(plan.java, javas)
        return None if made.fetch() is None else Plan(made)
    remaining = iter(javas)
    # An array that is changed in place: at once, not later.
    fields = fetched(plan.java.productIterator().toArray(static("scala.reflect.ClassTag", "Any")()))
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
            if elements and all(
                instance_of(element, EXPRESSIONS + "Expression") for element in elements
            ):
                fields[position] = scala_seq(
                    _with_plans(element, remaining) for element in elements
                )
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
