"""Reads a pickled function and what it refers to, without making any of it.

Functions and their code come out as they are, since making these runs nobody's code. A class, and
anything made by a call, is known by its name only: a model of a gigabyte, a connection and the like
are never made here, and no module is imported.
"""

from __future__ import annotations

import functools
import io
import pickle
from types import CodeType, MethodType, ModuleType
from typing import Any, ClassVar, Final

from pyspark.cloudpickle import cloudpickle

MISSING: Final = object()
"""Stands for what is not there, or cannot be known."""

# What these make is harmless, and easier to read as it is.
_AS_IT_IS: Final = {
    ("functools", "partial"): functools.partial,
    ("types", "CodeType"): CodeType,
    ("types", "MethodType"): MethodType,
    **{
        ("builtins", kind.__name__): kind
        for kind in (bytearray, classmethod, dict, frozenset, list, property, set, staticmethod)
    },
}
_OF_FUNCTIONS: Final = frozenset(
    ["_function_setstate", "_make_cell", "_make_empty_cell", "_make_function"]
)


class Stand:
    """Stands for what a pickle names, as a class, or makes, as an instance of such a class.

    ``module`` and ``name`` are those by which the pickle knows the class. One that is pickled whole
    has no module, but ``contents``, and ``inherits`` from others.
    """

    module: ClassVar[str] = ""
    name: ClassVar[str] = ""
    contents: ClassVar[dict[str, object]] = {}
    inherits: ClassVar[tuple[object, ...]] = ()

    arguments: tuple[object, ...]
    state: object

    def __new__(cls, *arguments: object, **_: object) -> Stand:  # noqa: PYI034 - as pickles call it
        """Stand for what a call of the class returns."""
        made = object.__new__(cls)
        made.arguments, made.state = arguments, None
        return made

    def __init__(self, *_: object, **__: object) -> None:
        """Take all arguments."""

    def __call__(self, *arguments: object, **_: object) -> Stand:
        """Stand for what a call of this would return."""
        return Stand(self, *arguments)

    def __setstate__(self, state: object) -> None:
        """Keep a state."""
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        """Take no items."""

    def append(self, value: object) -> None:
        """Take no values."""

    add = extend = append


class Member(Stand):
    """A member of something, fetched by ``getattr``: the owner and the member's name."""


def load_inert(command: bytes) -> object:
    """Return what a pickle holds; raises what reading it does where it is not well formed."""
    return _Reader(io.BytesIO(command)).load()


@functools.lru_cache(1_000)  # a class takes 20 us
def named(module: str, name: str) -> type[Stand]:
    """Return what stands for a thing of a module, by its name there."""
    return type(name.rpartition(".")[2], (Stand,), {"module": module, "name": name})


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in the base
        if (module, name) in _AS_IT_IS:
            return _AS_IT_IS[module, name]
        if module.endswith("cloudpickle"):
            if name in _OF_FUNCTIONS:
                return getattr(cloudpickle, name)
            if name in _BY_NAME:
                return _BY_NAME[name]
        return _member if (module, name) == ("builtins", "getattr") else named(module, name)

    def persistent_load(self, identity: object) -> object:  # noqa: ARG002 - likewise
        return Stand()


def _member(owner: object, name: str) -> object:
    """Return a member of a class, by its name; for one of anything else what stands for it."""
    if isinstance(owner, type) and issubclass(owner, Stand) and owner.module:
        return named(owner.module, f"{owner.name}.{name}" if owner.name else name)
    return Member(owner, name)


def _builtin_type(name: str) -> object:
    return _AS_IT_IS.get(("types", name)) or named("types", name)


def _skeleton(_: object, name: str, bases: tuple[object, ...], *__: object) -> type[Stand]:
    return type(name, (Stand,), {"name": name, "contents": {}, "inherits": bases})


def _skeleton_enum(bases: tuple[object, ...], name: str, *_: object) -> type[Stand]:
    return _skeleton(None, name, bases)


def _fill(made: type[Stand], state: tuple[dict[str, object], object]) -> None:
    made.contents.update(state[0])


def _module(name: str, values: dict[str, object]) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(values)
    return made


_BY_NAME: Final = {
    "_builtin_type": _builtin_type,
    "_class_setstate": _fill,
    "_make_skeleton_class": _skeleton,
    "_make_skeleton_enum": _skeleton_enum,
    "dynamic_subimport": _module,
    "subimport": lambda name: named(name, ""),
}
