"""Which of Catalyst's operators become which expression, and why the others do not."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from eddyline.blocks.decline import not_understood
from eddyline.expressions import (
    arithmetic_type,
    cast_never_fails,
    fault_of,
    is_floating,
    is_integer,
    is_text,
    type_of,
)
from eddyline.expressions.expression import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Case,
    Cast,
    Coalesce,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StringMatch,
    StringTest,
)
from eddyline.planner.read.translation.details import Details, EvaluationMode
from eddyline.planner.read.translation.translator import Leaf, Rule, Translator
from eddyline.planner.read.translation.tree import CatalystNode, Path

_LONGEST_LENGTH_TEST: Final = 1000  # characters; Spark makes such tests of short patterns


def translate(
    node: CatalystNode, leaf: Leaf, details: Details, *, time_zone: str = "UTC"
) -> Expression:
    """Translate a Catalyst expression into one that is evaluated exactly alike.

    ``leaf`` is asked first at every node, with its path from ``node``; what it
    returns stands for the whole subtree. It must answer for attributes, and must
    not answer for an expression whose value is a collated string. ``details`` is
    asked for what JSON leaves out. ``time_zone`` is the one in the Arrow types of
    the leaves' timestamps. Raises :class:`~eddyline.blocks.decline.DeclinedError` for
    whatever cannot be evaluated exactly.
    """
    translator = Translator(leaf, details, time_zone, _RULES)
    expression = translator.translated(node, ())
    fault = fault_of(expression)
    if fault is not None:
        raise not_understood(fault)
    return expression


# ---------------------------------------------------------------- logic


def _and(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    terms: list[Expression] = []
    for child in translator.children(node, path):
        terms.extend(child.terms if isinstance(child, And) else (child,))
    return And(tuple(terms))


def _or(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    terms: list[Expression] = []
    for child in translator.children(node, path):
        terms.extend(child.terms if isinstance(child, Or) else (child,))
    return Or(tuple(terms))


def _not(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    return Not(translator.child(node, path))


def _is_null(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    return IsNull(translator.child(node, path))


def _is_not_null(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    return Not(IsNull(translator.child(node, path)))


def _is_nan(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    return IsNaN(translator.child(node, path))


def _at_least_non_nulls(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    """Translate ``df.dropna()``: so many operands must be neither NULL nor NaN."""
    operands = translator.children(node, path)
    wanted = node.fields.get("n")
    if wanted not in (1, len(operands)):
        raise not_understood("a count of operands that are not NULL")
    tests: list[Expression] = []
    for operand in operands:
        present: Expression = Not(IsNull(operand))
        if is_floating(type_of(operand)):
            present = And((present, Not(IsNaN(operand))))
        tests.append(present)
    if len(tests) == 1:
        return tests[0]
    return And(tuple(tests)) if wanted == len(operands) else Or(tuple(tests))


def _case_when(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    parts = translator.children(node, path)
    branches = tuple(zip(parts[:-1:2], parts[1::2], strict=False))
    result = type_of(parts[1])
    otherwise = parts[-1] if len(parts) % 2 else Literal(None, result)
    return Case(branches, otherwise, result)


def _if(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    condition, value, otherwise = translator.children(node, path)
    return Case(((condition, value),), otherwise, type_of(value))


def _coalesce(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    operands = translator.children(node, path)
    return Coalesce(operands, type_of(operands[0]))


# ---------------------------------------------------------------- comparison


def _comparison(operator: ComparisonOperator) -> Rule:
    def rule(translator: Translator, node: CatalystNode, path: Path) -> Expression:
        left, right = translator.children(node, path)
        return Comparison(operator, left, right)

    return rule


def _at_least(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    """Translate ``>=``; ``length(s) >= 2``, a part of what Spark makes of LIKE 'a%b', as LIKE."""
    length, bound = node.children
    hidden = length.name == "Length" and translator.leaf(length, (*path, 0)) is None
    if hidden and bound.name == "Literal":
        operand = translator.child(length, (*path, 0))
        least = translator.literal(bound, (*path, 1)).value
        if isinstance(least, int) and least <= _LONGEST_LENGTH_TEST and is_text(type_of(operand)):
            return Like(operand, "_" * least + "%", "\\")
    return _comparison(ComparisonOperator.GREATER_OR_EQUAL)(translator, node, path)


def _in(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    operand, *options = translator.children(node, path)
    return In(operand, tuple(options))


def _in_set(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    operand = translator.child(node, path)
    members = translator.details.members(path)
    options = (translator.exact_literal(member, type_of(operand)) for member in members)
    return In(operand, tuple(options))


# ---------------------------------------------------------------- strings


def _string_test(test: StringTest) -> Rule:
    def rule(translator: Translator, node: CatalystNode, path: Path) -> Expression:
        needle = translator.constant_text(node.children[1], node.name)
        return StringMatch(test, translator.child(node, path), needle)

    return rule


def _like(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    pattern = translator.constant_text(node.children[1], "LIKE")
    return Like(translator.child(node, path), pattern, translator.details.escape(path))


# ---------------------------------------------------------------- numbers and casts


def _arithmetic(operator: ArithmeticOperator) -> Rule:
    def rule(translator: Translator, node: CatalystNode, path: Path) -> Expression:
        operands = translator.children(node, path)
        types = tuple(type_of(operand) for operand in operands)
        result = arithmetic_type(operator, types)
        if result is None:
            raise not_understood(f"{operator} of {', '.join(map(str, types))}")
        divides = operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.REMAINDER)
        may_fail = divides or is_integer(result)
        ansi = may_fail and _raises(translator, node, path, divides=divides)
        return Arithmetic(operator, operands, result, ansi)

    return rule


def _raises(translator: Translator, node: CatalystNode, path: Path, *, divides: bool) -> bool:
    """Return whether arithmetic raises where it has no result."""
    if "failOnError" in node.fields:  # of UnaryMinus and Abs
        return node.fields["failOnError"] is True
    mode = translator.details.evaluation_mode(path)
    if mode is EvaluationMode.TRY and not divides:
        raise not_understood(f"try_{node.name.lower()} of integers")
    return mode is EvaluationMode.ANSI  # division by zero is NULL in the other two


def _cast(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    operand = translator.child(node, path)
    target = translator.arrow_type(node)
    if type_of(operand) == target:
        return operand
    if cast_never_fails(type_of(operand), target):
        return Cast(operand, target, ansi=False)
    mode = translator.details.evaluation_mode(path)
    if mode is EvaluationMode.TRY:
        raise not_understood(f"try_cast to {target}")
    return Cast(operand, target, ansi=mode is EvaluationMode.ANSI)


def _same(translator: Translator, node: CatalystNode, path: Path) -> Expression:
    """Translate what tells the optimizer something and leaves the value as it is."""
    return translator.child(node, path)


_RULES: Final = MappingProxyType[str, Rule](
    {
        "Abs": _arithmetic(ArithmeticOperator.ABSOLUTE),
        "Add": _arithmetic(ArithmeticOperator.ADD),
        "And": _and,
        "AtLeastNNonNulls": _at_least_non_nulls,
        "CaseWhen": _case_when,
        "Cast": _cast,
        "Coalesce": _coalesce,
        "Contains": _string_test(StringTest.CONTAINS),
        "Divide": _arithmetic(ArithmeticOperator.DIVIDE),
        "EndsWith": _string_test(StringTest.ENDS_WITH),
        "EqualNullSafe": _comparison(ComparisonOperator.NULL_SAFE_EQUAL),
        "EqualTo": _comparison(ComparisonOperator.EQUAL),
        "GreaterThan": _comparison(ComparisonOperator.GREATER),
        "GreaterThanOrEqual": _at_least,
        "If": _if,
        "In": _in,
        "InSet": _in_set,
        "IsNaN": _is_nan,
        "IsNotNull": _is_not_null,
        "IsNull": _is_null,
        "KnownFloatingPointNormalized": _same,
        "KnownNotNull": _same,
        "KnownNullable": _same,
        "LessThan": _comparison(ComparisonOperator.LESS),
        "LessThanOrEqual": _comparison(ComparisonOperator.LESS_OR_EQUAL),
        "Like": _like,
        "Literal": Translator.literal,
        "Multiply": _arithmetic(ArithmeticOperator.MULTIPLY),
        "Not": _not,
        "Or": _or,
        "Remainder": _arithmetic(ArithmeticOperator.REMAINDER),
        "StartsWith": _string_test(StringTest.STARTS_WITH),
        "Subtract": _arithmetic(ArithmeticOperator.SUBTRACT),
        "UnaryMinus": _arithmetic(ArithmeticOperator.NEGATE),
    }
)
