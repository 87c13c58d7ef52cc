"""Which function it is that has answered: told by what it does, or by what its author calls it.

Two functions are the same where their instructions, constants, defaults and closures are, and those
of the functions that they call by name. Comments, empty lines, docstrings, names of files and
numbers of lines do not count. Another Python has other instructions: a ``version`` of one's own
outlives that, and tells what no code tells, as that a model was trained anew.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias

from eddyline.keeping.key_bytes import encoded

_DEPTH: Final = 8
"""How far functions that call functions are followed."""

_SECRET: Final = ("key", "secret", "token", "password", "credential")
"""What is in the names of variables with secrets: these may change, and are nobody's business."""

Inner: TypeAlias = "Callable[[object], Iterator[bytes]]"

Kinds: TypeAlias = "type | tuple[type, ...]"

Way: TypeAlias = "Callable[[Any, Inner], Iterator[bytes]]"

_SIMPLE: Final = (type(None), bool, int, float, str, bytes)


def version_of(function: object) -> str:
    """Return 32 hexadecimal digits that stand for what a function does.

    What it finds in its module counts where it is a number, a text, a function, or something with
    such attributes, as a client with the name of its model; of anything else the type.

    >>> def one_more(number):
    ...     return number + 1
    >>> before = version_of(one_more)
    >>> def one_more(number):
    ...     '''Return a number and one.'''
    ...     return number + 1  # one
    >>> def two_more(number):
    ...     return number + 2
    >>> version_of(one_more) == before, version_of(two_more) == before
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts(function, 0, frozenset()):
        digest.update(part)
    return digest.hexdigest()


def _parts(thing: object, depth: int, seen: frozenset[int]) -> Iterator[bytes]:
    """Yield what tells a thing from others, in an order that is always the same."""
    if isinstance(thing, _SIMPLE):
        yield encoded(thing)
        return
    yield encoded(f"{type(thing).__module__}.{type(thing).__qualname__}")
    if depth < _DEPTH and id(thing) not in seen:
        inner = functools.partial(_parts, depth=depth + 1, seen=seen | {id(thing)})
        ways = (way for kinds, way in _WAYS if isinstance(thing, kinds))
        yield from next(ways, _of_object)(thing, inner)


def _of_function(function: FunctionType, inner: Inner) -> Iterator[bytes]:
    yield from _of_code(function.__code__)
    yield from inner(function.__defaults__)
    yield from inner(function.__kwdefaults__)
    for cell in function.__closure__ or ():
        yield from inner(_content(cell))
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield encoded(name)
            yield from inner(function.__globals__[name])


def _of_all(things: Iterable[object], inner: Inner) -> Iterator[bytes]:
    for thing in things:
        yield from inner(thing)


def _of_object(thing: object, inner: Inner) -> Iterator[bytes]:
    """Yield what can be called, and attributes: simple ones, and all fields of a data class."""
    call = getattr(type(thing), "__call__", None)  # noqa: B004 - it is the class's that counts
    if isinstance(call, FunctionType):
        yield from inner(call)
    whole = dataclasses.is_dataclass(thing)
    for name, value in sorted(_attributes(thing).items()):
        if any(part in name.lower() for part in _SECRET):
            continue
        if whole or isinstance(value, _SIMPLE):
            yield encoded(name)
            yield from inner(value)


_WAYS: Final[
    tuple[tuple[type | tuple[type, ...], Callable[[Any, Inner], Iterator[bytes]]], ...]
] = (
    (FunctionType, _of_function),
    (MethodType, lambda method, inner: _of_all((method.__func__, method.__self__), inner)),
    (
        BuiltinFunctionType,
        lambda known, inner: _of_all((known.__qualname__, known.__self__), inner),
    ),
    (
        functools.partial,
        lambda part, inner: _of_all((part.func, part.args, part.keywords), inner),
    ),
    ((ModuleType, type), lambda named, _: iter([encoded(named.__name__)])),
    ((list, tuple), _of_all),
    ((set, frozenset), lambda some, inner: iter(sorted(b"".join(inner(one)) for one in some))),
    (dict, lambda pairs, inner: _of_all(itertools.chain.from_iterable(pairs.items()), inner)),
)


def _of_code(code: CodeType) -> Iterator[bytes]:
    """Yield what a function does: a docstring is among its constants, and nothing loads it."""
    yield encoded((code.co_argcount, code.co_kwonlyargcount, code.co_flags & _OF_CALLS))
    yield encoded(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    for instruction in dis.get_instructions(code):
        yield encoded(instruction.opname)
        given = instruction.argval
        if isinstance(given, CodeType):
            yield from _of_code(given)
        else:
            yield from _parts(given, 1, frozenset())


_OF_CALLS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_COROUTINE


def _names_in(code: CodeType) -> tuple[str, ...]:
    """Return the names that a function looks up, those of functions in it included."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= dict.fromkeys(_names_in(constant))
    return tuple(names)


def _content(cell: Any) -> object:  # noqa: ANN401 - Python has no name for the type of cells
    try:
        return cell.cell_contents
    except ValueError:  # it is empty still
        return None


def _attributes(thing: object) -> dict[str, object]:
    if dataclasses.is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    own = getattr(thing, "__dict__", {})
    return {name: value for name, value in own.items() if isinstance(name, str)}
