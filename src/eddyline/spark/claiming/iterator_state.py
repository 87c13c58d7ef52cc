"""Tells whether an iterator function maps batch to batch and remembers nothing.

Spark feeds an iterator function all batches of a task in order. An eddy feeds it
only some rows of each, in an order of its own, so a function that carries
anything from one batch to the next must stay where Spark put it. The function's
source decides, on the driver; whatever is not plainly harmless is declined.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import io
import linecache
import pickle
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, Final

from eddyline.spark.blocks.filter_block import UserFunction
from eddyline.spark.claiming.loop_state import why_loop_may_carry_state

# How PySpark makes these two anew from a pickle. A copy of an accumulator on the driver
# takes the place of the user's own, and a broadcast variable is known to workers only.
_LIVE: Final = frozenset(
    {
        ("pyspark.accumulators", "_deserialize_accumulator"),
        ("pyspark.core.broadcast", "_from_id"),
    }
)


def iterator_is_stateless(function: UserFunction) -> str | None:
    """Return why an iterator function may carry something from batch to batch; None if it cannot.

    Such a function must be one generator function of one parameter: statements
    that set something up, then, at the end, one loop directly over the
    parameter, with one ``yield`` for each batch among the loop's own
    statements. What other functions do that it calls cannot be seen from here;
    but the loop may call none of them just for its effect.
    """
    for command in function.commands:
        reason = _why_not(command)
        if reason is not None:
            return reason
    return None


def _why_not(command: bytes) -> str | None:
    try:
        loaded = _DriverUnpickler(io.BytesIO(command)).load()
    except Exception as error:  # noqa: BLE001 - unpickling runs code of any library
        return f"it cannot be unpickled on the driver ({type(error).__name__}: {error})"
    if isinstance(loaded, _Elsewhere):
        return "it is so large that PySpark broadcasts it, so it cannot be looked into"
    function = loaded[0]
    if not isinstance(function, FunctionType) or not inspect.isgeneratorfunction(function):
        return "it is not a generator function"
    definition = _source_of(function.__code__)
    if isinstance(definition, str):
        return definition
    return why_loop_may_carry_state(definition, _outer_values(function))


class _Elsewhere:
    """Stands for an accumulator or a broadcast variable."""

    def __init__(self, *_: object) -> None:
        """Take the arguments of what it stands for."""


class _DriverUnpickler(pickle.Unpickler):
    """Unpickles a function without touching what belongs to the session."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in the standard library
        if (module, name) in _LIVE:
            return _Elsewhere
        return super().find_class(module, name)


def _source_of(code: CodeType) -> ast.FunctionDef | str:
    """Return the definition that a function of one parameter was compiled from, or why not."""
    variadic = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & variadic:
        return "it has other parameters than its iterator"
    try:
        module = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return "its source is not available"
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = node.decorator_list[0] if node.decorator_list else node
            if first.lineno == code.co_firstlineno:
                if _compiles_to(module, code):
                    return node
                return "its source has changed since it was read"
    return "its source is not available"


def _compiles_to(module: ast.Module, code: CodeType) -> bool:
    """Whether the source still gives the very code: a file may have changed since it was read."""
    line = code.co_firstlineno
    around = [node for node in module.body if node.lineno <= line <= (node.end_lineno or 0)]
    around = around or [node for node in module.body if node.lineno >= line][:1]  # a decorator's
    flags = code.co_flags & __future__.annotations.compiler_flag
    # A notebook compiles each statement by itself, which changes how imports are used in it.
    for unit in (module, ast.Module(around, type_ignores=[])):
        compiled = compile(unit, code.co_filename, "exec", flags=flags, dont_inherit=True)
        if any(_is_same_code(candidate, code) for candidate in _codes_below(compiled)):
            return True
    return False


def _codes_below(code: CodeType) -> Iterator[CodeType]:
    for inner in _codes_in(code):
        yield inner
        yield from _codes_below(inner)


def _codes_in(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _is_same_code(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same, wherever in a file they stand."""
    return _what_it_does(one) == _what_it_does(other) and all(
        _is_same_code(*pair) for pair in zip(_codes_in(one), _codes_in(other), strict=True)
    )


def _what_it_does(code: CodeType) -> tuple[object, ...]:
    return (
        code.co_code,
        code.co_exceptiontable,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        # By `repr`, since 1 == 1.0 == True.
        ["code" if isinstance(each, CodeType) else repr(each) for each in code.co_consts],
    )


def _outer_values(function: FunctionType) -> Mapping[str, object]:
    """Return the variables that a function finds outside itself."""
    found: dict[str, object] = dict(function.__globals__)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            found.pop(name, None)
    return found
