"""Places outside of a call: variables, items of containers there, and attributes of objects."""

from __future__ import annotations

from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Final, cast

from eddyline.chance.dataflow import Value
from eddyline.chance.inert_pickle import MISSING, Stand
from eddyline.chance.values_at_hand import class_names, member

QUEUES: Final = frozenset(
    ["_queue.SimpleQueue", "queue.LifoQueue", "queue.PriorityQueue", "queue.Queue"]
)

_CONTAINERS: Final = QUEUES | frozenset(
    [
        *("builtins.bytearray", "builtins.dict", "builtins.list", "builtins.set"),
        *("array.array", "collections.UserDict", "collections.UserList", "collections.deque"),
        *("numpy.ndarray", "os._Environ"),
        # as these are made from pickles
        *("array._array_reconstructor", "numpy._core.multiarray._reconstruct"),
        *("numpy._core.numeric._frombuffer", "numpy.core.multiarray._reconstruct"),
        "numpy.core.numeric._frombuffer",
    ]
)

UNCHANGING: Final = (bool, bytes, complex, float, frozenset, int, range, str, type(None))
"""What cannot be changed, nor has anything in it that can."""

PLAIN: Final = (BuiltinFunctionType, FunctionType, ModuleType, type)


def outside(thing: object, place: str) -> Value:
    """Return what is found at a place outside of the call."""
    if isinstance(thing, PLAIN):
        return Value(thing, place)
    return Value(thing, place, frozenset([f"read {place}"]))


def element(owner: Value, key: Value | None) -> Value:
    """Return what is in a container under a key, or somewhere."""
    known = key is not None and isinstance(key.thing, str | int) and not key.sources
    thing = _item(owner.thing, key.thing if known and key is not None else MISSING)
    sources = owner.sources | (key.sources if key is not None else frozenset())
    if not owner.place:
        return Value(sources=sources)
    place = f"{owner.place}[{key.thing!r}]" if known and key is not None else f"{owner.place}[…]"
    if known and key is not None and owner.place == "globals()":
        place = str(key.thing)
    if owner.place.endswith(".__dict__") and known and key is not None:
        place = f"{owner.place.removesuffix('.__dict__')}.{key.thing}"
    value = outside(thing, place)
    sources = (sources - {f"read {owner.place}"}) | {f"read {place}"}
    return Value(value.thing, value.place, sources)


def _item(container: object, key: object) -> object:
    """Return an item of a builtin container; any item where the key is not known."""
    if type(container) is dict:
        if key is not MISSING and key in container:
            return container[key]
        return next(iter(container.values()), MISSING)
    if type(container) in {list, tuple}:
        return next(iter(cast("Iterable[object]", container)), MISSING)
    return MISSING


def attribute(owner: Value, name: str) -> Value:
    """Return an attribute of something."""
    thing = member(owner.thing, name) if owner.thing is not MISSING else MISSING
    if not owner.place:
        if isinstance(owner.thing, type) and is_container(thing):
            return outside(thing, f"{owner.thing.__name__}.{name}")  # of the class, by an object
        if name == "__class__" and isinstance(owner.thing, type):
            return Value(owner.thing, owner.thing.__name__)
        return Value(thing, "", owner.sources)
    place = f"{owner.place}.{name}"
    sources = owner.sources - {f"read {owner.place}"}
    if name == "__class__":
        thing = owner.thing if isinstance(owner.thing, type) else type(owner.thing)
        return Value(thing, place, sources)
    return Value(thing, place, sources | outside(thing, place).sources)


def is_container(thing: object, of: frozenset[str] = _CONTAINERS) -> bool:
    """Whether a thing is a builtin container, array or queue, which its methods change."""
    if isinstance(thing, PLAIN) and not isinstance(thing, Stand):
        return False
    return any(name in of for name in class_names(type(thing)))


def is_accumulator(thing: object) -> bool:
    """Whether a thing is one of Spark's accumulators, which tell a task nothing."""
    return any(name.startswith("pyspark.accumulators.") for name in class_names(type(thing)))
