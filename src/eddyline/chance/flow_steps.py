"""What each instruction does to the values of a function, and what it changes outside of the call.

The instructions are those of CPython 3.11 to 3.14. One that is not named here takes and gives as
many values as :func:`dis.stack_effect` says, and those it gives are new.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, Final, NamedTuple

from eddyline.chance.dataflow import NULL, State, Value
from eddyline.chance.inert_pickle import MISSING, Member, named
from eddyline.chance.places import (
    PLAIN,
    QUEUES,
    UNCHANGING,
    attribute,
    element,
    is_accumulator,
    is_container,
    outside,
)
from eddyline.chance.values_at_hand import dotted, live

_CHANGING: Final = frozenset(
    [
        *("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"),
        *("appendleft", "extendleft", "popleft", "rotate", "frombytes", "fromlist"),
        *("add", "discard", "update", "popitem", "subtract", "move_to_end"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
        *("get_nowait", "put", "put_nowait", "fill", "partition", "resize", "setfield"),
        *("__delitem__", "__iadd__", "__ior__"),
    ]
)
"""Methods that change builtin containers, arrays and queues."""

_CHANGING_FIRST: Final = frozenset(
    [
        *("_bisect.insort", "_bisect.insort_left", "_bisect.insort_right"),
        *("_heapq.heapify", "_heapq.heappop", "_heapq.heappush", "_heapq.heappushpop"),
        *("_heapq.heapreplace", "_operator.delitem", "_operator.iadd", "_operator.ior"),
        *("builtins.delattr", "builtins.next", "numpy.copyto", "random.Random.shuffle"),
    ]
)
"""Functions that change their first argument."""

_OPENING: Final = frozenset(["_io.open", "builtins.open", "io.open"])
_READING_FILES: Final = frozenset(["read_bytes", "read_text", "getsize"])
_WRITING_FILES: Final = frozenset(["write_bytes", "write_text"])

# What gives equal things for equal arguments only, as the key of a cache has to.
_TELLING_APART: Final = frozenset(
    [
        *("blake2b", "digest", "dumps", "encode", "frozenset", "hexdigest", "md5", "repr"),
        *("sha1", "sha256", "sha512", "str", "tobytes", "tuple"),
    ]
)
_IMPORTING: Final = frozenset(["builtins.__import__", "importlib.import_module"])
_EVALUATING: Final = frozenset(["builtins.eval", "builtins.exec"])
_IMPORTED: Final = "imported by a call"
_ASIDE: Final = frozenset(
    [
        *("CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "GET_ITER", "KW_NAMES", "MAKE_CELL", "NOP"),
        *("NOT_TAKEN", "PRECALL", "RESUME", "TO_BOOL"),
    ]
)
_TAKING: Final = {
    **dict.fromkeys(["END_FOR", "LIST_APPEND", "POP_EXCEPT", "POP_ITER", "POP_TOP", "SET_ADD"], 1),
    "MAP_ADD": 2,
}


class Store(NamedTuple):
    """A value is put at a place outside of the call, under a key computed from ``key``."""

    place: str
    key: frozenset[str]
    value: Value
    offset: int


@dataclass
class FlowSteps:
    """The effects of instructions, and what :meth:`report` has found of them.

    ``known`` are the globals, ``outer`` returns what a variable of the enclosing function holds, or
    MISSING; ``given`` is what parameters are known to be, and ``fresh`` the object of a method that
    the call itself has made.
    """

    known: Mapping[str, object]
    closure: frozenset[str]
    outer: Callable[[str], object]
    given: Mapping[str, object]
    fresh: object = MISSING
    stores: list[Store] = field(default_factory=list)
    changed: dict[str, None] = field(default_factory=dict)
    called: list[tuple[FunctionType, dict[str, object]]] = field(default_factory=list)
    named: list[object] = field(default_factory=list)
    programs: list[CodeType] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    _reporting: bool = False
    _keywords: Any = ()  # of the call to come
    _constants: tuple[Any, ...] = ()

    def arguments(self, code: CodeType) -> Iterator[tuple[str, Value]]:
        """Yield the parameters of a function, whose instructions are to come."""
        self._constants = code.co_consts
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *values and **values
        for name in code.co_varnames[:count]:
            thing = self.given.get(name, MISSING)
            if thing is not MISSING and thing is self.fresh:
                yield name, Value(thing)
            elif thing is MISSING or isinstance(thing, UNCHANGING):
                yield name, Value(sources=frozenset([f"argument {name}"]))
            else:
                yield name, outside(thing, name)

    def report(self, each: dis.Instruction, state: State) -> None:
        """Take an instruction's step, and note what it changes."""
        self._reporting = True
        self.step(each, state)
        self._reporting = False

    def step(self, each: dis.Instruction, state: State) -> None:  # noqa: C901, PLR0912 - a table
        """Change a state as an instruction without a jump does."""
        name, what = each.opname, each.argval
        if name == "KW_NAMES":
            self._keywords = self._constants[each.arg or 0]  # Python 3.11 does not say what it is
        if name in _ASIDE:
            return
        if name in _TAKING:
            state.pop(_TAKING[name])
        elif name == "COPY":
            state.push(state.stack[-what] if len(state.stack) >= what else Value())
        elif name == "SWAP":
            if len(state.stack) >= what:
                stack = state.stack
                stack[-1], stack[-what] = stack[-what], stack[-1]
        elif name == "PUSH_NULL":
            state.push(NULL)
        elif name in {"LOAD_CONST", "LOAD_SMALL_INT"}:
            state.push(Value(what))
        elif "_FAST" in name:
            self._fast(name, what, state)
        elif name in {"LOAD_GLOBAL", "LOAD_NAME"}:
            self._global(each, str(what), state)
        elif name in {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}:
            state.change(dis.stack_effect(each.opcode, each.arg) - 1)
            thing = self.outer(str(what)) if str(what) not in state.here else MISSING
            local = state.here.get(str(what), Value())
            state.push(local if thing is MISSING else outside(thing, str(what)))
        elif name in {"LOAD_ATTR", "LOAD_METHOD"}:
            self._attribute(each, str(what), state)
        elif name.startswith(("STORE_", "DELETE_")):
            self._store(each, state)
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and each.argrepr == "[]"):
            owner, key = state.pop(2)
            state.push(element(owner, key))
        elif name == "FOR_ITER":
            state.push(element(state.stack[-1], None) if state.stack else Value())
        elif name == "UNPACK_SEQUENCE":
            (owner,) = state.pop()
            state.push(*[element(owner, None)] * int(what))
        elif name in {"IMPORT_NAME", "IMPORT_FROM"}:
            self._import(name, str(what), state)
        elif name in {"CALL", "CALL_KW"}:
            self._call(each, int(what), state)
        elif name == "CALL_FUNCTION_EX":  # with *values, whose number is not known
            parts = state.pop(1 - dis.stack_effect(each.opcode, each.arg))
            functions = [part for part in parts if part is not NULL]
            state.push(self._called(functions[0], functions[1:], {}, each, state))
        else:
            self._any(each, state)

    def _any(self, each: dis.Instruction, state: State) -> None:
        effect = dis.stack_effect(each.opcode, each.arg, jump=False)
        if each.opname.startswith("BUILD_"):
            parts = state.pop(1 - effect)
        elif effect > 0:
            state.push(*[_made(state.stack[-1:], each)] * effect)
            return
        else:
            if each.opname == "BINARY_OP" and each.argrepr.endswith("=") and state.stack[-2:-1]:
                left = state.stack[-2]
                if left.place and left.thing is not MISSING and is_container(left.thing):
                    self._change(left.place)
            parts = state.pop(1 - effect)
        telling = each.opname in {"BUILD_STRING", "BUILD_TUPLE", "FORMAT_SIMPLE", "FORMAT_VALUE"}
        state.push(_union(parts) if telling else _made(parts, each))

    def _fast(self, name: str, what: object, state: State) -> None:
        names = what if isinstance(what, tuple) else (what,)
        verbs = [part for part in name.split("_") if part in {"LOAD", "STORE", "DELETE"}]
        for verb, local in zip(verbs, names, strict=False):
            if verb == "LOAD":
                state.push(state.here.get(str(local), Value()))
            elif verb == "STORE":
                state.here[str(local)] = state.pop()[0]
            else:
                state.here.pop(str(local), None)
        if name == "LOAD_FAST_AND_CLEAR":
            state.here.pop(str(what), None)

    def _global(self, each: dis.Instruction, name: str, state: State) -> None:
        if dis.stack_effect(each.opcode, each.arg) > 1:  # of a function, to be called
            state.push(NULL)
        if name in state.here:
            state.push(state.here[name])
            return
        thing = self.known.get(name, MISSING)
        if thing is MISSING:
            thing = vars(builtins).get(name, MISSING)
        state.push(outside(thing, name))

    def _attribute(self, each: dis.Instruction, name: str, state: State) -> None:
        (owner,) = state.pop()
        value = attribute(owner, name)
        if dis.stack_effect(each.opcode, each.arg) == 1:  # of a method, to be called
            state.push(NULL)
        state.push(Value(value.thing, value.place, value.sources, owner, name))
        if self._reporting and name == "O_RDWR":
            self.files |= {"read", "write"}
        if self._reporting and owner.name == _IMPORTED:
            self.named.append(value.thing)

    def _import(self, name: str, what: str, state: State) -> None:
        if name == "IMPORT_NAME":
            _, names = state.pop(2)
            whole = what if names.thing is not None else what.partition(".")[0]
            state.push(Value(live(named(whole, "")), whole))
        else:
            state.push(attribute(state.stack[-1], what) if state.stack else Value())

    def _store(self, each: dis.Instruction, state: State) -> None:
        name, what = each.opname, str(each.argval)
        kind = name.partition("_")[2]
        deleting = name.startswith("DELETE")
        value = Value() if deleting else None
        if kind == "SUBSCR":
            *rest, owner, key = state.pop(2 if deleting else 3)
            self._put(element(owner, key), owner, key.sources, value or rest[0], each, state)
        elif kind == "SLICE":
            _, owner, *_ = state.pop(4)
            if owner.place:
                self._change(owner.place)
        elif kind == "ATTR":
            *rest, owner = state.pop(1 if deleting else 2)
            self._put(attribute(owner, what), owner, frozenset(), value or rest[0], each, state)
        else:
            stored = value or state.pop()[0]
            if kind == "GLOBAL" or (kind == "DEREF" and what in self.closure):
                held = self.known.get(what) if kind == "GLOBAL" else self.outer(what)
                variable = Value(held, what)
                if not is_accumulator(held):
                    self._put(variable, variable, frozenset(), stored, each, state)
            elif deleting:
                state.here.pop(what, None)
            else:
                state.here[what] = stored

    def _put(
        self,
        to: Value,
        owner: Value,
        key: frozenset[str],
        value: Value,
        each: dis.Instruction,
        state: State,
    ) -> None:
        """Put a value at a place, and tell apart what was read there before."""
        if not owner.place:
            return
        place = to.place
        if each.opname.startswith("DELETE"):
            self._change(place)
        if self._reporting:
            self.stores.append(Store(place, key | owner.sources, value, each.offset))
        made = frozenset(part for part in value.sources if part.startswith("made "))
        read, stale = f"read {place}", frozenset([f"stale {place}"])
        for local, held in state.here.items():
            if read in held.sources and not (made and made <= held.sources):
                state.here[local] = held.with_sources(stale)
        state.stored[place] = made or value.sources

    def _change(self, place: str) -> None:
        if self._reporting:
            self.changed[place] = None

    def _call(self, each: dis.Instruction, count: int, state: State) -> None:
        keywords, self._keywords = self._keywords, ()
        if each.opname == "CALL_KW":
            names = state.pop()[0].thing
            keywords = names if isinstance(names, tuple) else ()
        arguments = state.pop(count)
        function = next((part for part in state.pop(2) if part is not NULL), Value())
        positional = arguments[: len(arguments) - len(keywords)]
        by_name = dict(zip(keywords, arguments[len(positional) :], strict=False))
        state.push(self._called(function, positional, by_name, each, state))

    def _called(
        self,
        function: Value,
        given: list[Value],
        by_name: dict[str, Value],
        each: dis.Instruction,
        state: State,
    ) -> Value:
        """Return what a call returns; the well-known functions are understood."""
        owner, name, path = function.owner, function.name, dotted(function.thing)
        if by_name.get("out", NULL).place:
            self._change(by_name["out"].place)
        self._note_files(name or path, path, given, by_name)
        for part in (function, *given, *by_name.values()):
            self._note_bound(part)
        if name == "__setattr__" and given[2:]:  # as of object
            path = "builtins.setattr"
        elif owner is not None and given and given[0].place and _is_builtin_type(owner.thing):
            owner, given = given[0], given[1:]  # as by list.append(L, x)
        if path in _CHANGING_FIRST and given and given[0].place:
            self._change(given[0].place)
        special = self._of_builtin(path, given, each, state)
        if special is not None:
            return special
        if owner is not None and owner.place:
            result = self._of_method(owner, name, given, each, state)
            if result is not None:
                return result
        if isinstance(function.thing, FunctionType) and self._reporting:
            self._note_call(function.thing, given, by_name)
        parts = [*given, *by_name.values(), *([owner] if owner is not None else [])]
        last = name or path.rpartition(".")[2]
        return _union(parts) if last in _TELLING_APART else _made(parts, each)

    def _of_builtin(  # noqa: C901, PLR0911 - likewise
        self, path: str, given: list[Value], each: dis.Instruction, state: State
    ) -> Value | None:
        text = given[1].thing if len(given) > 1 else MISSING
        first = given[0] if given else Value()
        if path == "builtins.globals":
            return Value(self.known, "globals()", frozenset(["read globals()"]))
        if path == "builtins.vars" and given:
            return attribute(first, "__dict__")
        if path == "builtins.type" and len(given) == 1:
            return attribute(first, "__class__")
        if path == "builtins.getattr" and isinstance(text, str):
            value = attribute(first, text)
            if self._reporting:
                self.named.append(value.thing)
            rest = _union(given[2:]).sources
            return Value(value.thing, value.place, value.sources | rest, first, text)
        if path == "builtins.setattr" and given[2:]:
            to = attribute(first, text if isinstance(text, str) else "…")
            self._put(to, first, given[1].sources, given[2], each, state)
            return Value()
        if path == "_operator.setitem" and given[2:]:
            self._put(element(first, given[1]), first, given[1].sources, given[2], each, state)
            return Value()
        if path in _IMPORTING and isinstance(first.thing, str):
            return Value(live(named(first.thing, "")), first.thing, name=_IMPORTED)
        if path == "os.getenv" and given:
            return element(Value(MISSING, "os.environ", frozenset(["read os.environ"])), first)
        if self._reporting and path in _EVALUATING and isinstance(first.thing, str):
            self.programs.append(compile(first.thing, "<text>", path.rpartition(".")[2]))
        return None

    def _of_method(
        self, owner: Value, name: str, given: list[Value], each: dis.Instruction, state: State
    ) -> Value | None:
        """Return what a method of a thing outside returns, if that is a container."""
        if owner.thing is not MISSING and not is_container(owner.thing):
            return None
        if name in _CHANGING or (name == "get" and is_container(owner.thing, QUEUES)):
            self._change(owner.place)
        if name in {"__setitem__", "setdefault"} and given:
            to = element(owner, given[0])
            value = given[1] if len(given) > 1 else Value()
            self._put(to, owner, given[0].sources, value, each, state)
            return Value(MISSING, to.place, to.sources)
        if name in {"get", "__getitem__"} and given:
            item = element(owner, given[0])
            return item.with_sources(_union(given[1:]).sources)
        if name in {"items", "values"}:
            return owner
        return None

    def _note_call(
        self, function: FunctionType, given: list[Value], by_name: Mapping[str, Value]
    ) -> None:
        places = function.__code__.co_varnames[: function.__code__.co_argcount]
        bound = {**dict(zip(places, given, strict=False)), **by_name}
        shared = {
            name: value.thing
            for name, value in bound.items()
            if value.place
            and value.thing is not MISSING
            and not isinstance(value.thing, (*PLAIN, *UNCHANGING))
        }
        if shared:
            self.called.append((function, shared))

    def _note_bound(self, value: Value) -> None:
        """Note a method of a container that is called under another name, or handed on."""
        owner, name, place = MISSING, value.name, ""
        if value.owner is not None:
            owner, place = value.owner.thing, value.owner.place
        elif isinstance(value.thing, BuiltinFunctionType):
            owner, name, place = value.thing.__self__, value.thing.__name__, value.place
        elif isinstance(value.thing, Member):
            owner, name = value.thing.arguments[0], str(value.thing.arguments[1])
            place = value.place
        if place and name in _CHANGING and is_container(owner):
            self._change(place)

    def _note_files(
        self, name: str, path: str, given: list[Value], by_name: Mapping[str, Value]
    ) -> None:
        if not self._reporting:
            return
        last = name.rpartition(".")[2]
        if path in _OPENING or name == "open":
            at = 1 if path in _OPENING else 0
            mode = by_name.get("mode", given[at] if len(given) > at else Value("r")).thing
            if isinstance(mode, str):
                self.files |= {"write"} if set(mode) & set("awx+") else {"read"}
                self.files |= {"read"} if "+" in mode else set()
        elif last in _READING_FILES:
            self.files.add("read")
        elif last in _WRITING_FILES:
            self.files.add("write")


def _is_builtin_type(thing: object) -> bool:
    return isinstance(thing, type) and thing.__module__ == "builtins"


def _union(parts: Iterable[Value]) -> Value:
    return Value(sources=frozenset().union(*[part.sources for part in parts]))


def _made(parts: Iterable[Value], each: dis.Instruction) -> Value:
    return Value(sources=_union(parts).sources | {f"made {each.offset}"})
