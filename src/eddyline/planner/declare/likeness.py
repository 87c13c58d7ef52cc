"""Functions that were made anew and are the same: what Python cannot tell apart by calling them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

_ATOMS = (type(None), bool, int, float, complex, str, bytes, CodeType)


@dataclass(frozen=True, slots=True)
class _Itself:
    """Something that is like nothing but itself, and lives as long as this does."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def likeness(function: Callable[..., Any]) -> Hashable:
    """Return what is equal for functions that are the same, made once or twice.

    They have the same code, from the same file and line, and see the same variables: those of the
    same module, and of functions around them the same ones, and not others of the same value, since
    a variable may have another value later. Their defaults are the same objects, or equal numbers
    and texts. What is no plain function is like itself alone.

    >>> cell = compile("def one_more(number, more=1): return number + more", "cell", "exec")
    >>> exec(cell)
    >>> before = one_more
    >>> exec(cell)
    >>> one_more is before, likeness(one_more) == likeness(before)
    (False, True)
    >>> def made(more):
    ...     return lambda number: number + more
    >>> likeness(made(1)) == likeness(made(1))
    False
    """
    if type(function) is not FunctionType or function.__dict__:
        return _Itself(function)
    return (
        function.__code__,
        function.__code__.co_filename,
        function.__qualname__,
        _Itself(function.__globals__),
        tuple(map(_Itself, function.__closure__ or ())),
        tuple(map(_part, function.__defaults__ or ())),
        tuple((name, _part(value)) for name, value in (function.__kwdefaults__ or {}).items()),
    )


def _part(value: object) -> Hashable:
    if type(value) is tuple:
        return tuple, *map(_part, value)
    # 1, 1.0 and True are equal, and no number for a function that looks at its type; 0.0 and -0.0
    # are told apart by their texts.
    return (type(value), value, repr(value)) if type(value) in _ATOMS else _Itself(value)
