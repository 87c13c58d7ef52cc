"""Which function it is that has answered: told by what it does, or by what its author calls it.

Two functions are the same where their instructions, constants, defaults and closures are, and those
of the functions and classes of the same project that they name. Comments, empty lines, docstrings,
names of files and numbers of lines do not count. What comes from Python's library or an installed
package counts by its name: a new release does not forget what was paid for. Another Python has
other instructions: a ``version`` of one's own outlives that, and tells what no code tells, as that
a model was trained anew.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import dis
import functools
import hashlib
import inspect
import itertools
import logging
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias

import numpy as np

from eddyline.keeping.key_bytes import encoded

_DEPTH: Final = 50
"""How far functions that call functions are followed."""

_PARTS: Final = 200_000
"""Parts after which nothing more counts, as of a large dictionary: they take 0.2 s."""

_SECRET: Final = re.compile(
    r"(^|_)(secret|token|password|passwd|credentials?|authorization|cookie|"
    r"(api|access|secret|private|auth|account|subscription)_?key)(_|$)"
)
"""In names of texts that are secrets: these may change, and are nobody's business."""

_USER_IN_URL: Final = re.compile(r"(?<=://)[^/@\s]*@")

_INSTALLED: Final = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)

Inner: TypeAlias = "Callable[[object], Iterator[bytes]]"

_SIMPLE: Final = (type(None), bool, int, float, bytes)
_BY_VALUE: Final = (Decimal, dt.date, dt.time, dt.timedelta)
_BY_TEXT: Final = (complex, Fraction, PurePath, np.generic)


def version_of(function: object) -> str:
    """Return 32 hexadecimal digits that stand for what a function does.

    What it finds in its module counts where it is a number, a text, a function or class of the same
    project, an array, or something with such attributes, as a client with the name of its model; of
    anything else the type. Texts with names such as ``api_key`` do not count.

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
    for part in itertools.islice(_Walk(function).parts(function), _PARTS):
        digest.update(part)
    return digest.hexdigest()


class _Walk:
    """Yields what tells a function from others, in an order that is always the same.

    What was met before is a number: functions that name one another are visited once each.
    """

    def __init__(self, root: object, depth: int = 0) -> None:
        self._project = _project_of(root)
        self._met: dict[int, int] = {}
        self._held: list[object] = []  # so that no identity is given away meanwhile
        self._depth = depth

    def parts(self, thing: object) -> Iterator[bytes]:
        if isinstance(thing, str):
            yield encoded(_USER_IN_URL.sub("@", thing))
        elif isinstance(thing, (*_SIMPLE, *_BY_VALUE)):
            yield encoded(thing)
        else:
            yield encoded(f"{type(thing).__module__}.{type(thing).__qualname__}")
            yield from self._inside(thing)

    def _inside(self, thing: object) -> Iterator[bytes]:
        if id(thing) in self._met:
            yield encoded(self._met[id(thing)])
            return
        self._met[id(thing)] = len(self._met)
        self._held.append(thing)
        if self._depth < _DEPTH:
            self._depth += 1
            ways = (way for kinds, way in _WAYS if isinstance(thing, kinds))
            yield from next(ways, _Walk.of_object)(self, thing)
            self._depth -= 1

    def all(self, things: Iterable[object]) -> Iterator[bytes]:
        for thing in things:
            yield from self.parts(thing)

    def named(self, pairs: Iterable[tuple[object, object]]) -> Iterator[bytes]:
        """Yield names and what they stand for, without texts that are secrets."""
        for name, value in pairs:
            yield from self.parts(name)
            if not isinstance(value, str | bytes) or not _is_secret(name):
                yield from self.parts(value)

    def of_function(self, function: FunctionType) -> Iterator[bytes]:
        if not self._is_own(function.__module__, function.__code__.co_filename):
            yield encoded(f"{function.__module__}.{function.__qualname__}")
            return
        yield from self.of_code(function.__code__)
        yield from self.parts(function.__defaults__)
        yield from self.parts(function.__kwdefaults__)
        cells = map(_content, function.__closure__ or ())
        yield from self.named(zip(function.__code__.co_freevars, cells, strict=False))
        known = function.__globals__
        names = _names_in(function.__code__)
        yield from self.named((name, known[name]) for name in names if name in known)
        for name in names:
            # One that a function imports itself is not among its globals.
            yield from self._of_module(known.get(name, sys.modules.get(name)), names, ())

    def _of_module(
        self, module: object, names: Sequence[str], above: tuple[str, ...]
    ) -> Iterator[bytes]:
        """Yield what a module of the project has of names, and modules in it."""
        if not isinstance(module, ModuleType) or module.__name__ in above:
            return
        if not self._is_own(module.__name__, getattr(module, "__file__", None) or ""):
            return
        there = [(name, vars(module)[name]) for name in names if name in vars(module)]
        yield from self.named(there)
        for _, inner in there:
            yield from self._of_module(inner, names, (*above, module.__name__))

    def of_code(self, code: CodeType) -> Iterator[bytes]:
        """Yield what a function does: a docstring is among its constants, and nothing loads it."""
        yield encoded((code.co_argcount, code.co_kwonlyargcount, code.co_flags & _OF_CALLS))
        yield encoded(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        for instruction in dis.get_instructions(code):
            yield encoded(instruction.opname)
            given = instruction.argval
            yield from self.of_code(given) if isinstance(given, CodeType) else _constant(given)

    def of_class(self, kind: type) -> Iterator[bytes]:
        yield encoded(f"{kind.__module__}.{kind.__qualname__}")
        for base in kind.__mro__:
            if self._is_own_class(base):
                yield from self._of_own_class(base)

    def _of_own_class(self, kind: type) -> Iterator[bytes]:
        """Yield what a class has itself: methods, properties, members, simple attributes."""
        kinds = (FunctionType, *_SIMPLE, *_BY_VALUE, *_BY_TEXT, str, list, tuple, dict, Enum)
        for name, part in sorted(vars(kind).items()):
            if name.startswith("__module") or name in _OF_CLASSES:
                continue
            if isinstance(part, classmethod | staticmethod):
                yield from self.named([(name, part.__func__)])
            elif isinstance(part, property | functools.cached_property):
                asked = getattr(part, "fget", None) or getattr(part, "func", None)
                yield from self.named([(name, asked)])
            elif isinstance(part, kinds):
                yield from self.named([(name, part)])

    def _is_own_class(self, kind: type) -> bool:
        functions = (part for part in vars(kind).values() if isinstance(part, FunctionType))
        file = next((part.__code__.co_filename for part in functions), None)
        if file is None:
            file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        return self._is_own(kind.__module__, file)

    def of_object(self, thing: object) -> Iterator[bytes]:
        """Yield its class, and attributes: simple ones, and all fields of a data class."""
        wrapped = getattr(thing, "__wrapped__", None)  # as of functools.cache
        if wrapped is not None:
            yield from self.parts(wrapped)
            return
        yield from self.of_class(type(thing))
        whole = dataclasses.is_dataclass(thing)
        simple = (*_SIMPLE, *_BY_VALUE, *_BY_TEXT, str, list, tuple, dict)
        attributes = sorted(_attributes(thing).items())
        yield from self.named(
            (name, value)
            for name, value in attributes
            if whole or isinstance(value, simple) or self._is_own_class(type(value))
        )

    def _is_own(self, module: object, file: str) -> bool:
        """Whether code is of the project, and not of Python's library or a package."""
        root = str(module).partition(".")[0]
        if root in sys.stdlib_module_names:
            return False
        return root == self._project or not file.startswith(_INSTALLED)


