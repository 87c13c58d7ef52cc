"""What an expression is, and what is in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    fetched,
    has_method,
    in_python,
    instance_of,
    is_java,
    java_class,
    json_of,
    scala_seq,
    static,
    texts_of,
    tree_pattern,
)
from eddyline.catalyst.handles import CatalystExpression, remembered
from eddyline.quirks.catalyst_arguments import PRETTY_OPTIONS


@remembered
def expression_json(expression: CatalystExpression) -> str:
    """Return an expression in Catalyst's own JSON."""
    return json_of(expression.java)


@remembered
def identity_number(attribute: CatalystExpression) -> int:
    """Return the number in an attribute's identity."""
    return int(attribute.java.exprId().id())


def expression_at(root: CatalystExpression, path: Sequence[int]) -> CatalystExpression:
    """Return the expression below ``root`` reached by taking child after child."""
    java = root.java
    for index in path:
        java = java.children().apply(index)
    return CatalystExpression(java)


def with_operands(
    expression: CatalystExpression, new: Sequence[CatalystExpression]
) -> CatalystExpression:
    """Return the expression over other children."""
    operands = scala_seq(child.java for child in new)
    return CatalystExpression(expression.java.withNewChildren(operands))


def conjunction(terms: Sequence[CatalystExpression]) -> CatalystExpression:
    """Return the AND of one or more conditions."""
    return _combined("And", terms)


def disjunction(terms: Sequence[CatalystExpression]) -> CatalystExpression:
    """Return the OR of one or more conditions."""
    return _combined("Or", terms)


def _combined(name: str, terms: Sequence[CatalystExpression]) -> CatalystExpression:
    combine = java_class(EXPRESSIONS + name)
    return CatalystExpression(functools.reduce(combine, (term.java for term in terms)))


@remembered
def is_deterministic(expression: CatalystExpression) -> bool:
    """Whether the expression gives the same answer for the same row."""
    return bool(expression.java.deterministic())


@remembered
def holds_subquery(expression: CatalystExpression) -> bool:
    """Whether the plan of a subquery is anywhere in an expression."""
    return bool(expression.java.containsPattern(tree_pattern("PLAN_EXPRESSION")))


@remembered
def holds_function(expression: CatalystExpression) -> bool:
    """Whether a Python function is called in an expression, or in a subquery in it."""
    return bool(expression.java.containsPattern(tree_pattern("PYTHON_UDF")))


def hidden_field(expression: CatalystExpression, field: str) -> str:
    """Return as text a field of an expression that Catalyst's own JSON leaves out.

    As ``evalMode`` of a cast or of arithmetic, which is ``LEGACY``, ``ANSI`` or ``TRY``.
    """
    if field not in expression.told:
        expression.told[field] = str(_plain(getattr(expression.java, field)()))
    return str(expression.told[field])


def hidden_texts(expression: CatalystExpression, field: str) -> list[str]:
    """Return a list of texts that Catalyst's own JSON leaves out, as ``patterns``."""
    if field not in expression.told:
        listed = in_python(getattr(expression.java, field)())
        expression.told[field] = [str(text) for text in listed]
    return cast("list[str]", expression.told[field])


def aggregate_mode(function: CatalystExpression) -> str:
    """Return what a sum or a mean does that its type cannot hold: its ``evalMode``.

    It stands in the function's context since PySpark 4.2.
    """
    sum_of = "org.apache.spark.sql.catalyst.expressions.aggregate."
    java = function.java
    if not any(instance_of(java, sum_of + name) for name in ("Sum", "Average")):
        raise TypeError(f"{pretty(function)} is no sum and no mean")
    in_context = has_method(java, "evalContext")
    return str((java.evalContext() if in_context else java).evalMode().toString())


@remembered
def always_casts(expression: CatalystExpression) -> bool:
    """Whether a ``Cast`` has a result for every value, as from integer to long."""
    operand = expression.java.child().dataType()
    return bool(static(EXPRESSIONS + "Cast", "canUpCast")(operand, expression.java.dataType()))


