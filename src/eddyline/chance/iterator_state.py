"""Tells whether an iterator function maps batch to batch and remembers nothing.

Spark feeds an iterator function all batches of a task in order. An eddy feeds it
only some rows of each, in an order of its own, so a function that carries
anything from one batch to the next must stay where Spark put it. Users mark those
that carry nothing; the plainest form of loop needs no mark, since its source shows
it. Whatever is not plainly harmless is declined.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import io
import itertools
import linecache
import pickle
import random
from collections.abc import (
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from eddyline.stateless_mark import is_marked_stateless

# How PySpark makes these two anew from a pickle. A copy of an accumulator on the driver
# takes the place of the user's own, and a broadcast variable is known to workers only.
_LIVE: Final = (
    ("pyspark.accumulators", "_deserialize_accumulator"),
    ("pyspark.core.broadcast", "_from_id"),
    ("pyspark.broadcast", "_from_id"),  # PySpark 3.5
)

_CONTAINERS: Final = (Iterator, MutableMapping, MutableSequence, MutableSet)
_REMEMBERING: Final = (*_CONTAINERS, np.random.Generator, np.random.RandomState, random.Random)

# Last names of the callables whose results remember what was done to them.
_MAKERS: Final = frozenset(vars(itertools)).union(
    ["Counter", "OrderedDict", "bytearray", "defaultdict", "deque", "dict", "list", "set"],
    ["enumerate", "filter", "iter", "map", "open", "partial", "reversed", "zip"],
    ["Generator", "Random", "RandomState", "default_rng"],
)
_COMPREHENSIONS: Final = (ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp)
_MADE_HERE: Final = (ast.Dict, ast.List, ast.Set, *_COMPREHENSIONS)

# Callables that change something, or could do so out of this reader's sight.
_FORBIDDEN: Final = frozenset(
    ["__next__", "delattr", "eval", "exec", "globals", "locals", "next", "send", "setattr", "vars"]
)


def iterator_is_stateless(commands: Sequence[bytes]) -> str | None:
    """Return why an iterator function may carry something from batch to batch; None if it cannot.

    Such a function is marked, or is one generator function of one parameter: assignments,
    calls and imports, then, at the end, one loop directly over the parameter that only
    assigns to variables and yields once. What the functions that it calls do cannot be
    seen from here.
    """
    return next(filter(None, map(_why_not, commands)), None)


def _why_not(command: bytes) -> str | None:
    try:
        loaded = _DriverUnpickler(io.BytesIO(command)).load()
    except Exception as error:  # noqa: BLE001 - unpickling runs code of any library
        return f"it cannot be unpickled on the driver ({type(error).__name__}: {error})"
    if loaded is None:
        return "it is so large that PySpark broadcasts it, so it cannot be looked into"
    if is_marked_stateless(loaded[0]):
        return None
    reason = next(_objections(loaded[0]), None)
    advice = "mark it with eddyline.stateless if it carries nothing from batch to batch"
    return reason and f"{reason}; {advice}"


class _DriverUnpickler(pickle.Unpickler):
    """Unpickles a function; None stands for what belongs to the session."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in the standard library
        return (lambda *_: None) if (module, name) in _LIVE else super().find_class(module, name)


def _objections(function: object) -> Iterator[str]:
    if not isinstance(function, FunctionType) or not inspect.isgeneratorfunction(function):
        yield "it is not a generator function"
        return
    code = function.__code__
    variadic = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & variadic:
        yield "it has other parameters than its iterator"
    elif definition := _source_of(code):
        yield from _objections_to_form(definition, code.co_varnames[0], _outer_values(function))
    else:
        yield "its source is not available, or has changed since it was read"


def _source_of(code: CodeType) -> ast.FunctionDef | None:
    """Return the definition that a function was compiled from; None if it is not available."""
    with suppress(SyntaxError, ValueError):
        module = ast.parse("".join(linecache.getlines(code.co_filename)))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                first = node.decorator_list[0] if node.decorator_list else node
                if first.lineno == code.co_firstlineno and _compiles_to(module, code):
                    return node
    return None


def _compiles_to(module: ast.Module, code: CodeType) -> bool:
    """Whether the source still gives the very code: a file may have changed since it was read."""
    flags = code.co_flags & __future__.annotations.compiler_flag | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    # A notebook compiles each statement by itself, which changes how imports are used in it.
    units = [module, *(ast.Module([statement], type_ignores=[]) for statement in module.body)]
    made = (compile(unit, code.co_filename, "exec", flags, dont_inherit=True) for unit in units)
    return any(code in _codes_below(compiled) for compiled in made)


