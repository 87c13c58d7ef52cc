"""Which functions of a query are made of the same calls.

A column that is made of another one made by a function is a nest to Spark, ``f(g(x))``, and stands
beside ``g(x)``: each calls ``g`` for itself. What they have in common is told here; it is called
once in :mod:`eddyline.tasks.calling.nest_function`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from eddyline.blocks.filter_block import FunctionKind, UserFunction

ROW_BY_ROW = frozenset({FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED})
"""Kinds of which each row's call stands for itself, so that its result can be another row's."""


def part_of(function: UserFunction, length: int) -> UserFunction:
    """Return the innermost functions of a nest, whatever they are called and return.

    >>> def nest(*commands):
    ...     kind = FunctionKind.ARROW_BATCHED
    ...     return UserFunction(f"{len(commands)}", kind, commands, ('"long"',), (None,), '"long"')
    >>> part_of(nest(b"g", b"f"), 1) == part_of(nest(b"g", b"h"), 1)
    True
    """
    commands = function.commands[:length]
    return replace(function, name="", commands=commands, return_type="", shared=())


def is_inside(inner: UserFunction, nest: UserFunction) -> bool:
    """Return whether a nest calls a function, given the same arguments, on the way to its value."""
    length = len(inner.commands)
    return (
        length < len(nest.commands)
        and _may_share(inner)
        and part_of(nest, length) == part_of(inner, length)
    )


def with_shared_parts(functions: Sequence[UserFunction]) -> tuple[UserFunction, ...]:
    """Return functions that know which of their parts are part of others among them.

    Takes time in proportion to the functions in all nests, and to the square of the deepest one.
    """
    if all(len(function.commands) == 1 for function in functions):
        return tuple(functions)
    parts = Counter(
        part for function in dict.fromkeys(functions) for part in _parts(function).values()
    )
    return tuple(
        replace(
            function,
            shared=tuple(length for length, part in _parts(function).items() if parts[part] > 1),
        )
        for function in functions
    )


def _parts(function: UserFunction) -> dict[int, UserFunction]:
    if not _may_share(function):
        return {}
    lengths = range(1, len(function.commands) + 1)
    return {length: part_of(function, length) for length in lengths}


def _may_share(function: UserFunction) -> bool:
    """Whether calls of a function are worked on here, row by row.

    In Spark a nest whose arguments are passed by keyword fails.
    """
    by_position = all(keyword is None for keyword in function.keywords)
    return function.kind in ROW_BY_ROW and function.driver is None and by_position
