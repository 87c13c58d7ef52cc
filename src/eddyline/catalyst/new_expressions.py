"""New expressions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    in_python,
    instance_of,
    java_class,
    jvm,
    new_identity,
    scala_none,
    scala_seq,
    static,
    static_near,
)
from eddyline.catalyst.handles import CatalystExpression
from eddyline.catalyst.pipeline import Later, maker


def attribute_of(named_expression: CatalystExpression) -> CatalystExpression:
    """Return the attribute by which a named expression is known above its node."""
    return CatalystExpression(named_expression.java.toAttribute())


def in_terms_of(
    expression: CatalystExpression,
    meant: Sequence[tuple[CatalystExpression, CatalystExpression]],
) -> CatalystExpression:
    """Return an expression with other expressions in place of parts of it, as attributes are."""
    if meant and isinstance(expression.java, Later):
        parts, others = ([item.java for item in side] for side in zip(*meant, strict=True))
        renamed = maker(expression.java.pipeline).inTermsOf(expression.java, parts, others)
        return CatalystExpression(renamed)
    renewed = static("scala.collection.immutable.Map$", "MODULE$").empty()
    for part, other in meant:
        renewed = renewed.updated(part.java, other.java)
    return CatalystExpression(expression.java.transformUp(renewed))  # a map is a partial function


def with_attributes(
    expression: CatalystExpression, others: Mapping[int, CatalystExpression]
) -> CatalystExpression:
    """Return an expression with other attributes, by the numbers of its own.

    Whatever it says of these beside, such as whether they may be NULL.
    """
    renewed = static("scala.collection.immutable.Map$", "MODULE$").empty()
    for leaf in in_python(expression.java.collectLeaves()):
        if instance_of(leaf, EXPRESSIONS + "AttributeReference"):
            other = others.get(int(leaf.exprId().id()))
            renewed = renewed if other is None else renewed.updated(leaf, other.java)
    return CatalystExpression(expression.java.transformUp(renewed))  # a map is a partial function


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


def struct_of(
    values: Sequence[CatalystExpression], names: Sequence[str] | None = None
) -> CatalystExpression:
    """Return a struct of expressions, never NULL itself.

    Without names its fields are called c0, c1 and so on.
    """
    text = static("org.apache.spark.sql.types.DataTypes", "StringType")
    literal = static(EXPRESSIONS + "Literal", "create")
    parts = []
    names = names or [f"c{number}" for number in range(len(values))]
    for name, value in zip(names, values, strict=True):
        parts += [literal(name, text), value.java]
    return CatalystExpression(java_class(EXPRESSIONS + "CreateNamedStruct")(scala_seq(parts)))


def literal_true() -> CatalystExpression:
    """Return the constant TRUE."""
    return CatalystExpression(_literal_in(id(jvm()), "TrueLiteral"))


def literal_false() -> CatalystExpression:
    """Return the constant FALSE."""
    return CatalystExpression(_literal_in(id(jvm()), "FalseLiteral"))


def no_value_like(attribute: CatalystExpression) -> CatalystExpression:
    """Return a NULL under the name, the identity and the type of an attribute."""
    make = static(EXPRESSIONS + "Literal", "create")
    return attribute_like(attribute, CatalystExpression(make(None, attribute.java.dataType())))


@functools.cache
def _literal_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return static(EXPRESSIONS + "Literal", name)()


def negation(condition: CatalystExpression) -> CatalystExpression:
    """Return the NOT of a condition."""
    return CatalystExpression(java_class(EXPRESSIONS + "Not")(condition.java))


def is_nan(value: CatalystExpression) -> CatalystExpression:
    """Return whether a number is NaN."""
    return CatalystExpression(java_class(EXPRESSIONS + "IsNaN")(value.java))


def case_when(
    branches: Sequence[CatalystExpression], otherwise: CatalystExpression
) -> CatalystExpression:
    """Return a CASE; ``branches`` are conditions and values, alternately."""
    parts = scala_seq(part.java for part in (*branches, otherwise))
    make = static(EXPRESSIONS + "CaseWhen", "createFromParser")
    return CatalystExpression(make(parts))


def coalesced(values: Sequence[CatalystExpression]) -> CatalystExpression:
    """Return the first of some values that is not NULL; those after it are not computed."""
    parts = scala_seq(value.java for value in values)
    return CatalystExpression(java_class(EXPRESSIONS + "Coalesce")(parts))


def where_needed(needed: CatalystExpression, value: CatalystExpression) -> CatalystExpression:
    """Return a value that is computed only where a condition is TRUE, and NULL elsewhere."""
    return _where(needed.java, value)


def attribute_like(attribute: CatalystExpression, value: CatalystExpression) -> CatalystExpression:
    """Return ``value`` under the name and the identity of an attribute."""
    java = attribute.java
    alias = java_class(EXPRESSIONS + "Alias")
    return CatalystExpression(
        alias(value.java, java.name(), java.exprId(), java.qualifier(), scala_none(), scala_seq([]))
    )


def is_null(value: CatalystExpression) -> CatalystExpression:
    """Return whether a value is NULL."""
    return CatalystExpression(java_class(EXPRESSIONS + "IsNull")(value.java))


def is_not_null(value: CatalystExpression) -> CatalystExpression:
    """Return whether a value is not NULL."""
    return CatalystExpression(java_class(EXPRESSIONS + "IsNotNull")(value.java))


def tried(value: CatalystExpression) -> CatalystExpression:
    """Return a value that is NULL where computing it would raise an error."""
    return CatalystExpression(java_class(EXPRESSIONS + "TryEval")(value.java))


def known_not_null(value: CatalystExpression) -> CatalystExpression:
    """Return a value marked as never NULL, which Spark cannot know by itself."""
    return CatalystExpression(java_class(EXPRESSIONS + "KnownNotNull")(value.java))


def known_nullable(value: CatalystExpression) -> CatalystExpression:
    """Return a value as it is, in a mark that Spark does not look through for a bare function."""
    return CatalystExpression(java_class(EXPRESSIONS + "KnownNullable")(value.java))


def equal(one: CatalystExpression, other: CatalystExpression) -> CatalystExpression:
    """Return whether two values are equal."""
    return CatalystExpression(java_class(EXPRESSIONS + "EqualTo")(one.java, other.java))


def narrowed(value: CatalystExpression, cast: CatalystExpression) -> CatalystExpression:
    """Return a value in the type that ``cast`` casts from; NULL where none there is equal to it.

    It is of the type that is cast to, and no two values of the one type are the same in the other.
    """
    java = cast.java
    make, way = java_class(EXPRESSIONS + "Cast"), static(EXPRESSIONS + "EvalMode", "TRY")()
    kind = java.child().dataType()
    narrow = make(value.java, kind, java.timeZoneId(), way)
    wide = make(narrow, java.dataType(), java.timeZoneId(), way)
    same = java_class(EXPRESSIONS + "EqualTo")(wide, value.java)
    nothing = static_near(kind, EXPRESSIONS + "Literal", "create", None, kind)
    return CatalystExpression(java_class(EXPRESSIONS + "If")(same, narrow, nothing))


def as_text(value: CatalystExpression, time_zone: str) -> CatalystExpression:
    """Return a value as Spark casts it to a text."""
    text = static("org.apache.spark.sql.types.DataTypes", "StringType")
    zone = static("scala.Option", "apply")(time_zone)
    way = static(EXPRESSIONS + "EvalMode", "LEGACY")()
    return CatalystExpression(java_class(EXPRESSIONS + "Cast")(value.java, text, zone, way))


def written_out(
    values: Sequence[CatalystExpression], time_zone: str, most: int
) -> CatalystExpression:
    """Return values as one text, with commas between: the first ``most`` characters of each."""
    text = static("org.apache.spark.sql.types.DataTypes", "StringType")
    literal = static(EXPRESSIONS + "Literal", "create")
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    parts = [literal(", ", text)]
    for value in values:
        start = java_class(EXPRESSIONS + "Substring")(
            as_text(value, time_zone).java, literal(1, whole), literal(most, whole)
        )
        parts.append(
            java_class(EXPRESSIONS + "Coalesce")(scala_seq([start, literal("NULL", text)]))
        )
    return CatalystExpression(java_class(EXPRESSIONS + "ConcatWs")(scala_seq(parts)))


def value_beside(present: CatalystExpression, item: CatalystExpression) -> CatalystExpression:
    """Return a named expression that is NULL wherever another one is, under its name and identity.

    Its own value is not computed there.
    """
    value = item.java.child()
    nothing = static(EXPRESSIONS + "Literal", "create")(None, value.dataType())
    beside = java_class(EXPRESSIONS + "IsNotNull")(present.java)
    guarded = java_class(EXPRESSIONS + "If")(beside, value, nothing)
    return attribute_like(item, CatalystExpression(guarded))


_FIRST_OF_PARTITION: Final = (1 << 33) - 1
"""The bits in which ``monotonically_increasing_id`` counts the rows of a partition."""


def in_first_row(value: CatalystExpression) -> CatalystExpression:
    """Return a value in the first row of each partition, and NULL in all others."""
    return _where(_first_row_in(id(jvm())), value)


def in_any_row(value: CatalystExpression) -> CatalystExpression:
    """Return a value as one that is not deterministic: Spark moves no filter on it below."""
    return _where(always_in(id(jvm())), value)


def _where(condition: Any, value: CatalystExpression) -> CatalystExpression:  # noqa: ANN401
    kind = value.java.dataType()
    nothing = static_near(kind, EXPRESSIONS + "Literal", "create", None, kind)
    return CatalystExpression(java_class(EXPRESSIONS + "If")(condition, value.java, nothing))


@functools.cache
def _first_row_in(_gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    number = java_class(EXPRESSIONS + "MonotonicallyIncreasingID")()
    within = java_class(EXPRESSIONS + "BitwiseAnd")(number, long_literal(_FIRST_OF_PARTITION))
    return java_class(EXPRESSIONS + "EqualTo")(within, long_literal(0))


@functools.cache
def always_in(_gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return what is true and not deterministic, in the JVM."""
    number = java_class(EXPRESSIONS + "MonotonicallyIncreasingID")()
    return java_class(EXPRESSIONS + "GreaterThanOrEqual")(number, long_literal(0))


