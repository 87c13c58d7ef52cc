"""Which native expressions of Spark can raise an error on a row.

Spark guards an expression by short-circuit: in ``f(x) AND 1 / y > 2`` no row
that ``f`` rejects is divided. An argument of a block is computed before the
block decides anything, so only an expression that cannot raise may become one
where such a guard stands. Catalyst's own ``throwable`` flag is set on a handful
of classes only (it is False for an ANSI division), hence this list of what is
known to be safe; everything else counts as throwing.
"""

from __future__ import annotations

from typing import Final

from eddyline.spark.host import catalyst
from eddyline.spark.plan.chains import Tree

_NEVER: Final = frozenset(
    {
        "Alias",
        "And",
        "ArrayContains",
        "AtLeastNNonNulls",
        "AttributeReference",
        "BitwiseAnd",
        "BitwiseNot",
        "BitwiseOr",
        "BitwiseXor",
        "CaseWhen",
        "Coalesce",
        "Concat",
        "ConcatWs",
        "Contains",
        "CreateArray",
        "CreateNamedStruct",
        "DayOfMonth",
        "DayOfWeek",
        "DayOfYear",
        "EndsWith",
        "EqualNullSafe",
        "EqualTo",
        "GetStructField",
        "GreaterThan",
        "GreaterThanOrEqual",
        "Greatest",
        "Hour",
        "If",
        "In",
        "InSet",
        "IsNaN",
        "IsNotNull",
        "IsNull",
        "KnownFloatingPointNormalized",
        "KnownNotNull",
        "Least",
        "Length",
        "LessThan",
        "LessThanOrEqual",
        "Literal",
        "Lower",
        "MapKeys",
        "MapValues",
        "Minute",
        "Month",
        "NaNvl",
        "NamedArgumentExpression",
        "NormalizeNaNAndZero",
        "Not",
        "Or",
        "Quarter",
        "ScalarSubquery",  # runs before the first row, guarded or not
        "Second",
        "Size",
        "StartsWith",
        "StringTrim",
        "StringTrimLeft",
        "StringTrimRight",
        "Substring",
        "Upper",
        "Year",
    }
)

# Overflow is an infinity in floating point.
_SAFE_ON_FLOATS: Final = frozenset({"Abs", "Add", "Multiply", "Subtract", "UnaryMinus"})
_SAFE_UNLESS_ANSI: Final = _SAFE_ON_FLOATS | {"Divide", "Remainder", "IntegralDivide"}
# A remainder always fits, and a quotient of whole numbers does but for one by -1.
_BY_CONSTANT: Final = frozenset({"Remainder", "Pmod", "IntegralDivide"})
_FLOATS: Final = frozenset({'"double"', '"float"'})


def may_throw(tree: Tree) -> bool:
    """Whether the expression could raise on some row; True where it is not known."""
    return not _top_is_safe(tree) or any(may_throw(child) for child in tree.children)


def _top_is_safe(tree: Tree) -> bool:
    if tree.name in _NEVER:
        return True
    if tree.name == "Cast":
        return catalyst.always_casts(tree.handle) or not _is_ansi(tree)
    if tree.name in _SAFE_ON_FLOATS and catalyst.data_type(tree.handle) in _FLOATS:
        return True
    if tree.name in _SAFE_UNLESS_ANSI | _BY_CONSTANT:
        by_constant = tree.name in _BY_CONSTANT and _divides_by_a_constant(tree)
        return by_constant or not _is_ansi(tree)
    if tree.name == "Like":  # a pattern that ends in its escape character raises
        pattern = tree.children[1].node.fields.get("value")
        return isinstance(pattern, str) and catalyst.escape_character(tree.handle) not in pattern
    return False


def _divides_by_a_constant(tree: Tree) -> bool:
    """Whether the divisor is a constant by which every number can be divided."""
    value = tree.children[1].node.fields.get("value")
    try:
        return value is not None and float(str(value)) not in {0.0, -1.0}
    except ValueError:
        return False


def _is_ansi(tree: Tree) -> bool:
    if "failOnError" in tree.node.fields:  # of UnaryMinus and Abs, which have no mode
        return tree.node.fields["failOnError"] is True
    return catalyst.evaluation_mode(tree.handle) == "ANSI"
