"""New expressions."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.spark.host.catalyst.gateway import (
    EXPRESSIONS,
    java_class,
    new_identity,
    scala_none,
    scala_seq,
    static,
)
from eddyline.spark.host.catalyst.handles import CatalystExpression


def attribute_of(named_expression: CatalystExpression) -> CatalystExpression:
    """Return the attribute by which a named expression is known above its node."""
    return CatalystExpression(named_expression.java.toAttribute())


def named(expression: CatalystExpression, name: str) -> CatalystExpression:
    """Return an expression under a new name and a new identity."""
    alias = java_class(EXPRESSIONS + "Alias")
    identity = new_identity(expression.java)
    return CatalystExpression(
        alias(expression.java, name, identity, scala_seq([]), scala_none(), scala_seq([]))
    )


def in_struct(expression: CatalystExpression) -> CatalystExpression:
    """Return a struct of one field, never NULL itself: ``a <=> b`` is ``struct(a) = struct(b)``."""
    text = static("org.apache.spark.sql.types.DataTypes", "StringType")
    literal = static(EXPRESSIONS + "Literal", "create")("v", text)
    make = java_class(EXPRESSIONS + "CreateNamedStruct")
    return CatalystExpression(make(scala_seq([literal, expression.java])))


def literal_true() -> CatalystExpression:
    """Return the constant TRUE."""
    return CatalystExpression(static(EXPRESSIONS + "Literal", "TrueLiteral")())


def attribute_like(attribute: CatalystExpression, value: CatalystExpression) -> CatalystExpression:
    """Return ``value`` under the name and the identity of an attribute."""
    java = attribute.java
    alias = java_class(EXPRESSIONS + "Alias")
    return CatalystExpression(
        alias(value.java, java.name(), java.exprId(), java.qualifier(), scala_none(), scala_seq([]))
    )


def known_not_null(value: CatalystExpression) -> CatalystExpression:
    """Return a value that is never NULL, though Spark cannot know it, as one that is not."""
    return CatalystExpression(java_class(EXPRESSIONS + "KnownNotNull")(value.java))


def value_beside(present: CatalystExpression, item: CatalystExpression) -> CatalystExpression:
    """Return a named expression that is NULL wherever another one is, under its name and identity.

    Its own value is not computed there.
    """
    value = item.java.child()
    nothing = static(EXPRESSIONS + "Literal", "create")(None, value.dataType())
    beside = java_class(EXPRESSIONS + "IsNotNull")(present.java)
    guarded = java_class(EXPRESSIONS + "If")(beside, value, nothing)
    return attribute_like(item, CatalystExpression(guarded))


def new_attribute(name: str, like: CatalystExpression) -> CatalystExpression:
    """Return a fresh nullable attribute of the type of an expression."""
    metadata = static("org.apache.spark.sql.types.Metadata", "empty")()
    identity = new_identity(like.java)
    attribute = java_class(EXPRESSIONS + "AttributeReference")
    java = attribute(name, like.java.dataType(), True, metadata, identity, scala_seq([]))  # noqa: FBT003
    return CatalystExpression(java)


def struct_field(struct: CatalystExpression, index: int) -> CatalystExpression:
    """Return field ``index`` of a struct."""
    return CatalystExpression(
        java_class(EXPRESSIONS + "GetStructField")(struct.java, index, scala_none())
    )


def aliased(named_expression: CatalystExpression) -> CatalystExpression:
    """Return what a named expression is a name for."""
    return CatalystExpression(named_expression.java.child())


def chosen(
    selector: CatalystExpression, choices: Sequence[tuple[CatalystExpression, Sequence[int]]]
) -> CatalystExpression:
    """Return the first of some values among whose numbers a selector is; NULL where it is in none.

    A value is computed only where it is chosen.
    """
    make_if, among = java_class(EXPRESSIONS + "If"), java_class(EXPRESSIONS + "In")
    literal = static(EXPRESSIONS + "Literal", "create")
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    otherwise = literal(None, choices[0][0].java.dataType())
    for value, numbers in reversed(choices):
        listed = scala_seq([literal(number, whole) for number in numbers])
        otherwise = make_if(among(selector.java, listed), value.java, otherwise)
    return CatalystExpression(otherwise)
