"""New nodes over plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    LOGICAL,
    in_python,
    java_class,
    scala_none,
    scala_seq,
    static,
    static_near,
    type_from,
)
from eddyline.catalyst.handles import CatalystExpression, Plan
from eddyline.catalyst.new_expressions import attribute_like, is_null, long_literal
from eddyline.catalyst.pipeline import Later, maker
from eddyline.catalyst.plan_nodes import class_name, outputs
from eddyline.quirks import arrow_columns, scala_collections
from eddyline.quirks.catalyst_arguments import HAS_PROFILES, MAP_IN_ARROW

_BY_ROWS: Final = 100
"""The evaluation type of functions whose rows are pickled."""


def filtered(kept: CatalystExpression, child: Plan) -> Plan:
    """Return a ``Filter`` over ``child``."""
    return Plan(java_class(LOGICAL + "Filter")(kept.java, child.java))


def projected_like(pattern: Plan, child: Plan) -> Plan:
    """Return a ``Project`` of ``child`` to exactly the output of ``pattern``."""
    return Plan(java_class(LOGICAL + "Project")(pattern.java.output(), child.java))


def output_and_more(pattern: Plan, child: Plan, more: Sequence[CatalystExpression]) -> Plan:
    """Return a ``Project`` of ``child`` to the output of ``pattern`` and named expressions."""
    return _projected(pattern.java.output(), child, more)


def project_over(project: Plan, child: Plan, more: Sequence[CatalystExpression]) -> Plan:
    """Return a ``Project`` of the same list, and more, over another child."""
    return _projected(project.java.projectList(), child, more)


def _projected(
    names: Any,  # noqa: ANN401  # Py4J has no types; stays in the JVM, however wide
    child: Plan,
    more: Sequence[CatalystExpression],
) -> Plan:
    if more:
        names = scala_collections.joined(names, scala_seq(expression.java for expression in more))
    return Plan(java_class(LOGICAL + "Project")(names, child.java))


def evaluation_of(node: Plan, indexes: Sequence[int], child: Plan) -> Plan:
    """Return the node evaluating some of its Python functions only, over another child."""
    functions = scala_seq(node.java.udfs().apply(i) for i in indexes)
    results = scala_seq(node.java.resultAttrs().apply(i) for i in indexes)
    name = class_name(node)
    if name.endswith("ArrowEvalPython"):
        return Plan(java_class(name)(functions, results, child.java, node.java.evalType()))
    return Plan(java_class(name)(functions, results, child.java))


def arrow_evaluation(
    function: CatalystExpression, result: CatalystExpression, kind: int, child: Plan
) -> Plan:
    """Return an ``ArrowEvalPython`` of one function over ``child``."""
    return arrow_evaluations([function], [result], kind, child)


def arrow_evaluations(
    functions: Sequence[CatalystExpression],
    results: Sequence[CatalystExpression],
    kind: int,
    child: Plan,
) -> Plan:
    """Return an ``ArrowEvalPython`` of functions of one kind, with the attributes they give.

    One for each where Spark evaluates a single function of that kind at a time.
    """
    if kind in arrow_columns.ONE_AT_A_TIME:
        for function, result in zip(functions[:-1], results[:-1], strict=True):
            child = arrow_evaluation(function, result, kind, child)
        functions, results = functions[-1:], results[-1:]
    evaluate = java_class(LOGICAL + "ArrowEvalPython")
    ways = scala_seq(function.java for function in functions)
    return Plan(evaluate(ways, scala_seq(result.java for result in results), child.java, kind))


def row_evaluation(
    function: CatalystExpression, result: CatalystExpression, kind: int, child: Plan
) -> Plan:
    """Return what evaluates a function over ``child``, be it one of rows or of vectors."""
    if kind != _BY_ROWS:
        return arrow_evaluation(function, result, kind, child)
    evaluate = java_class(LOGICAL + "BatchEvalPython")
    return Plan(evaluate(scala_seq([function.java]), scala_seq([result.java]), child.java))


def projected(items: Sequence[CatalystExpression], child: Plan) -> Plan:
    """Return a ``Project`` of named expressions."""
    return Plan(java_class(LOGICAL + "Project")(scala_seq(item.java for item in items), child.java))


def distinct(child: Plan) -> Plan:
    """Return a ``Distinct`` of the rows of ``child``."""
    return Plan(java_class(LOGICAL + "Distinct")(child.java))


def joined_as(
    kind: str, join: Plan, left: Plan, right: Plan, condition: CatalystExpression | None = None
) -> Plan:
    """Return a ``Join`` of another kind, as ``"inner"`` or ``"leftanti"``, of other plans.

    It has the condition of the given one unless there is another ``condition``.
    """
    of_kind = static("org.apache.spark.sql.catalyst.plans.JoinType", "apply")(kind)
    given = join.java.condition()
    asked = given if condition is None else java_class("scala.Some")(condition.java)
    make = java_class(LOGICAL + "Join")
    return Plan(make(left.java, right.java, of_kind, asked, join.java.hint()))


def leaf_under_new_names(leaf: Plan) -> Plan:
    """Return the same leaf of a plan, whose columns have identities that no others have."""
    return Plan(leaf.java.newInstance())


def inner_join_of(left: Plan, right: Plan, condition: CatalystExpression) -> Plan:
    """Return an inner ``Join`` of two plans."""
    kind = static("org.apache.spark.sql.catalyst.plans.JoinType", "apply")("inner")
    hint = static(LOGICAL + "JoinHint", "NONE")()
    some = java_class("scala.Some")(condition.java)
    return Plan(java_class(LOGICAL + "Join")(left.java, right.java, kind, some, hint))


def one_row(items: Sequence[CatalystExpression]) -> Plan:
    """Return a plan of one row of named values."""
    return projected(items, Plan(java_class(LOGICAL + "OneRowRelation")()))


def union(plans: Sequence[Plan]) -> Plan:
    """Return the rows of all plans, whose columns are of the same types in the same places."""
    rows = scala_seq([plan.java for plan in plans])
    return Plan(java_class(LOGICAL + "Union")(rows, False, False))  # noqa: FBT003 - by place


def together(plans: Sequence[Plan]) -> tuple[Plan, list[tuple[int, ...]]] | None:
    """Return the rows of several plans as those of one, and where the columns of each are in it.

    The first column numbers the plan that a row comes from. Columns of one type share places,
    and a plan has NULL in those that it does not need. None where calls are not put off.
    """
    javas = [plan.java for plan in plans]
    if not all(isinstance(java, Later) for java in javas):
        return None
    makes = maker(javas[0].pipeline)
    places = str(makes.places(javas)).split(";")
    return Plan(makes.together(javas)), [tuple(map(int, numbers.split(","))) for numbers in places]


def in_one_partition(child: Plan) -> Plan:
    """Return a plan whose rows are all read in one task; nothing is shuffled."""
    return Plan(java_class(LOGICAL + "Repartition")(1, False, child.java))  # noqa: FBT003 - no shuffle


def shuffled_by(keys: Sequence[CatalystExpression], child: Plan) -> Plan:
    """Return the same rows, shuffled by the values of ``keys`` as a join by them would do it."""
    make = java_class(LOGICAL + "RepartitionByExpression")
    return Plan(make(scala_seq(key.java for key in keys), child.java, scala_none(), scala_none()))


def a_row_of_each_partition(child: Plan) -> Plan:
    """Return a row of each partition that has any, without its columns."""
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    one = static_near(child.java, EXPRESSIONS + "Literal", "create", 1, whole)
    return projected((), Plan(java_class(LOGICAL + "LocalLimit")(one, child.java)))


def shuffled_once(child: Plan, by: Sequence[int], *, in_one: bool) -> Plan:
    """Return a plan whose rows are shuffled by some of its columns, into one partition or many.

    Spark computes what is below once, wherever the plan stands in a query, as it makes the same of
    it everywhere: the shuffle looks at all columns, if only for NULL, so none is pruned. No filter
    may come from above, either: all that is above has to be an :func:`apart` of it.
    """
    looked_at = [
        column.java if place in by else is_null(column).java
        for place, column in enumerate(outputs(child))
    ]
    number = java_class("scala.Some")(1) if in_one else scala_none()
    make = java_class(LOGICAL + "RepartitionByExpression")
    return Plan(make(scala_seq(looked_at), child.java, number, scala_none()))


def apart(condition: CatalystExpression, child: Plan) -> Plan:
    """Return the rows for which a condition holds; neither it nor another filter passes below.

    It is one comparison that is not deterministic: of a conjunction Spark would push one part.
    """
    none_has = long_literal(1 << 62)
    least = java_class(EXPRESSIONS + "If")(condition.java, long_literal(0), none_has)
    number = java_class(EXPRESSIONS + "MonotonicallyIncreasingID")()
    kept = java_class(EXPRESSIONS + "GreaterThanOrEqual")(number, least)
    return filtered(CatalystExpression(kept), child)


def over_rows_of(node: Plan, rows: Plan) -> Plan:
    """Return a node of one child over other rows, whose columns stand for those of its child.

    They are in the same order, and of the same types.
    """
    of_thread = rows.java.pipeline if isinstance(rows.java, Later) else None
    if of_thread is not None:
        return Plan(maker(of_thread).overRowsOf(node.java, rows.java))
    (child,) = in_python(node.java.children())
    pairs = zip(outputs(Plan(child)), outputs(rows), strict=True)
    renamed = projected([attribute_like(known, column) for known, column in pairs], rows)
    return Plan(node.java.withNewChildren(scala_seq([renamed.java])))


def inlined(array: CatalystExpression, kept: Sequence[CatalystExpression], child: Plan) -> Plan:
    """Return a row of each struct of an array: ``kept`` columns of ``child``, and its fields."""
    generator = java_class(EXPRESSIONS + "Inline")(array.java)
    fields = static("org.apache.spark.sql.catalyst.types.DataTypeUtils", "toAttributes")(
        generator.elementSchema()
    )
    none, nothing = scala_none(), scala_seq([])
    make = java_class(LOGICAL + "Generate")
    rows = make(generator, nothing, False, none, fields, child.java)  # noqa: FBT003 - not outer
    return Plan(
        java_class(LOGICAL + "Project")(
            scala_collections.joined(scala_seq(k.java for k in kept), fields), rows
        )
    )


def generate_again(
    node: Plan, generator: CatalystExpression, child: Plan
) -> tuple[Plan, tuple[CatalystExpression, ...]]:
    """Return a ``Generate`` like another, of all rows of ``child``, and the attributes it adds."""
    none, nothing = scala_none(), scala_seq([])
    fields = static("org.apache.spark.sql.catalyst.types.DataTypeUtils", "toAttributes")(
        generator.java.elementSchema()
    )
    fields = in_python(fields)
    if node.java.outer():
        fields = [field.withNullability(True) for field in fields]  # noqa: FBT003 - Spark's
    make = java_class(LOGICAL + "Generate")
    rows = make(generator.java, nothing, node.java.outer(), none, scala_seq(fields), child.java)
    return Plan(rows), tuple(map(CatalystExpression, fields))


def mapped_in_arrow(call: CatalystExpression, schema: str, child: Plan) -> Plan:
    """Return a ``MapInArrow`` of a function over the record batches of ``child``.

    ``schema`` is the struct of its output, as JSON.
    """
    struct = type_from(schema, child.java)
    attributes = static("org.apache.spark.sql.catalyst.types.DataTypeUtils", "toAttributes")(struct)
    return Plan(
        java_class(LOGICAL + MAP_IN_ARROW)(
            call.java,
            attributes,
            child.java,
            False,  # noqa: FBT003 - no barrier
            *([scala_none()] if HAS_PROFILES else []),
        )
    )
