"""Translates conditions over Python functions, as Connect sends them, into a block's expressions.

Catalyst casts operands until their types agree before it evaluates anything. A client sees none of
that, so only what is plain is translated: operands of one type, numbers that are widened without
loss, constants that have the same value in the type that they are compared with. Whatever else a
condition has in it leaves it to Spark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from eddyline import expressions as ex
from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.blocks.decline import DeclinedError, DeclineReason, not_understood
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.connect.constants import (
    LITERALS,
    as_type,
    constant,
    constant_or_same,
    constant_text,
    day,
    one_type,
    own_literal,
    same_constant,
    widened,
)
from eddyline.connect.messages import (
    COMPARISONS,
    LOGIC,
    Expression,
    Holders,
    is_leaf,
    is_plain,
    key_of,
    named,
    python_holders,
    text_of,
)
from eddyline.connect.sent_functions import PythonCall, python_call, user_function
from eddyline.expressions.strings import StringTest

_OPERATORS: Final = {
    "==": ex.ComparisonOperator.EQUAL,
    **{str(operator): operator for operator in ex.ComparisonOperator if str(operator) != "="},
}

_ARITHMETIC: Final = {
    "+": ex.ArithmeticOperator.ADD,
    "-": ex.ArithmeticOperator.SUBTRACT,
    "*": ex.ArithmeticOperator.MULTIPLY,
    "/": ex.ArithmeticOperator.DIVIDE,
    "%": ex.ArithmeticOperator.REMAINDER,
}

_TEXT_TESTS: Final = {
    "startsWith": StringTest.STARTS_WITH,
    "endsWith": StringTest.ENDS_WITH,
    "contains": StringTest.CONTAINS,
}


def asked_about(condition: Expression) -> dict[bytes, Expression]:
    """Return the expressions whose types must be known to translate a condition.

    Those are the arguments of its functions, and what Spark computes beside them.
    """
    asked: dict[bytes, Expression] = {}
    python = python_holders(condition)
    pending = [condition]
    while pending:
        expression = pending.pop()
        call = python_call(expression)
        if call is not None:
            wanted = list(call.values)
            pending.extend(value for value in wanted if value in python)
        elif expression in python:
            wanted = []
            pending.extend(named(expression)[1])
        else:
            wanted = list(_with_operands(expression))
        asked |= {key_of(one): one for one in wanted}
    return asked


def _with_operands(native: Expression) -> Iterator[Expression]:
    """Yield a native expression and all that combines or compares to it; no constants."""
    pending = [native]
    while pending:
        expression = pending.pop()
        if not expression.HasField("literal"):
            yield expression
        name, operands = named(expression)
        if name in COMPARISONS | LOGIC:
            pending.extend(operands)


class ConditionReader:
    """Translates conditions, and gathers the contents of their block on the way.

    ``types`` are Spark's types, as JSON, of what was :func:`asked_about`, by its key; ``ansi`` is
    whether arithmetic raises where it has no result. Where conditions are ``guarded``, Spark may
    compute the arguments of some functions for fewer rows than the block does. What cannot be
    translated raises :class:`DeclinedError`, and leaves nothing of itself in the contents.
    """

    def __init__(
        self,
        types: Mapping[bytes, str],
        settings: SessionSettings,
        *,
        ansi: bool,
        guarded: bool = False,
    ) -> None:
        self.arguments: list[Expression] = []
        self.functions: list[UserFunction] = []
        self._types = types
        self._settings = settings
        self._ansi = ansi
        self._guarded = self._careful = guarded
        self._places: dict[bytes, int] = {}
        self._python: Holders | None = None  # in what is translated now

    def condition(self, expression: Expression, *, guarded: bool = False) -> ex.Expression:
        """Translate a condition that depends on functions; this one may be ``guarded`` alone."""
        with self._reading(expression, guarded=guarded):
            made = self._expression(expression)
            if ex.type_of(made) != pa.bool_():
                raise not_understood(f"{text_of(expression)} is no condition")
            reason = ex.reason_not_to_evaluate(made)
            if reason is not None:
                raise not_understood(reason)
        return made

    def value(self, expression: Expression) -> ex.Call:
        """Translate a call of a Python function."""
        with self._reading(expression):
            call = python_call(expression)
            if call is None:
                raise not_understood(text_of(expression))
            return self._call(call)

    @contextlib.contextmanager
    def _reading(self, expression: Expression, *, guarded: bool = False) -> Iterator[None]:
        """Take back what was gathered where an expression cannot be translated."""
        arguments, functions = len(self.arguments), len(self.functions)
        self._python = python_holders(expression)
        self._careful = self._guarded or guarded
        try:
            yield
        except DeclinedError as declined:
            del self.arguments[arguments:], self.functions[functions:]
            self._places = {key: n for key, n in self._places.items() if n < arguments}
            raise declined.of(text_of(expression)) from None

    def _has_python(self, expression: Expression) -> bool:
        return self._python is not None and expression in self._python

    def _expression(self, expression: Expression) -> ex.Expression:
        call = python_call(expression)
        if call is not None:
            return self._call(call)
        if expression.HasField("literal"):
            return own_literal(expression, self._settings.time_zone)
        if (written := day(expression)) is not None:
            return ex.Literal(written, pa.date32())
        if not self._has_python(expression):
            return self._native(expression)
        name, operands = named(expression)
        if name not in _MAKERS:
            what = name or str(expression.WhichOneof("expr_type")).replace("_", " ")
            raise not_understood(f"{what} over a Python function")
        make: Callable[[str, Sequence[Expression]], ex.Expression]
        make = getattr(self, f"_{_MAKERS[name]}")
        return make(name, operands)

    def _call(self, call: PythonCall) -> ex.Call:
        values = tuple(
            self._expression(value) if self._has_python(value) else self._given(value)
            for value in call.values
        )
        types = tuple(self._type(value) for value in call.values)
        for value, kind, made in zip(call.values, types, values, strict=True):
            self._travelling(value, kind)
            if ex.type_of(made) != arrow_type(kind, self._settings.time_zone):
                raise not_understood(f"the type of {text_of(value)}")
        function = user_function(call, types, self._settings)
        if function not in self.functions:
            self.functions.append(function)
        number = self.functions.index(function)
        return ex.Call(number, values, arrow_type(function.return_type, self._settings.time_zone))

    def _given(self, value: Expression) -> ex.Argument:
        """Return what carries an argument of a function."""
        if not is_plain(value):
            raise not_understood(f"{text_of(value)}, in which there may be Python functions")
        return self._native(value) if self._careful else self._argument(value)

    def _argument(self, expression: Expression) -> ex.Argument:
        """Return what carries the value of a native expression to the block."""
        kind = self._type(expression)
        self._travelling(expression, kind)
        key = key_of(expression)
        if key not in self._places:
            self._places[key] = len(self.arguments)
            self.arguments.append(expression)
        return ex.Argument(self._places[key], arrow_type(kind, self._settings.time_zone))

    def _native(self, expression: Expression) -> ex.Argument:
        """Return what carries a native operand, which must not raise.

        Spark might never have evaluated it, where another operand decides.
        """
        if not self._never_raises(expression):
            raise DeclinedError(DeclineReason.MAY_THROW, text_of(expression))
        return self._argument(expression)

    def _never_raises(self, expression: Expression) -> bool:
        if is_leaf(expression):
            return True
        name, operands = named(expression)
        if name in {"and", "or", "not"}:
            return all(
                self._never_raises(operand) and self._type(operand) == '"boolean"'
                for operand in operands
            )
        if name in {"isNull", "isNotNull"}:
            return all(map(self._never_raises, operands))
        if name in COMPARISONS and all(map(is_leaf, operands)):
            kinds = {self._type(operand) for operand in operands}
            return len(kinds) == 1 or kinds <= _NUMBERS
        return False

    def _type(self, expression: Expression) -> str:
        """Return Spark's type, as JSON, of what the server was asked about."""
        known = self._types.get(key_of(expression))
        if known is not None:
            return known
        kind = expression.literal.WhichOneof("literal_type") if is_leaf(expression) else None
        if kind in LITERALS:
            return LITERALS[kind]
        raise not_understood(f"the type of {text_of(expression)} is not known")

    @staticmethod
    def _travelling(expression: Expression, kind: str) -> None:
        if not can_travel(kind):
            detail = f"{text_of(expression)} is {kind}"
            raise DeclinedError(DeclineReason.UNSUPPORTED_TYPE, detail)

    # ------------------------------------------------------------ operators

    def _connected(self, name: str, operands: Sequence[Expression]) -> ex.Expression:
        terms: list[ex.Expression] = []
        make = ex.And if name == "and" else ex.Or
        for term in map(self._expression, operands):
            terms.extend(term.terms if isinstance(term, make) else (term,))
        return make(tuple(terms))

    def _negated(self, _: str, operands: Sequence[Expression]) -> ex.Expression:
        return ex.Not(self._expression(operands[0]))

    def _null_test(self, name: str, operands: Sequence[Expression]) -> ex.Expression:
        test = ex.IsNull(self._expression(operands[0]))
        return test if name == "isNull" else ex.Not(test)

    def _nan_test(self, _: str, operands: Sequence[Expression]) -> ex.Expression:
        return ex.IsNaN(self._expression(operands[0]))

    def _compared(self, name: str, operands: Sequence[Expression]) -> ex.Expression:
        left, right = self._alike(*map(self._expression, operands))
        return ex.Comparison(_OPERATORS[name], left, right)

    def _member(self, _: str, operands: Sequence[Expression]) -> ex.Expression:
        searched, *options = map(self._expression, operands)
        kind = ex.type_of(searched)
        return ex.In(searched, tuple(constant(option, kind) for option in options))

    def _computed(self, name: str, operands: Sequence[Expression]) -> ex.Expression:
        operator = _ARITHMETIC[name]
        made = [self._expression(operand) for operand in operands]
        if len(made) != 2:  # noqa: PLR2004 - a sign
            raise not_understood(f"{name} of {len(made)} operands")
        kind = widened(*map(ex.type_of, made))
        if operator is ex.ArithmeticOperator.DIVIDE:
            kind = pa.float64()  # Spark divides whole numbers as doubles
        sides = tuple(as_type(side, kind) for side in made)
        result = ex.arithmetic_type(operator, tuple(map(ex.type_of, sides)))
        if result is None:
            raise not_understood(f"{name} of {kind}")
        return ex.Arithmetic(operator, sides, result, self._ansi)

    def _chosen(self, _: str, operands: Sequence[Expression]) -> ex.Expression:
        made = [self._expression(operand) for operand in operands]
        whens = list(zip(made[0::2], made[1::2], strict=False))
        values = [value for _, value in whens] + (made[-1:] if len(made) % 2 else [])
        kind = one_type(values)
        otherwise = made[-1] if len(made) % 2 else ex.Literal(None, kind)
        return ex.Case(
            tuple((condition, constant_or_same(value, kind)) for condition, value in whens),
            constant_or_same(otherwise, kind),
            kind,
        )

    def _first_known(self, _: str, operands: Sequence[Expression]) -> ex.Expression:
        made = [self._expression(operand) for operand in operands]
        kind = one_type(made)
        return ex.Coalesce(tuple(constant_or_same(value, kind) for value in made), kind)

    def _text_test(self, name: str, operands: Sequence[Expression]) -> ex.Expression:
        return ex.StringMatch(
            _TEXT_TESTS[name], self._expression(operands[0]), constant_text(operands[1])
        )

    def _pattern(self, name: str, operands: Sequence[Expression]) -> ex.Expression:
        if len(operands) != 2:  # noqa: PLR2004 - with an escape character
            raise not_understood(f"{name} with an escape character")
        searched, pattern = self._expression(operands[0]), constant_text(operands[1])
        return ex.Like(searched, pattern, "\\") if name == "like" else ex.RLike(searched, pattern)

    @staticmethod
    def _alike(left: ex.Expression, right: ex.Expression) -> tuple[ex.Expression, ex.Expression]:
        """Return two operands in the type in which Spark compares them."""
        if ex.type_of(left) == ex.type_of(right):
            return left, right
        if isinstance(right, ex.Literal) and (made := same_constant(right, ex.type_of(left))):
            return left, made
        if isinstance(left, ex.Literal) and (made := same_constant(left, ex.type_of(right))):
            return made, right
        kind = widened(ex.type_of(left), ex.type_of(right))
        return as_type(left, kind), as_type(right, kind)


_MAKERS: Final = {
    "and": "connected",
    "or": "connected",
    "not": "negated",
    "isNull": "null_test",
    "isNotNull": "null_test",
    "isNaN": "nan_test",
    "in": "member",
    "when": "chosen",
    "coalesce": "first_known",
    "like": "pattern",
    "rlike": "pattern",
    **dict.fromkeys(_OPERATORS, "compared"),
    **dict.fromkeys(_ARITHMETIC, "computed"),
    **dict.fromkeys(_TEXT_TESTS, "text_test"),
}
"""What is understood: Connect's name, and the method that makes it here."""

_NUMBERS: Final = frozenset({'"byte"', '"short"', '"integer"', '"long"', '"float"', '"double"'})
"""Spark's types, as JSON, of numbers that are compared without an error."""
