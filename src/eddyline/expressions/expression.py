"""Expressions over the columns and the user functions of a block, as frozen data.

An expression describes; it computes nothing. The values are Arrow's, the
meaning is Spark SQL's: three-valued logic, NaN equal to itself and larger than
every other number, strings compared by their UTF-8 bytes.

An expression is hashable and equal to another one that says the same, so a
user function called twice with the same arguments is one :class:`Call` in any
set or dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from enum import StrEnum

import pyarrow as pa


class ComparisonOperator(StrEnum):
    """How two values of one type are compared."""

    EQUAL = "="
    NULL_SAFE_EQUAL = "<=>"  # never NULL: two NULLs are equal
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


class ArithmeticOperator(StrEnum):
    """Arithmetic on two values of one type, or, for NEGATE and ABSOLUTE, on one."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    NEGATE = "negate"
    ABSOLUTE = "abs"


class StringTest(StrEnum):
    """What a string is tested for, against a constant string."""

    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of all expressions."""

    @property
    def children(self) -> tuple[Expression, ...]:
        """The expressions right below this one, as written."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Argument(Expression):
    """Column ``index`` of what the host hands to the block."""

    index: int
    type: pa.DataType


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant: a Python value that ``pyarrow.scalar(value, type)`` takes; None is NULL.

    Equal to another literal of the same type that is written the same: 0.0 is not
    -0.0 here, since a function may tell them apart, and NaN is NaN.
    """

    value: object
    type: pa.DataType

    def __eq__(self, other: object) -> bool:
        """Compare type and written value."""
        if not isinstance(other, Literal):
            return NotImplemented
        return self.type == other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        """Hash type and written value."""
        return hash((repr(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """User function number ``function`` of the block, applied to arguments."""

    function: int
    arguments: tuple[Expression, ...]
    type: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Kleene's AND of boolean terms; ValueError where there is none."""

    terms: tuple[Expression, ...]

    def __post_init__(self) -> None:
        """Check that there is a term."""
        if not self.terms:
            raise ValueError("AND needs a term")

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms."""
        return self.terms


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Kleene's OR of boolean terms; ValueError where there is none."""

    terms: tuple[Expression, ...]

    def __post_init__(self) -> None:
        """Check that there is a term."""
        if not self.terms:
            raise ValueError("OR needs a term")

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms."""
        return self.terms


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Kleene's NOT."""

    operand: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """Two operands of one type, compared as Spark compares them."""

    operator: ComparisonOperator
    left: Expression
    right: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """Left, then right."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """Arithmetic in ``type``.

    ``ansi`` says what happens on overflow and on division by zero: True raises,
    False wraps around or gives NULL, as Spark's ``spark.sql.ansi.enabled``.
    """

    operator: ArithmeticOperator
    operands: tuple[Expression, ...]
    type: pa.DataType
    ansi: bool

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands."""
        return self.operands


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """TRUE where the operand is NULL, else FALSE."""

    operand: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class IsNaN(Expression):
    """TRUE where the operand is NaN, else FALSE; FALSE for NULL, as in Spark."""

    operand: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class In(Expression):
    """SQL's IN over expressions of the operand's type, NULLs among the options included."""

    operand: Expression
    options: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand, then the options."""
        return (self.operand, *self.options)


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """SQL's LIKE against a constant pattern; ``escape`` is one character."""

    operand: Expression
    pattern: str
    escape: str

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class StringMatch(Expression):
    """A prefix, suffix or substring test against a constant, bytewise."""

    test: StringTest
    operand: Expression
    needle: str

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE WHEN: the value of the first branch whose condition is TRUE, else ``otherwise``.

    A branch's value is computed only for the rows that take it.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """Condition and value of every branch, then the default."""
        return (*(part for branch in self.branches for part in branch), self.otherwise)


@dataclass(frozen=True, slots=True)
class Coalesce(Expression):
    """The first operand that is not NULL; a later one is computed only where needed."""

    operands: tuple[Expression, ...]
    type: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands."""
        return self.operands


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """CAST to ``type``; what does not fit raises with ``ansi``, and is NULL or cut without it."""

    operand: Expression
    type: pa.DataType
    ansi: bool

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Failure(Expression):
    """What fails for each row that comes to it, under one of Spark's error conditions."""

    condition: str
    detail: str
    type: pa.DataType


def called_where(needed: Expression, call: Call) -> Case:
    """Return a call that is made only for rows for which a condition is TRUE, NULL elsewhere."""
    return Case(((needed, call),), Literal(None, call.type), call.type)


def call_of(value: Call | Case) -> Call:
    """Return the call of a value that is one, be it made for some rows only."""
    if isinstance(value, Call):
        return value
    call = value.branches[0][1]
    if not isinstance(call, Call):
        raise TypeError(f"{value} is no call that is made for some rows")
    return call


def require_boolean(predicate: Expression) -> None:
    """Raise ValueError where a predicate, or a term of its AND, OR and NOT, is not boolean."""
    if isinstance(predicate, And | Or | Not):
        for term in predicate.children:
            require_boolean(term)
        return
    a_type = getattr(predicate, "type", pa.bool_())  # the tests, which have none, are boolean
    if a_type != pa.bool_():
        raise ValueError(f"{predicate} is {a_type}, not boolean, and no predicate")


def with_arguments(expression: Expression, change: Callable[[Argument], Expression]) -> Expression:
    """Return an expression with every column replaced by what ``change`` gives for it."""
    if isinstance(expression, Argument):
        return change(expression)
    return with_children(expression, lambda child: with_arguments(child, change))


def with_children(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an expression with what is right below it replaced by what ``change`` gives for it."""

    def changed(part: object) -> object:
        if isinstance(part, Expression):
            return change(part)
        if isinstance(part, tuple):
            return tuple(map(changed, part))
        return part

    parts = {each.name: getattr(expression, each.name) for each in fields(expression)}
    new = {name: changed(part) for name, part in parts.items()}
    return replace(expression, **new)


def calls_in(expression: Expression) -> tuple[Call, ...]:
    """Every distinct call in an expression, inner calls before the calls that need them."""
    found: dict[Call, None] = {}

    def visit(node: Expression) -> None:
        for child in node.children:
            visit(child)
        if isinstance(node, Call):
            found.setdefault(node)

    visit(expression)
    return tuple(found)