def _project_of(root: object) -> str:
    named = root if hasattr(root, "__module__") else type(root)
    return str(getattr(named, "__module__", "")).partition(".")[0]


def _is_secret(name: object) -> bool:
    if not isinstance(name, str):
        return False
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").lower()
    return _SECRET.search(words) is not None


def _constant(value: object) -> Iterator[bytes]:
    return _Walk(value, _DEPTH - 2).parts(value)


def _of_set(_: _Walk, values: Iterable[object]) -> Iterator[bytes]:
    return iter(sorted(b"".join(_Walk(value).parts(value)) for value in values))


def _of_array(_: _Walk, array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    yield encoded((str(array.dtype), *array.shape))
    yield repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()


_WAYS: Final[tuple[tuple[Any, Callable[[_Walk, Any], Iterator[bytes]]], ...]] = (
    (FunctionType, _Walk.of_function),
    (MethodType, lambda walk, method: walk.all((method.__func__, method.__self__))),
    (BuiltinFunctionType, lambda walk, known: walk.all((known.__qualname__, known.__self__))),
    (functools.partial, lambda walk, part: walk.all((part.func, part.args, part.keywords))),
    (ModuleType, lambda _, module: iter([encoded(module.__name__)])),
    (logging.Logger, lambda _, logger: iter([encoded(logger.name)])),
    (Enum, lambda walk, member: walk.all((member.name, member.value))),
    (type, _Walk.of_class),
    (re.Pattern, lambda walk, pattern: walk.all((pattern.pattern, pattern.flags))),
    (_BY_TEXT, lambda _, value: iter([encoded(str(value))])),
    (np.ndarray, _of_array),
    ((list, tuple), _Walk.all),
    ((set, frozenset), _of_set),
    (dict, lambda walk, pairs: walk.named(pairs.items())),
)

_OF_CALLS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_COROUTINE

_OF_CLASSES: Final = frozenset(
    {
        "__doc__",
        "__firstlineno__",
        "__qualname__",
        "__slots__",
        "__annotations__",
        "__static_attributes__",
        "__dataclass_fields__",
        "__match_args__",
    }
)


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
        return {field.name: getattr(thing, field.name, None) for field in dataclasses.fields(thing)}
    own = dict(getattr(thing, "__dict__", {}))
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if hasattr(thing, name):
                own.setdefault(name, getattr(thing, name))
    return {name: value for name, value in own.items() if isinstance(name, str)}
