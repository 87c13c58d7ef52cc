"""What the code of a function loads, imports, stores and calls, whatever Python compiled it."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from types import CodeType
from typing import Final, NamedTuple


class Do(Enum):
    """What a step of a function does."""

    LOAD_GLOBAL = auto()
    LOAD_LOCAL = auto()
    LOAD_OUTER = auto()  # a variable of the enclosing function, or one for functions inside
    CONSTANT = auto()
    CODE = auto()  # of a function inside
    MEMBER = auto()  # of what was loaded last
    IMPORT = auto()
    IMPORT_FROM = auto()  # of what was imported last
    STORE_GLOBAL = auto()
    STORE_LOCAL = auto()
    STORE_OUTER = auto()
    STORE_MEMBER = auto()
    COPY = auto()
    CHANGE_IN_PLACE = auto()  # as `+=` does before it stores
    CALL = auto()
    OTHER = auto()


class Step(NamedTuple):
    """One step: what it does, and the name, constant, code or number of arguments."""

    do: Do
    what: object = None


_STEPS: Final = {
    "CALL": Do.CALL,
    "CALL_KW": Do.CALL,
    "COPY": Do.COPY,
    "IMPORT_FROM": Do.IMPORT_FROM,
    "IMPORT_NAME": Do.IMPORT,
    "LOAD_ATTR": Do.MEMBER,
    "LOAD_CLASSDEREF": Do.LOAD_OUTER,
    "LOAD_DEREF": Do.LOAD_OUTER,
    "LOAD_FROM_DICT_OR_DEREF": Do.LOAD_OUTER,
    "LOAD_FROM_DICT_OR_GLOBALS": Do.LOAD_GLOBAL,
    "LOAD_GLOBAL": Do.LOAD_GLOBAL,
    "LOAD_METHOD": Do.MEMBER,
    "LOAD_NAME": Do.LOAD_GLOBAL,
    "LOAD_SMALL_INT": Do.CONSTANT,
    "STORE_ATTR": Do.STORE_MEMBER,
    "STORE_DEREF": Do.STORE_OUTER,
    "STORE_GLOBAL": Do.STORE_GLOBAL,
    "STORE_NAME": Do.STORE_LOCAL,
}

# What only puts values in their places, or nothing at all.
_SKIPPED: Final = frozenset(
    [
        *("CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "KW_NAMES", "MAKE_CELL", "NOP", "NOT_TAKEN"),
        *("POP_TOP", "PRECALL", "PUSH_NULL", "RESUME", "SWAP", "TO_BOOL"),
    ]
)

_LOADS: Final = frozenset([Do.CONSTANT, Do.LOAD_GLOBAL, Do.LOAD_LOCAL, Do.LOAD_OUTER])

_LOCAL: Final = re.compile(
    r"(LOAD|STORE)_FAST(?:_BORROW|_CHECK|_AND_CLEAR)?"
)  # two in one since 3.13


def steps_of(code: CodeType) -> list[Step]:
    """Return the steps of a function, in the order in which they stand."""
    return [step for instruction in dis.get_instructions(code) for step in _steps(instruction)]


def _steps(instruction: dis.Instruction) -> Iterator[Step]:
    name, what = instruction.opname, instruction.argval
    if name in _SKIPPED:
        return
    if locals_ := _LOCAL.findall(name):
        for verb, local in zip(locals_, what if len(locals_) > 1 else [what], strict=True):
            yield Step(Do.LOAD_LOCAL if verb == "LOAD" else Do.STORE_LOCAL, local)
    elif name == "LOAD_CONST":
        yield Step(Do.CODE if isinstance(what, CodeType) else Do.CONSTANT, what)
    elif name == "BINARY_OP" and instruction.argrepr.endswith("="):
        yield Step(Do.CHANGE_IN_PLACE)
    else:
        yield Step(_STEPS.get(name, Do.OTHER), what)


def arguments_given(steps: Sequence[Step], place: int) -> int | None:
    """Return how many arguments a call has whose function was loaded before ``place``.

    None where it is not called there, or with more than names and constants. A call with nothing
    but None is one without arguments: makers of random generators take it as such.
    """
    given = list[Step]()
    for step in steps[place:]:
        if step.do in _LOADS:
            given.append(step)
            continue
        if step.do is not Do.CALL:
            return None
        names = given[-1:] if given and isinstance(given[-1].what, tuple) else []  # of keywords
        arguments = given[: len(given) - len(names)] if len(given) != step.what else given
        if len(arguments) != step.what:
            return None
        return 0 if all(argument == Step(Do.CONSTANT) for argument in arguments) else len(arguments)
    return None
