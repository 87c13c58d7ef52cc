"""Reads from the source of a generator function whether its loop may carry state.

The rules err on the side of "may". They know what Python's statements do, not
what functions do that the loop calls.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from types import ModuleType
from typing import Final

import numpy as np

from eddyline.spark.claiming.source_names import (
    FUNCTIONS,
    assigned_names,
    free_reads,
    last_name,
    own_nodes,
    root_name,
    stored_names,
)

_REMEMBERING: Final = (
    Iterator,
    MutableMapping,
    MutableSequence,
    MutableSet,
    np.random.Generator,
    np.random.RandomState,
    random.Random,
)

# Last names of the callables whose results remember what was done to them.
_MAKERS: Final = frozenset(
    {
        "Counter",
        "OrderedDict",
        "RandomState",
        "accumulate",
        "bytearray",
        "chain",
        "count",
        "cycle",
        "defaultdict",
        "default_rng",
        "deque",
        "dict",
        "enumerate",
        "filter",
        "islice",
        "iter",
        "list",
        "map",
        "open",
        "partial",
        "repeat",
        "set",
        "zip",
    }
)

_DISPLAYS: Final = (
    ast.Dict,
    ast.DictComp,
    ast.GeneratorExp,
    ast.List,
    ast.ListComp,
    ast.Set,
    ast.SetComp,
)

# Callables that change something, or could do so out of this reader's sight.
_FORBIDDEN: Final = frozenset(
    ["__next__", "delattr", "eval", "exec", "globals", "locals", "next", "send", "setattr", "vars"]
)

_NOT_READ: Final = (ast.AsyncFor, ast.ClassDef, ast.Match, ast.NamedExpr, ast.TryStar)

_Assignment = ast.Assign | ast.AnnAssign


class _MayCarryStateError(Exception):
    """Ends the reading with the reason."""


def why_loop_may_carry_state(
    definition: ast.FunctionDef, outer: Mapping[str, object]
) -> str | None:
    """Return why a generator function may remember something of a batch; None if it cannot.

    ``definition`` has one parameter, the iterator. ``outer`` are the variables
    of its module and of the functions around it.
    """
    try:
        _check(definition, outer)
    except _MayCarryStateError as reason:
        return str(reason)
    return None


def _check(definition: ast.FunctionDef, outer: Mapping[str, object]) -> None:
    nodes = list(ast.walk(definition))
    *setup, last = definition.body
    loop = _loop(definition, last, nodes)
    _check_understood(nodes)
    _check_yield(nodes, loop)
    _check_jumps(setup, loop)
    local = frozenset(assigned_names(definition.body))
    seen = {name: value for name, value in outer.items() if name not in local}
    remembering = _Remembering(seen)
    remembering.read(setup)
    functions = [node for node in nodes if isinstance(node, FUNCTIONS) and node is not definition]
    for place in (*loop.body, *functions):
        remembering.check(place)
    for function in functions:
        _check_inner_function(function)
    assigned = frozenset(assigned_names([loop.target, *loop.body]))
    _check_effects(loop.body, assigned - _aliases(loop.body))
    flow = _Flow(assigned)
    for deferred in _deferred(setup):
        flow.read(deferred, frozenset())  # run in the loop, it could see what the last batch left
    flow.block(loop.body, frozenset(stored_names(loop.target)))


def _loop(definition: ast.FunctionDef, last: ast.stmt, nodes: Iterable[ast.AST]) -> ast.For:
    parameter = [*definition.args.posonlyargs, *definition.args.args][0].arg
    if not isinstance(last, ast.For):
        raise _MayCarryStateError("it does not end with a loop over its batches")
    if not isinstance(last.iter, ast.Name) or last.iter.id != parameter:
        raise _MayCarryStateError(f"its last loop does not go directly over `{parameter}`")
    if last.orelse:
        raise _MayCarryStateError("its loop has an else branch")
    if not all(
        isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.Store)) for n in ast.walk(last.target)
    ):
        raise _MayCarryStateError("its loop assigns batches to something else than variables")
    if sum(isinstance(node, ast.Name) and node.id == parameter for node in nodes) > 1:
        raise _MayCarryStateError(f"it uses `{parameter}` outside the head of its loop")
    return last


def _check_understood(nodes: Iterable[ast.AST]) -> None:
    for node in nodes:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            raise _MayCarryStateError(f"it assigns to `{node.names[0]}` outside itself")
        if isinstance(node, _NOT_READ):
            raise _MayCarryStateError(f"it has code that is not understood: `{_text(node)}`")
        if isinstance(node, ast.Call):
            if last_name(node.func) in _FORBIDDEN:
                raise _MayCarryStateError(f"it calls `{_text(node.func)}`")
            if any(keyword.arg == "out" for keyword in node.keywords):
                raise _MayCarryStateError(f"it may change an object: `{_text(node)}`")


def _check_yield(nodes: Iterable[ast.AST], loop: ast.For) -> None:
    yields = [node for node in nodes if isinstance(node, (ast.Yield, ast.YieldFrom))]
    own = [
        statement.value
        for statement in loop.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)
    ]
    if len(yields) != 1 or yields != own:
        raise _MayCarryStateError("its loop does not yield just once, as a statement of its own")


def _check_jumps(setup: list[ast.stmt], loop: ast.For) -> None:
    if any(isinstance(node, ast.Return) for node in own_nodes([*setup, *loop.body])):
        raise _MayCarryStateError("it may return before the last batch")
    if _leaves_iteration(loop.body):
        raise _MayCarryStateError("its loop has a break or continue")


def _leaves_iteration(statements: Iterable[ast.stmt]) -> bool:
    """Whether a break or continue among the statements is one of the loop around them."""
    for node in own_nodes(statements, stop=(ast.For, ast.While)):
        if isinstance(node, (ast.Break, ast.Continue)):
            return True
        if isinstance(node, (ast.For, ast.While)) and _leaves_iteration(node.orelse):
            return True
    return False


class _Remembering:
    """Knows the names of what can remember: containers, iterators, random generators."""

    def __init__(self, outer: Mapping[str, object]) -> None:
        self._outer = outer
        self._names = {n for n, value in outer.items() if isinstance(value, _REMEMBERING)}

    def read(self, setup: Iterable[ast.stmt]) -> None:
        """Learn the names that the statements before the loop give to such things."""
        for node in own_nodes(setup):
            if isinstance(node, _Assignment) and node.value and self._is_one(node.value):
                self._names.update(_targets(node))

    def check(self, place: ast.AST) -> None:
        """Refuse code that uses one of them."""
        for node in ast.walk(place):
            if isinstance(node, ast.Name) and node.id in self._names:
                raise _MayCarryStateError(
                    f"`{node.id}` exists before its loop and can remember things, which a tuple "
                    "or frozenset cannot"
                )
            if isinstance(node, ast.Attribute) and self._of_module(node):
                raise _MayCarryStateError(f"`{_text(node)}` can remember things")

    def _is_one(self, value: ast.expr) -> bool:
        match value:
            case ast.Name():
                return value.id in self._names
            case ast.Call():
                return last_name(value.func) in _MAKERS
            case ast.Attribute() | ast.Subscript() | ast.Starred():
                return self._of_module(value) or self._is_one(value.value)
            case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                return any(map(self._is_one, parts))
            case ast.IfExp():
                return self._is_one(value.body) or self._is_one(value.orelse)
        return isinstance(value, _DISPLAYS)

    def _of_module(self, expression: ast.expr) -> bool:
        """Whether an expression like ``module.NAME`` stands for something that remembers."""
        return isinstance(self._value(expression), _REMEMBERING)

    def _value(self, expression: ast.expr) -> object:
        if isinstance(expression, ast.Name):
            return self._outer.get(expression.id)
        if isinstance(expression, ast.Attribute):
            holder = self._value(expression.value)
            if isinstance(holder, ModuleType):
                return getattr(holder, expression.attr, None)
        return None


def _check_inner_function(function: ast.FunctionDef | ast.Lambda) -> None:
    defaults = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
    if not all(isinstance(default, ast.Constant) for default in defaults):
        raise _MayCarryStateError("a function inside it has a default that can remember things")
    if isinstance(function, ast.FunctionDef):
        if function.decorator_list:
            raise _MayCarryStateError(f"`{function.name}` inside it is decorated")
        fresh = frozenset(assigned_names(function.body)) - _aliases(function.body)
        _check_effects(function.body, fresh)


def _check_effects(statements: Iterable[ast.stmt], fresh: frozenset[str]) -> None:
    """Refuse what changes an object other than those that ``fresh`` names stand for."""
    for node in own_nodes(statements):
        changed: ast.expr | None = None
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            changed = None if isinstance(node.ctx, ast.Load) else node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func  # what it returns is thrown away, so it is for the effect
            changed = function.value if isinstance(function, ast.Attribute) else function
            if isinstance(function, ast.Name):
                raise _MayCarryStateError(f"it calls `{function.id}` just for its effect")
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            raise _MayCarryStateError(f"it changes `{node.target.id}` in place")
        if changed is not None and root_name(changed) not in fresh:
            raise _MayCarryStateError(f"it may change an object: `{_text(changed)}`")


def _aliases(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the names that may stand for an object that was there before the statements."""
    found: set[str] = set()
    for node in own_nodes(statements):
        match node:
            case ast.Assign() | ast.AnnAssign():
                if not isinstance(node.value, (ast.BinOp, ast.Call)):
                    found.update(_targets(node))
            case ast.For():
                found.update(stored_names(node.target))
            case ast.withitem(optional_vars=ast.expr() as target):
                found.update(stored_names(target))
            case ast.alias():
                found.update(assigned_names([node]))
    return frozenset(found)


