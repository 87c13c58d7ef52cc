"""What an expression is: frozen data, which answers all questions about itself.

An expression describes; it computes nothing until it is prepared. The values are Arrow's,
the meaning is Spark SQL's: three-valued logic, NaN equal to itself and larger than every other
number, strings compared by their UTF-8 bytes.

An expression is hashable and equal to another one that says the same, so a user function called
twice with the same arguments is one :class:`~eddyline.expressions.leaves.Call` in any set or
dictionary.

Each kind of expression stands in the file of its family, with all there is to know of it;
:mod:`eddyline.expressions.families` lists these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Final, TypeAlias

import pyarrow as pa

from eddyline.expressions.program import Program, Run

BOOLEAN: Final = pa.bool_()

Types: TypeAlias = tuple[pa.DataType, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """What the functions and the columns of a block are called, by number."""

    functions: Sequence[str]
    arguments: Sequence[str]


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of all expressions.

    One whose values are not booleans has a ``type``, as a field or as a constant of its class.
    """

    is_compound: ClassVar[bool] = False
    """Whether its text needs parentheses where it is an operand."""

    @property
    def children(self) -> tuple[Expression, ...]:
        """The expressions right below this one, as written."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def fault(self, types: Types) -> str | None:
        """Return why Spark's meaning of it is not known here, given the types of its children.

        None where it is evaluated exactly as Spark does.
        """
        del types
        return f"the expression {type(self).__name__}"

    @property
    def may_fail(self) -> bool:
        """Whether it fails on some row by itself, where none of its operands does."""
        return False

    def program(self) -> Program:
        """Return it prepared, with all that is below it."""
        operands = tuple(child.program() for child in self.children)
        return Program(
            self.run(operands), type_of(self), any(operand.calls for operand in operands)
        )

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return what it does with its children prepared."""
        raise NotImplementedError(f"no meaning for {type(self).__name__} of {len(operands)}")

    def text(self, names: Names) -> str:
        """Return it as SQL-like text, for people."""
        raise NotImplementedError(f"no text for {type(self).__name__}, whatever {names}")

    def part(self, names: Names) -> str:
        """Return its text as an operand of another expression."""
        return f"({self.text(names)})" if self.is_compound else self.text(names)


@dataclass(frozen=True, slots=True)
class OfOne(Expression):
    """Base of the expressions over one operand."""

    operand: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)


def render(expression: Expression, functions: Sequence[str], arguments: Sequence[str]) -> str:
    """Return an expression as SQL-like text.

    ``functions`` and ``arguments`` are the names of the block's functions and
    columns by number.

    >>> from eddyline.expressions import (
    ...     Argument, Call, Comparison, ComparisonOperator, IsNull, Literal, Not, Or
    ... )
    >>> text = Argument(0, pa.string())
    >>> score = Call(0, (text,), pa.float64())
    >>> high = Comparison(ComparisonOperator.GREATER, score, Literal(0.7, pa.float64()))
    >>> render(Or((high, Not(IsNull(text)))), ["score"], ["title"])
    'score(title) > 0.7 OR title IS NOT NULL'
    """
    return expression.text(Names(functions, arguments))


def type_of(expression: Expression) -> pa.DataType:
    """Return the type of an expression's results."""
    return getattr(expression, "type", BOOLEAN)


def fault_of(expression: Expression) -> str | None:
    """Return None if an expression is evaluated exactly as Spark does, else a short reason.

    The arguments of calls are looked at too. The reason names the first thing
    found, parents before children, for ``explain`` to show.
    """
    for node in expression.walk():
        reason = node.fault(tuple(map(type_of, node.children)))
        if reason is not None:
            return reason
    return None


def cannot_fail(expression: Expression) -> bool:
    """Tell whether an expression has a value, or NULL, for every row."""
    return not any(node.may_fail for node in expression.walk())


def with_children(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an expression with what is right below it replaced by what ``change`` gives for it."""

    def changed(part: object) -> object:
        if isinstance(part, Expression):
            return change(part)
        if isinstance(part, tuple):
            return tuple(map(changed, part))
        return part

    parts = {field.name: getattr(expression, field.name) for field in fields(expression)}
    new = {name: changed(part) for name, part in parts.items()}
    return replace(expression, **new)
