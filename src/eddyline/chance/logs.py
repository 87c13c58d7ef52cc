"""Containers that a function only adds to: it leaves something behind, and looks at none of it.

``seen.append(thread)`` changes a list that outlives the call, as a counter does, but no result
hangs on it as long as the function adds and does nothing else with the list, nor calls a function
that could.
"""

from __future__ import annotations

import dis
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from types import BuiltinFunctionType, CodeType
from typing import Final, cast

from eddyline.chance.inert_pickle import MISSING
from eddyline.chance.values_at_hand import dotted

_ADDING: Final = frozenset(["add", "append", "appendleft", "extend", "put", "put_nowait"])
_LOADING: Final = frozenset(["LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME"])
_LOOKING_UP: Final = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
_ASIDE: Final = frozenset(["CACHE", "EXTENDED_ARG", "NOP", "RESUME"])
_KNOWN: Final = sys.stdlib_module_names | {"builtins", "numpy", "pandas", "pyarrow", "pyspark"}
"""Packages whose functions know nothing of the user's containers."""

_DATA: Final = (bool, bytes, float, int, str, type(None))
_CONTAINERS: Final = (deque, dict, frozenset, list, set, tuple)
_HELD_MOST: Final = 1_000  # of a container, looked through
_DEEPEST: Final = 4  # containers in one another, looked through


def is_log(code: CodeType, place: str, value_of: Callable[[str], object]) -> bool:
    """Whether a function only adds to the container of a name; ``value_of`` says what names mean.

    False where that is not plain: for a container without a name, where another function of the
    user's is called, and where the function contains a function.
    """
    if not place.isidentifier() or any(
        isinstance(constant, CodeType) for constant in code.co_consts
    ):
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in _ASIDE]
    loaded = (step for step in steps if step.opname in _LOADING or "LOAD_FAST" in step.opname)
    names = {step.argval for step in loaded}
    log = value_of(place)
    if type(log) in _CONTAINERS:
        names -= {place}  # no matter what was added to it: nobody reads it
    if not all(isinstance(name, str) and _knows_nothing(value_of(name), log) for name in names):
        return False
    uses = [at for at, step in enumerate(steps) if step.argval == place and "LOAD" in step.opname]
    return bool(uses) and all(_adds(steps, at) for at in uses)


def _knows_nothing(thing: object, log: object) -> bool:
    """Whether a thing is data without the log, or comes with Python and cannot look at it."""
    if thing is MISSING or isinstance(thing, BuiltinFunctionType):
        return True
    if type(thing) in _CONTAINERS or isinstance(thing, _DATA):
        return _is_data(thing, log, _DEEPEST)
    return dotted(thing).partition(".")[0] in _KNOWN


def _is_data(thing: object, log: object, depth: int) -> bool:
    if type(thing) not in _CONTAINERS:
        return isinstance(thing, _DATA)
    held = cast("Collection[object]", thing.values() if isinstance(thing, dict) else thing)
    if thing is log or depth == 0 or len(held) > _HELD_MOST:
        return False
    return all(_is_data(part, log, depth - 1) for part in held)


def _adds(steps: Sequence[dis.Instruction], at: int) -> bool:
    """Whether a method that adds is called on a loaded thing, and its result is dropped."""
    if at + 1 >= len(steps) or steps[at + 1].opname not in _LOOKING_UP:
        return False
    if str(steps[at + 1].argval) not in _ADDING:
        return False
    called = next(_calls(steps, at), None)
    return called is not None and steps[called + 1].opname == "POP_TOP"


def _calls(steps: Sequence[dis.Instruction], at: int) -> Iterator[int]:
    """Yield where a thing loaded at some place is called, if nothing jumps until then."""
    depth = 0
    for place in range(at, len(steps) - 1):
        step = steps[place]
        if "JUMP" in step.opname or step.opname.startswith(("FOR_", "SEND", "YIELD")):
            return
        depth += dis.stack_effect(step.opcode, step.arg)
        if depth == 1 and step.opname in {"CALL", "CALL_KW"} and place > at + 1:
            yield place
