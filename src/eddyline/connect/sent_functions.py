"""Python functions as Connect sends them: nests that Spark runs in one go, and what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

from pyspark import cloudpickle
from pyspark.sql.connect import proto
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

from eddyline.asking.declared_functions import DECLARED, Declaration
from eddyline.blocks.column_types import can_travel
from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.chance.iterator_state import iterator_is_stateless
from eddyline.connect.messages import Expression, operands, python_function
from eddyline.declaring.called_together import called_together, mark_of
from eddyline.digest import digest
from eddyline.tasks.calling.uncallable import reason_not_to_call
from eddyline.tasks.not_adapted import CascadeMark, ConcurrentMark

_ITERATORS = frozenset({FunctionKind.PANDAS_ITERATOR, FunctionKind.ARROW_ITERATOR})
_MARKS = (ConcurrentMark.__name__.encode(), CascadeMark.__name__.encode())
_MARKED = ConcurrentMark.__module__.encode()


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A call of a Python function, or of a nest ``f(g(x))`` that Spark evaluates in one go.

    ``nest`` has the functions, outermost first, ``values`` are the arguments of the innermost one,
    and ``keywords`` names those that are passed by keyword.
    """

    nest: tuple[proto.CommonInlineUserDefinedFunction, ...]
    values: tuple[Expression, ...]
    keywords: tuple[str | None, ...]

    @property
    def kind(self) -> int:
        """Spark's evaluation type."""
        return self.nest[0].python_udf.eval_type

    @property
    def concurrent(self) -> bool:
        """Whether it stands for a concurrent function, or a cascade: Spark never calls those."""
        return needs_driver(self.nest[0].python_udf.command)

    @property
    def name(self) -> str:
        """The names of the functions, as they are nested."""
        *outer, inner = (function.function_name for function in self.nest)
        for name in outer[::-1]:
            inner = f"{name}({inner})"
        return inner

    @property
    def commands(self) -> tuple[bytes, ...]:
        """The pickled functions, innermost first."""
        return tuple(function.python_udf.command for function in reversed(self.nest))


def python_call(expression: Expression) -> PythonCall | None:
    """Return the call that an expression is; None for any other."""
    function = python_function(expression)
    if function is None:
        return None
    nest = [function]
    while len(nest[-1].arguments) == 1 and (inner := python_function(nest[-1].arguments[0])):
        alike = inner.python_udf.eval_type == function.python_udf.eval_type
        if not alike or any(needs_driver(one.python_udf.command) for one in (nest[-1], inner)):
            break
        nest.append(inner)
    values, keywords = [], []
    for argument in nest[-1].arguments:
        by_name = argument.HasField("named_argument_expression")
        keywords.append(argument.named_argument_expression.key if by_name else None)
        values.append(argument.named_argument_expression.value if by_name else argument)
    return PythonCall(tuple(nest), tuple(values), tuple(keywords))


def calls_at(expression: Expression) -> Iterator[tuple[Expression, PythonCall]]:
    """Yield the calls in an expression with where they stand, those that contain others first.

    What is called inside of a nest gets values that nobody else sees, and is no call by itself.
    """
    pending = [expression]
    while pending:
        one = pending.pop()
        call = python_call(one)
        if call is not None:
            yield one, call
        pending.extend(operands(one) if call is None else call.values)


def replace_calls(
    expression: Expression, instead: Callable[[Expression], Expression | None]
) -> None:
    """Put something instead of the calls in an expression for which there is something."""
    pending = [expression]
    while pending:
        one = pending.pop()
        call = python_call(one)
        made = None if call is None else instead(one)
        if made is not None:
            one.CopyFrom(made)
        else:
            pending.extend(operands(one) if call is None else call.values)


def user_function(
    call: PythonCall, types: tuple[str, ...], settings: SessionSettings
) -> UserFunction:
    """Return a function as a block has it, given its arguments' types; DeclinedError for none."""
    name = call.name
    if not all(function.deterministic for function in call.nest):
        raise DeclinedError(DeclineReason.NON_DETERMINISTIC, name)
    try:
        kind = FunctionKind(call.kind)
    except ValueError:
        detail = f"{name} has Spark's evaluation type {call.kind}"
        raise DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION, detail) from None
    returned = return_type(call)
    if not can_travel(returned):
        raise DeclinedError(DeclineReason.UNSUPPORTED_TYPE, f"{name} returns {returned}")
    function = UserFunction(name, kind, call.commands, types, call.keywords, returned)
    if (mark := mark_of(call.commands[0])) is not None:
        return _asked_in_tasks(called_together(function, mark, settings), mark)
    reason = reason_not_to_call(function) or _not_here(call, kind, types, settings)
    if reason is not None:
        raise DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION, f"{name}: {reason}")
    if kind in _ITERATORS and (state := iterator_is_stateless(call.commands)) is not None:
        raise DeclinedError(DeclineReason.STATEFUL_ITERATOR, f"{name}: {state}")
    return function


_declared: Final[WeakKeyDictionary[Declaration, bytes]] = WeakKeyDictionary()


def _asked_in_tasks(function: UserFunction, mark: ConcurrentMark) -> UserFunction:
    """Return a concurrent function that each worker process calls for its tasks.

    They are told apart by what they are: numbers are those of one client. FunctionForgottenError.
    """
    declaration = DECLARED.of(mark.number, mark.name)
    command = _declared.get(declaration)
    if command is None:  # pickled once: it need not come out the same twice
        command = cloudpickle.dumps(declaration.alone())  # type: ignore[no-untyped-call]  # PySpark's own
        _declared[declaration] = command
    if function.driver is None:
        raise AssertionError("somebody makes its calls")
    method = f"{digest(command).hex()}/{function.driver.method}"
    driver = replace(function.driver, method=method, here=True)
    return replace(function, commands=(command,), driver=driver)


def needs_driver(command: bytes) -> bool:
    """Whether a pickled function stands for a concurrent one, or a cascade."""
    return _MARKED in command and any(mark in command for mark in _MARKS)


def return_type(call: PythonCall) -> str:
    """Return Spark's type of what a call returns, as JSON."""
    declared = call.nest[0].python_udf.output_type
    return str(proto_schema_to_pyspark_data_type(declared).json())


def _not_here(
    call: PythonCall, kind: FunctionKind, types: tuple[str, ...], settings: SessionSettings
) -> str | None:
    """Return why a function is not called by a block made on the client."""
    if any(map(needs_driver, call.commands)):
        return "it is a cascade, which needs the driver"
    if len(call.nest) > 1 and (kind in _ITERATORS or any(call.keywords)):
        return "it is called with what another function returns"
    by_way_of_pandas = settings.legacy_pandas_conversion and kind is FunctionKind.ARROW_BATCHED
    if by_way_of_pandas and any(text in _INTEGERS for text in types):
        return "it may see integers as floats in a batch of Spark's that has a NULL"
    return None


_INTEGERS = frozenset({'"byte"', '"short"', '"integer"', '"long"'})
"""Spark types, as JSON, that pandas has no NULL for."""
