"""What a function has at hand: things as they are, or what stands for them in its pickle."""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from eddyline.chance.inert_pickle import MISSING, Member, Stand, named
from eddyline.chance.sources import gives_another_each_time, known_as
from eddyline.deterministic_mark import DETERMINISTIC, is_marked_deterministic


def live(stand: type[Stand]) -> object:
    """Return what a class stands for, where its module is loaded here anyway; else the class."""
    if not stand.module:
        return stand
    thing: object = sys.modules.get(stand.module, MISSING)
    for part in filter(None, stand.name.split(".")):
        thing = MISSING if thing is MISSING else _static(thing, part)
    return stand if thing is MISSING else thing


def dotted(value: object) -> str:
    """Return the name by which Python knows a thing, as ``uuid.uuid4``; empty where it has none."""
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type) and issubclass(value, Stand):
        return ".".join(filter(None, (value.module, value.name)))
    if isinstance(value, BuiltinFunctionType | MethodType):
        owner = value.__self__
        named_owner = owner if isinstance(owner, type | ModuleType) else type(owner)
        return f"{dotted(named_owner)}.{value.__name__}"
    if isinstance(value, Member):
        owner, name = value.arguments
        return f"{dotted(type(owner))}.{name}"
    if isinstance(value, type | FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return ""


def member(value: object, name: str) -> object:
    """Return a member of a thing without running its code; MISSING where it has none."""
    if isinstance(value, type) and issubclass(value, Stand):
        return _member_of_stand(value, name)
    if isinstance(value, Stand):
        held = _state(value)
        return held[name] if name in held else _of_class(type(value), value, name)
    if isinstance(value, ModuleType | type | FunctionType):
        return _static(value, name)
    held = getattr(value, "__dict__", {})
    return held[name] if name in held else _of_class(type(value), value, name)


def keeps(value: object) -> str:
    """Return what kind of thing gives another value each time, as "a random.Random"; else ""."""
    if isinstance(value, type | FunctionType | ModuleType | partial):
        return ""
    for name in map(known_as, class_names(type(value))):
        if gives_another_each_time(name):
            return f"a {name}"
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return f"a {type(value).__name__}"
    return ""


def is_number(value: object) -> bool:
    """Whether a thing is a number that can be counted up."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_marked(value: object) -> bool:
    """Whether a function, or an object that is called, is marked as deterministic."""
    if isinstance(value, Stand):
        return _state(value).get(DETERMINISTIC) is value
    return is_marked_deterministic(value)


def _static(value: object, name: str) -> object:
    if isinstance(value, ModuleType):
        submodule = sys.modules.get(f"{value.__name__}.{name}", MISSING)
        return vars(value).get(name, submodule)
    if isinstance(value, FunctionType):
        return vars(value).get(name, MISSING)
    attribute = inspect.getattr_static(value, name, MISSING)
    return attribute.__func__ if isinstance(attribute, staticmethod) else attribute


def _member_of_stand(stand: type[Stand], name: str) -> object:
    loaded = live(stand)
    if loaded is not stand:
        return member(loaded, name)
    if name in stand.contents:
        content = stand.contents[name]
        return content.__func__ if isinstance(content, staticmethod) else content
    if stand.module:
        return named(stand.module, f"{stand.name}.{name}".lstrip("."))
    inherited = (member(base, name) for base in stand.inherits if isinstance(base, type))
    return next((value for value in inherited if value is not MISSING), MISSING)


def _of_class(made: type, value: object, name: str) -> object:
    """Return a member of a class as its object has it."""
    thing = member(made, name)
    if isinstance(thing, FunctionType):
        return MethodType(thing, value)
    if isinstance(thing, property) and isinstance(thing.fget, FunctionType):
        return MethodType(thing.fget, value)
    if isinstance(thing, classmethod):
        return MethodType(thing.__func__, made)
    if isinstance(thing, type) and issubclass(thing, Stand):  # its class is known by name only
        return Member(value, name)
    return thing


def _state(stand: Stand) -> dict[str, object]:
    """Return the attributes of an object; with slots these are a second dictionary."""
    state = stand.state
    parts = state if isinstance(state, tuple) else (state,)
    held: dict[str, object] = {}
    for part in parts:
        if isinstance(part, dict):
            held |= part
    return held


def class_names(made: type) -> Iterator[str]:
    """Yield the names of a class and of those that it inherits from."""
    if issubclass(made, Stand):
        yield dotted(made)
        loaded = live(made)
        for base in made.inherits if loaded is made else (loaded,):
            if isinstance(base, type):
                yield from class_names(base)
        return
    yield from map(dotted, made.__mro__)
