"""What reduces the rows of a plan by those of another, in the plan itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from eddyline.catalyst.gateway import (
    EXECUTION,
    EXPRESSIONS,
    LOGICAL,
    in_python,
    instance_of,
    java_class,
    jvm,
    scala_none,
    scala_seq,
    static,
    static_near,
    tree_pattern,
)
from eddyline.catalyst.handles import CatalystExpression, Plan, remembered
from eddyline.catalyst.new_expressions import always_in, long_literal
from eddyline.catalyst.pipeline import Later, questions
from eddyline.quirks.cached_plans import cached_plan
from eddyline.quirks.catalyst_arguments import AGGREGATES_TAKE_HINTS, ERRORS_HAVE_CLASSES

_SEED: Final = 42
"""What Spark's own hashes begin with."""

_LARGEST_HASH: Final = (1 << 31) - 1


def semijoin(
    left: Plan, right: Plan, condition: CatalystExpression, *, broadcast: bool = True
) -> Plan:
    """Return the rows of ``left`` that have a match in ``right``, which is broadcast or not."""
    kind = _join_type_in(id(jvm()), "leftsemi")
    some = java_class("scala.Some")(condition.java)
    hint = _hints(left=False, right=broadcast)
    return Plan(java_class(LOGICAL + "Join")(left.java, right.java, kind, some, hint))


def unless_any(left: Plan, right: Plan) -> Plan:
    """Return all rows of ``left`` where ``right``, which is broadcast, has none; else no row."""
    return _joined_with_any("leftanti", left, right)


def if_any(left: Plan, right: Plan) -> Plan:
    """Return all rows of ``left`` where ``right``, which is broadcast, has any; else no row."""
    return _joined_with_any("leftsemi", left, right)


def _joined_with_any(kind: str, left: Plan, right: Plan) -> Plan:
    join = java_class(LOGICAL + "Join")
    hint = _hints(left=False, right=True)
    return Plan(join(left.java, right.java, _join_type_in(id(jvm()), kind), scala_none(), hint))


def joined_over(join: Plan, sides: Sequence[Plan], broadcast: Sequence[bool]) -> Plan:
    """Return a join over other sides, some of which are to be broadcast."""
    left, right = sides
    java = join.java
    hint = java.hint()
    if any(broadcast):
        hint = _hints(left=broadcast[0], right=broadcast[1])
    make = java_class(LOGICAL + "Join")
    return Plan(make(left.java, right.java, java.joinType(), java.condition(), hint))


def joined_on(join: Plan, condition: CatalystExpression | None) -> Plan:
    """Return a join with another condition, None for none."""
    java = join.java
    given = scala_none() if condition is None else java_class("scala.Some")(condition.java)
    make = java_class(LOGICAL + "Join")
    return Plan(make(java.left(), java.right(), java.joinType(), given, java.hint()))


def _hints(*, left: bool, right: bool) -> object:
    return _hints_in(id(jvm()), left, right)


@functools.cache
def _hints_in(_gateway: int, left: bool, right: bool) -> object:  # noqa: FBT001 - a key
    broadcast = static(LOGICAL + "BROADCAST$", "MODULE$")
    info = java_class(LOGICAL + "HintInfo")(java_class("scala.Some")(broadcast))
    some = java_class("scala.Some")(info)
    none = scala_none()
    return java_class(LOGICAL + "JoinHint")(some if left else none, some if right else none)


def wanting_all(
    left: CatalystExpression, right: CatalystExpression, columns: Sequence[CatalystExpression]
) -> CatalystExpression:
    """Return a condition that is true of two equal values, and seems to need ``columns``.

    Spark prunes what a semijoin does not look at, and then the same input, joined above, is
    another plan: it would be read and broadcast twice.
    """
    most = java_class(EXPRESSIONS + "LessThanOrEqual")(left.java, right.java)
    hashed = java_class(EXPRESSIONS + "Murmur3Hash")(scala_seq(c.java for c in columns), _SEED)
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    zero = static_near(left.java, EXPRESSIONS + "Literal", "create", 0, whole)
    never = java_class(EXPRESSIONS + "EqualTo")(hashed, zero)
    return CatalystExpression(java_class(EXPRESSIONS + "Or")(most, never))


def all_columns_of(plan: Plan, columns: Sequence[CatalystExpression]) -> Plan:
    """Return the same rows behind a filter that passes all of them, and seems to need ``columns``.

    Spark moves no other filter below it, as it is not deterministic, and prunes nothing below it:
    what is used in two places stays the same plan in both.
    """
    hashed = java_class(EXPRESSIONS + "Murmur3Hash")(scala_seq(c.java for c in columns), _SEED)
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    most = static_near(plan.java, EXPRESSIONS + "Literal", "create", _LARGEST_HASH, whole)
    any_hash = java_class(EXPRESSIONS + "LessThanOrEqual")(hashed, most)
    never = java_class(EXPRESSIONS + "Not")(always_in(id(jvm())))
    passing = java_class(EXPRESSIONS + "Or")(never, any_hash)
    return Plan(java_class(LOGICAL + "Filter")(passing, plan.java))


def hashed(values: Sequence[CatalystExpression]) -> CatalystExpression:
    """Return Spark's 64-bit hash of some values, as its own runtime filters use it."""
    java = scala_seq(value.java for value in values)
    return CatalystExpression(java_class(EXPRESSIONS + "XxHash64")(java, _SEED))