@functools.lru_cache(1_000)
def groups_in(pattern: str) -> int | None:
    """Return how many groups a regular expression of Java's has; None where it is not valid."""
    try:
        compiled = static("java.util.regex.Pattern", "compile")(pattern)
        return int(compiled.matcher("").groupCount())
    except Exception:  # noqa: BLE001 - PySpark raises one of several classes of its own, or Py4J's
        return None


@remembered
def literal_value(literal: CatalystExpression) -> object:
    """Return Catalyst's own value of a ``Literal``: numbers and bytes, all else as text."""
    return _plain(literal.java.value())


def constant_value(expression: CatalystExpression) -> object:
    """Return Catalyst's own value of an expression over no column, as :func:`literal_value`."""
    return _plain(fetched(expression.java.eval(None)))


def set_members(in_set: CatalystExpression) -> list[object]:
    """Return the members of an ``InSet``: Catalyst's own values, None for NULL.

    Numbers, booleans and bytes come as themselves, all else as text.
    """
    members = in_set.java.hset()
    values: list[object] = []
    if members.contains(None):
        members = members.excl(None)
        values.append(None)
    kind = str(in_set.java.child().dataType().typeName())
    if kind == "binary" or not members.size():
        return values + [_plain(member) for member in in_python(members.toSeq())]
    read = _READERS.get(kind, str)
    return values + [read(text) for text in texts_of(members)]


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "boolean": "true".__eq__,
    "date": int,
    "double": float,
    "float": float,
    "byte": int,
    "integer": int,
    "long": int,
    "short": int,
    "timestamp": int,
    "timestamp_ntz": int,
}


def _plain(value: object) -> object:
    return str(value.toString()) if is_java(value) else fetched(value)


@remembered
def data_type(expression: CatalystExpression) -> str:
    """Return the type as JSON."""
    return str(expression.java.dataType().json())


def same_value(one: CatalystExpression, other: CatalystExpression) -> bool:
    """Whether two expressions mean the same, whatever their looks."""
    if one is other:
        return True
    if "column" in one.told and "column" in other.told:  # what was read of attributes tells it
        return one.told["column"] == other.told["column"]
    return bool(one.java.semanticEquals(other.java))


@remembered
def hash_of_value(expression: CatalystExpression) -> int:
    """Return a number that is the same for all expressions that mean the same."""
    return int(expression.java.semanticHash())


def pretty(expression: CatalystExpression) -> str:
    """Return the text that Spark would show for a column of this expression.

    Without what the optimizer has put around parts of it, which nobody has written.
    """
    text = text_of_spark(expression)
    if any(f"{name.lower()}(" in text for name in _UNWRITTEN):
        return text_of_spark(CatalystExpression(_as_written(expression.java)))
    return text


@remembered
def text_of_spark(expression: CatalystExpression) -> str:
    """Return the text that Spark shows for an expression, whether it was written so or not."""
    prettify = static("org.apache.spark.sql.catalyst.util.package", "toPrettySQL")
    return str(prettify(expression.java, *PRETTY_OPTIONS))


def whole_text(expression: CatalystExpression) -> str:
    """Return the text by which Spark tells expressions apart in plans, with identities in it."""
    return str(expression.java.toString())


_UNWRITTEN: Final = (
    "KnownFloatingPointNormalized",
    "KnownNotNull",
    "KnownNullable",
    "NormalizeNaNAndZero",
)
"""Nodes that only the optimizer makes; each has one child, of the same type."""


def _as_written(java: Any) -> Any:  # noqa: ANN401 - of the JVM
    children = in_python(java.children())
    if str(java.getClass().getSimpleName()) in _UNWRITTEN:
        return _as_written(children[0])
    return java.withNewChildren(scala_seq(map(_as_written, children))) if children else java


@remembered
def qualifier(attribute: CatalystExpression) -> str:
    """Return the table or the alias that a query knows a column by; empty where it has none."""
    if not has_method(attribute.java, "qualifier"):
        return ""
    return str(attribute.java.qualifier().mkString("."))


@remembered
def is_nullable(expression: CatalystExpression) -> bool:
    """Whether an expression may be NULL, as far as Spark knows."""
    return bool(expression.java.nullable())
