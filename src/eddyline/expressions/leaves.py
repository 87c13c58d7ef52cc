"""The leaves: columns, constants, and calls of user functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from eddyline.expressions.catalyst_classes import CatalystClass
from eddyline.expressions.expression import Expression, Names, Types, with_children
from eddyline.expressions.program import Program
from eddyline.expressions.value_types import relabelled
from eddyline.expressions.vector import ArithmeticFailure, ErrorCondition, Scope, Vector


@dataclass(frozen=True, slots=True)
class Argument(Expression):
    """Column ``index`` of what the host hands to the block.

    The host's array may differ in type where only labels differ, as a timestamp in the
    session's time zone from one in UTC; it gets the declared ones.
    """

    index: int
    type: pa.DataType

    def __hash__(self) -> int:
        """Return a hash of the number alone: types rarely differ, and take longer to hash."""
        return hash(self.index)

    def fault(self, types: Types) -> None:
        """Return None: a column is what the host hands in."""

    def program(self) -> Program:
        """Return what looks a column up."""
        index, declared = self.index, self.type

        def run(scope: Scope) -> Vector:
            return Vector(relabelled(scope.argument(index), declared))

        return Program(run, declared)

    def text(self, names: Names) -> str:
        """Return the column's name."""
        return names.arguments[self.index]


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

    def fault(self, types: Types) -> str | None:
        """Refuse a value that Arrow does not take."""
        del types
        try:
            pa.scalar(self.value, self.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return f"the literal {self.value!r} as {self.type}"
        return None

    def program(self) -> Program:
        """Return what repeats the constant."""
        scalar = pa.scalar(self.value, self.type)

        def run(scope: Scope) -> Vector:
            return Vector(pa.repeat(scalar, len(scope)))

        return Program(run, self.type, constant=scalar if scalar.is_valid else None)

    def text(self, names: Names) -> str:
        """Return the value as Python writes it."""
        del names
        return "NULL" if self.value is None else repr(self.value)


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

    def fault(self, types: Types) -> None:
        """Return None: a function takes what it takes."""

    @property
    def may_fail(self) -> bool:
        """A user's code may raise."""
        return True

    def program(self) -> Program:
        """Return a program that asks the scope, which makes the call and remembers its results.

        The arguments are the scope's to evaluate.
        """
        declared = self.type

        def run(scope: Scope) -> Vector:
            vector = scope.call(self)
            if vector.values.type == declared:
                return vector
            return Vector(relabelled(vector.values, declared), vector.errors)

        return Program(run, declared, calls=True)

    def text(self, names: Names) -> str:
        """Return the function's name with the arguments."""
        arguments = ", ".join(argument.text(names) for argument in self.arguments)
        return f"{names.functions[self.function]}({arguments})"


@dataclass(frozen=True, slots=True)
class Failure(Expression):
    """Fails for each row that comes to it, under one of Spark's error conditions."""

    condition: str
    detail: str
    type: pa.DataType

    def fault(self, types: Types) -> None:
        """Return None: an error has any type."""

    @property
    def may_fail(self) -> bool:
        """It does."""
        return True

    def program(self) -> Program:
        """Return what fails for all rows."""
        error = ArithmeticFailure(ErrorCondition(self.condition), self.detail)

        def run(scope: Scope) -> Vector:
            rows = len(scope)
            return Vector(pa.nulls(rows, self.type), dict.fromkeys(range(rows), error))

        return Program(run, self.type)

    def text(self, names: Names) -> str:
        """Return the condition."""
        del names
        return f"<{self.condition}>"


def with_arguments(expression: Expression, change: Callable[[Argument], Expression]) -> Expression:
    """Return an expression with every column replaced by what ``change`` gives for it."""
    if isinstance(expression, Argument):
        return change(expression)
    return with_children(expression, lambda child: with_arguments(child, change))


def calls_in(expression: Expression) -> tuple[Call, ...]:
    """Every distinct call in an expression, inner calls before the calls that need them."""
    calls: dict[Call, None] = {}

    def visit(node: Expression) -> None:
        for child in node.children:
            visit(child)
        if isinstance(node, Call):
            calls.setdefault(node)

    visit(expression)
    return tuple(calls)


CATALYST: Final = (
    CatalystClass("Alias"),
    CatalystClass("AttributeReference"),
    CatalystClass("Literal", lambda given: given.literal()),
)