def bloom_filter_of(value: CatalystExpression, plan: Plan, items: int, bits: int) -> Plan:
    """Return a plan of one row: a Bloom filter of the 64-bit values of an expression."""
    make = java_class(EXPRESSIONS + "aggregate.BloomFilterAggregate")
    aggregate = make(value.java, long_literal(items), long_literal(bits)).toAggregateExpression()
    identity = static(EXPRESSIONS + "NamedExpression", "newExprId")()
    alias = java_class(EXPRESSIONS + "Alias")
    named = alias(aggregate, "bloom", identity, scala_seq([]), scala_none(), scala_seq([]))
    node = java_class(LOGICAL + "Aggregate")
    hint = [scala_none()] if AGGREGATES_TAKE_HINTS else []
    return Plan(node(scala_seq([]), scala_seq([named]), plan.java, *hint))


@functools.cache
def _join_type_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return static("org.apache.spark.sql.catalyst.plans.JoinType", "apply")(name)


def might_contain(bloom: CatalystExpression, value: CatalystExpression) -> CatalystExpression:
    """Return whether a Bloom filter may hold a 64-bit value."""
    make = java_class(EXPRESSIONS + "BloomFilterMightContain")
    return CatalystExpression(make(bloom.java, value.java))


def no_error(text: CatalystExpression) -> CatalystExpression:
    """Return what is true where a text is NULL, and raises the text as an error elsewhere.

    It is no deterministic expression: Spark moves it below no join.
    """
    boolean = static("org.apache.spark.sql.types.DataTypes", "BooleanType")
    make = java_class(EXPRESSIONS + "RaiseError")
    if ERRORS_HAVE_CLASSES:
        untyped = make(text.java)
        failing = make(untyped.errorClass(), untyped.errorParms(), boolean)
    else:
        failing = make(text.java, boolean)
    fine = java_class(EXPRESSIONS + "IsNull")(text.java)
    return CatalystExpression(java_class(EXPRESSIONS + "If")(fine, always_in(id(jvm())), failing))


SAME_TWICE: Final = frozenset(
    {"Project", "Filter", "Join", "Aggregate", "Union", "LocalRelation", "Range", "Generate"}
)
"""Nodes that give the same rows whenever their children do."""


READ_AGAIN: Final = SAME_TWICE | {
    "DataSourceV2ScanRelation",
    "LogicalRDD",
    "OneRowRelation",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "Sort",
}
"""Nodes that are taken to do so as well, where Spark itself reads them again."""


@remembered
def gives_same_rows(plan: Plan) -> bool:
    """Whether a plan gives the same rows again, as far as Spark itself relies on that.

    As :func:`unrepeatable`, but for rows of an RDD, which Spark computes again whenever it loses
    them, and for sources that give a snapshot of a table.
    """
    if not isinstance(plan.java, Later):
        return unrepeatable(plan) is None
    node = questions(plan.java.pipeline).unrepeatable(plan.java, sorted(READ_AGAIN)).fetch()
    return node is None


@remembered
def unrepeatable(plan: Plan) -> str | None:
    """Return which node may give other rows the second time it is read; None if none does.

    Only what is known to be repeatable counts: files, ranges and rows of a plan, and nodes that
    compute on them without chance, without Python and without subqueries. Sums of floating
    point numbers differ where the rows come in another order.
    """
    if isinstance(plan.java, Later):
        asked = questions(plan.java.pipeline).unrepeatable(plan.java, sorted(SAME_TWICE))
        node = asked.fetch()
        return None if node is None else str(node)
    if not plan.java.deterministic():
        return "something not deterministic"
    for pattern in ("PYTHON_UDF", "PLAN_EXPRESSION"):
        if plan.java.containsPattern(tree_pattern(pattern)):
            return "a Python function" if pattern == "PYTHON_UDF" else "a subquery"
    return _unrepeatable(plan)


def _unrepeatable(plan: Plan) -> str | None:
    java = plan.java
    name = str(java.getClass().getSimpleName())
    if name == "InMemoryRelation":
        return unrepeatable(Plan(cached_plan(java)))
    if instance_of(java, EXECUTION + "LogicalRelation"):
        return None if instance_of(java.relation(), EXECUTION + "HadoopFsRelation") else "no file"
    if name not in SAME_TWICE:
        return name
    if name == "Aggregate" and any(
        str(column.dataType().typeName()) in {"float", "double"}
        for column in in_python(java.output())
    ):
        return "a sum of floating point numbers"
    nodes = (_unrepeatable(Plan(child)) for child in in_python(java.children()))
    return next((node for node in nodes if node is not None), None)


SAY_NOTHING: Final = frozenset({"IsNotNull", "Literal"})
"""Conditions that drop no rows but those whose keys are NULL."""


@remembered
def drops_rows(plan: Plan) -> bool:
    """Whether something in a plan says that rows are dropped, but those whose keys are NULL."""
    java = plan.java
    if isinstance(java, Later):
        return bool(questions(java.pipeline).dropsRows(java, sorted(SAY_NOTHING)))
    name = str(java.getClass().getSimpleName())
    if name == "Filter" and _says_more_than_not_null(java.condition()):
        return True
    if name == "Join":
        return True
    return any(drops_rows(Plan(child)) for child in in_python(java.children()))


def _says_more_than_not_null(condition: object) -> bool:
    name = str(condition.getClass().getSimpleName())  # type: ignore[attr-defined]
    if name == "And":
        return any(map(_says_more_than_not_null, in_python(condition.children())))  # type: ignore[attr-defined]
    return name not in SAY_NOTHING