def _targets(assignment: _Assignment) -> Iterator[str]:
    if isinstance(assignment, ast.AnnAssign):
        yield from stored_names(assignment.target)
    else:
        for target in assignment.targets:
            yield from stored_names(target)


def _deferred(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the outermost pieces of code that run later than where they stand."""
    for node in statements:
        if isinstance(node, (*FUNCTIONS, ast.GeneratorExp)):
            yield node
        else:
            yield from _deferred(ast.iter_child_nodes(node))


class _Flow:
    """Follows the statements of one iteration: what is read must have been assigned in it."""

    def __init__(self, assigned: frozenset[str]) -> None:
        self._assigned = assigned

    def block(self, statements: Iterable[ast.stmt], known: frozenset[str]) -> frozenset[str]:
        """Return the names that are surely assigned after the statements."""
        for statement in statements:
            known = self._after(statement, known)
        return known

    def read(self, node: ast.AST, known: frozenset[str]) -> None:
        """Refuse code that reads a variable of the loop that may not be assigned yet."""
        for name in sorted(free_reads(node) & self._assigned - known):
            raise _MayCarryStateError(f"`{name}` may be what an earlier batch left")

    def _after(self, statement: ast.stmt, known: frozenset[str]) -> frozenset[str]:
        match statement:
            case ast.If():
                self.read(statement.test, known)
                known = self.block(statement.body, known) & self.block(statement.orelse, known)
            case ast.For():
                self.read(statement.iter, known)
                self.block(statement.body, known.union(stored_names(statement.target)))
                self.block(statement.orelse, known)
            case ast.While():
                self.read(statement.test, known)
                self.block(statement.body, known)
                self.block(statement.orelse, known)
            case ast.With():
                for item in statement.items:
                    self.read(item.context_expr, known)
                    known = known.union(assigned_names([item]))
                known = self.block(statement.body, known)
            case ast.Try():
                known = self._after_try(statement, known)
            case ast.Delete():
                known = known.difference(assigned_names([statement]))
            case _:
                self.read(statement, known)
                known = known.union(assigned_names([statement]))
        return known

    def _after_try(self, statement: ast.Try, known: frozenset[str]) -> frozenset[str]:
        done = self.block(statement.orelse, self.block(statement.body, known))
        for handler in statement.handlers:
            named = known | {handler.name} if handler.name else known
            done &= self.block(handler.body, named)
        self.block(statement.finalbody, known)
        return done


def _text(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]
