"""Which names a piece of Python source reads and assigns, by Python's rules of scope."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

FUNCTIONS: Final = (ast.FunctionDef, ast.Lambda)
COMPREHENSIONS: Final = (ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp)


def free_reads(node: ast.AST) -> frozenset[str]:
    """Return the names that a node reads from around it, now or when called later."""
    below = frozenset(name for child in ast.iter_child_nodes(node) for name in free_reads(child))
    if isinstance(node, ast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, ast.Load) else frozenset()
    if isinstance(node, FUNCTIONS):
        return below - frozenset(_local_names(node))
    if isinstance(node, COMPREHENSIONS):
        own = frozenset(name for part in node.generators for name in stored_names(part.target))
        # What the first part goes over is computed outside the comprehension's own scope.
        return below - own | free_reads(node.generators[0].iter)
    return below


def assigned_names(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that statements assign, define, import or delete in their own scope."""
    for node in own_nodes(statements):
        match node:
            case ast.FunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.alias():
                yield (node.asname or node.name).partition(".")[0]
            case ast.ExceptHandler(name=str(name)):
                yield name


def stored_names(target: ast.AST) -> Iterator[str]:
    """Yield the names that an assignment's target binds."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def own_nodes(
    statements: Iterable[ast.AST], stop: tuple[type[ast.AST], ...] = ()
) -> Iterator[ast.AST]:
    """Yield statements and all nodes below, those of functions and comprehensions left out.

    Nodes of the classes ``stop`` are yielded too, but nothing below them.
    """
    for node in statements:
        yield node
        if not isinstance(node, (*FUNCTIONS, *COMPREHENSIONS, *stop)):
            yield from own_nodes(ast.iter_child_nodes(node), stop)


def root_name(expression: ast.expr) -> str | None:
    """Return ``x`` for ``x.a[i].b``; None if no name stands at the root.

    >>> root_name(ast.parse("x.a[i].b", mode="eval").body)
    'x'
    """
    while isinstance(expression, (ast.Attribute, ast.Subscript)):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def last_name(expression: ast.expr) -> str | None:
    """Return ``c`` for ``c`` and for ``a.b.c``, else None.

    >>> last_name(ast.parse("a.b.c", mode="eval").body)
    'c'
    """
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else None


def _local_names(function: ast.FunctionDef | ast.Lambda) -> Iterator[str]:
    arguments = function.args
    optional = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *optional):
        yield each.arg
    if isinstance(function, ast.FunctionDef):
        yield from assigned_names(function.body)
