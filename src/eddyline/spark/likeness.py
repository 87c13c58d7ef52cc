"""Functions that were made anew and are the same: what Python cannot tell apart by running them."""

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


def likeness(function: Callable[..., Any], within: tuple[object, ...] = ()) -> Hashable:
    """Return what is equal for functions that are the same, made once or twice.

    They have the same code, from the same file and line, and see the same variables: of a module
    those of the same module, of a closure the same objects, or equal numbers and texts. What
    is no plain function is like itself alone. ``within`` are functions that have this one in their
    closures.

    >>> def made(number, log):
    ...     return lambda value: log.append(value + number)
    >>> log = []
    >>> likeness(made(1, log)) == likeness(made(1, log))
    True
    >>> likeness(made(1, log)) in {likeness(made(2, log)), likeness(made(1, []))}
    False
    """
    if type(function) is not FunctionType or function.__dict__:
        return _Itself(function)
    if function in within:
        return within.index(function)
    around = (*within, function)
    try:
        cells = tuple(_part(cell.cell_contents, around) for cell in function.__closure__ or ())
    except ValueError:  # a variable that has no value yet
        return _Itself(function)
    code, named = function.__code__, function.__kwdefaults__ or {}
    return (
        code,
        code.co_filename,
        function.__qualname__,
        _Itself(function.__globals__),
        cells,
        tuple(_part(value, around) for value in function.__defaults__ or ()),
        tuple((name, _part(value, around)) for name, value in named.items()),
    )


def _part(value: object, within: tuple[object, ...]) -> Hashable:
    if type(value) is FunctionType:
        return likeness(value, within)
    if type(value) is tuple:
        return tuple, *(_part(each, within) for each in value)
    # 1, 1.0 and True are equal, and no number for a function that looks at its type; 0.0 and -0.0
    # are told apart by their texts.
    return (type(value), value, repr(value)) if type(value) in _ATOMS else _Itself(value)