def set_apart(value: CatalystExpression) -> CatalystExpression:
    """Return a value such that nothing in it is computed elsewhere, be it in a stream's plan.

    Spark computes what several expressions have in common once, but in no branch that is not taken
    for certain.
    """
    return _where(_any_partition_in(id(jvm())), value)


@functools.cache
def _any_partition_in(_gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    number = java_class(EXPRESSIONS + "SparkPartitionID")()
    kind = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    zero = static(EXPRESSIONS + "Literal", "create")(0, kind)
    return java_class(EXPRESSIONS + "GreaterThanOrEqual")(number, zero)


def no_bytes() -> CatalystExpression:
    """Return a NULL of the type of bytes."""
    kind = static("org.apache.spark.sql.types.DataTypes", "BinaryType")
    return CatalystExpression(static(EXPRESSIONS + "Literal", "create")(None, kind))


def long_literal(number: int) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a literal of 64 bits; Py4J sends small numbers as integers of 32."""
    return _long_in(id(jvm()), number)


@functools.lru_cache(64)
def _long_in(_gateway: int, number: int) -> Any:  # noqa: ANN401  # Py4J has no types
    parser = static("org.apache.spark.sql.catalyst.parser.CatalystSqlParser$", "MODULE$")
    return parser.parseExpression(f"{number}L")


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
    selector: CatalystExpression,
    choices: Sequence[tuple[CatalystExpression, Sequence[int]]],
    default: CatalystExpression | None = None,
) -> CatalystExpression:
    """Return the first of some values whose numbers include a selector, or else ``default``.

    Where none is given, this is NULL.

    A value is computed only where it is chosen.
    """
    make_if, among = java_class(EXPRESSIONS + "If"), java_class(EXPRESSIONS + "In")
    literal = static(EXPRESSIONS + "Literal", "create")
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    nothing = literal(None, choices[0][0].java.dataType())
    otherwise = nothing if default is None else default.java
    for value, numbers in reversed(choices):
        listed = scala_seq([literal(number, whole) for number in numbers])
        otherwise = make_if(among(selector.java, listed), value.java, otherwise)
    return CatalystExpression(otherwise)