def _codes_below(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_below(constant)


def _outer_values(function: FunctionType) -> dict[str, object]:
    variables: dict[str, object] = dict(function.__globals__)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        variables[name] = None
        with suppress(ValueError):  # not assigned yet
            variables[name] = cell.cell_contents
    return variables


def _objections_to_form(
    definition: ast.FunctionDef, parameter: str, outer: Mapping[str, object]
) -> Iterator[str]:
    nodes = list(ast.walk(definition))
    *setup, loop = definition.body
    if not isinstance(loop, ast.For) or ast.unparse(loop.iter) != parameter or loop.orelse:
        yield f"it does not end with a plain loop over `{parameter}`"
        return
    if sum(isinstance(node, ast.Name) and node.id == parameter for node in nodes) > 1:
        yield f"it uses `{parameter}` outside the head of its loop"
    own = [
        statement
        for statement in loop.body
        if isinstance(getattr(statement, "value", None), ast.Yield)
    ]
    yields = sum(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
    if yields != 1 or not own or not isinstance(own[0], ast.Expr):
        yield "its loop does not yield just once, as a statement of its own"
    for node in filter(_may_change_something, nodes):
        yield f"it may change something: `{_text(node)}`"
    for statement in setup:
        if not _sets_up(statement):
            yield f"it has code before its loop that is not understood: `{_text(statement)}`"
    for statement in loop.body:
        if statement not in own and not _bound(statement):
            yield f"its loop does more than assign to variables and yield: `{_text(statement)}`"
    yield from _remembered(setup, loop, outer)


def _may_change_something(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _FORBIDDEN
        case ast.Lambda(args=arguments):
            return any([*arguments.defaults, *arguments.kw_defaults])
        case ast.NamedExpr() | ast.Starred(ctx=ast.Store()) | ast.keyword(arg="out"):
            return True
    return False


def _sets_up(statement: ast.stmt) -> bool:
    if any(isinstance(node, (ast.GeneratorExp, ast.Lambda)) for node in ast.walk(statement)):
        return False  # it may run when the loop does
    return isinstance(statement, (ast.Expr, ast.Import, ast.ImportFrom)) or bool(_bound(statement))


def _bound(statement: ast.stmt) -> set[str]:
    """Return the variables that an assignment assigns to; none for any other statement."""
    match statement:
        case ast.Assign(targets=targets):
            return set().union(*map(_names, targets))
        case ast.AnnAssign(target=target, value=ast.expr()):
            return _names(target)
    return set()


def _remembered(setup: list[ast.stmt], loop: ast.For, outer: Mapping[str, object]) -> Iterator[str]:
    """Yield what the loop reads that an earlier batch may have left or changed."""
    known = _names(loop.target)
    changed = known.union(*map(_bound, loop.body))
    values = {**outer, **dict.fromkeys(changed.union(*map(_bound, setup)))}
    for statement in setup:
        if (names := _bound(statement)) and _can_remember(statement, values):
            values |= {name: [] for name in names}
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(_value(node, values), _REMEMBERING):
                yield (
                    f"`{_text(node)}` exists before its loop and can remember things, which a "
                    "tuple or frozenset cannot"
                )
            reads = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            if reads and _text(node) in changed - known:
                yield f"`{_text(node)}` may be what an earlier batch left"
        known |= _bound(statement)


def _can_remember(expression: ast.AST, values: Mapping[str, object]) -> bool:
    if isinstance(expression, ast.Call):
        function = expression.func
        return getattr(function, "attr", getattr(function, "id", None)) in _MAKERS
    made_here = isinstance(expression, _MADE_HERE)
    remembers = isinstance(_value(expression, values), _REMEMBERING)
    parts = ast.iter_child_nodes(expression)
    return made_here or remembers or any(_can_remember(part, values) for part in parts)


def _value(expression: ast.AST, values: Mapping[str, object]) -> object:
    """Return what ``name`` or ``module.name`` stands for; None if that is not known."""
    if isinstance(expression, ast.Name):
        return values.get(expression.id)
    if isinstance(expression, ast.Attribute):
        holder = _value(expression.value, values)
        return getattr(holder, expression.attr, None) if isinstance(holder, ModuleType) else None
    return None


def _names(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _text(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]
