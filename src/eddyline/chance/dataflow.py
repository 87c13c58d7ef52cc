"""What the values in a function's code are, instruction by instruction: outside of the call or not.

An abstract interpretation (Cousot and Cousot, 1977) of the byte code: every instruction is visited
until the values before it no longer change, so the cost is that of the instructions times the depth
of their loops, and never more than :data:`VISITS_MOST` visits. Nothing is run.
"""

from __future__ import annotations

import dis
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import CodeType
from typing import Final

from eddyline.chance.inert_pickle import MISSING

VISITS_MOST: Final = 20_000

_ENDS: Final = frozenset(["RAISE_VARARGS", "RERAISE", "RETURN_CONST", "RETURN_VALUE"])
_JUMPS: Final = frozenset([*dis.hasjrel, *dis.hasjabs])
_NOTHING: Final = frozenset[str]()


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A value, as far as it is known.

    ``place`` is where it is kept outside of the call, as "d['n']"; empty of what the call has made
    and of what it was given. ``sources`` is what it was computed from: "argument k", "read d['n']",
    "made 24" by the instruction there, and "split P" where it hangs on whether P was stored.
    ``owner`` and ``name`` are those of a method.
    """

    thing: object = MISSING
    place: str = ""
    sources: frozenset[str] = _NOTHING
    owner: Value | None = None
    name: str = ""

    def same_as(self, other: Value) -> bool:
        """Whether nothing else is known of another value; the things are not asked."""
        return self is other or (
            self.thing is other.thing
            and self.place == other.place
            and self.sources == other.sources
            and self.name == other.name
        )

    def with_sources(self, sources: frozenset[str]) -> Value:
        """Return it as computed from more."""
        return Value(self.thing, self.place, self.sources | sources, self.owner, self.name)


NULL: Final = Value(name="NULL")
"""What the interpreter puts beside a function that is no method."""


@dataclass
class State:
    """What is known before an instruction; ``stored`` are places, and what was put there."""

    stack: list[Value] = field(default_factory=list)
    here: dict[str, Value] = field(default_factory=dict)
    stored: dict[str, frozenset[str]] = field(default_factory=dict)

    def copy(self) -> State:
        """Return a state that can be changed."""
        return State(list(self.stack), dict(self.here), dict(self.stored))

    def pop(self, count: int = 1) -> list[Value]:
        """Take the topmost values; unknown ones count as nothing from outside."""
        taken = self.stack[-count:] if count else []
        del self.stack[len(self.stack) - len(taken) :]
        return [Value()] * (count - len(taken)) + taken

    def push(self, *values: Value) -> None:
        """Put values on top."""
        self.stack.extend(values)

    def change(self, effect: int) -> None:
        """Make the stack higher or lower, by unknown values."""
        if effect < 0:
            self.pop(-effect)
        self.push(*[Value()] * effect)

    def merged(self, other: State) -> State:
        """Return what is known when either of two states may hold."""
        height = min(len(self.stack), len(other.stack))
        mine, others = self.stack[len(self.stack) - height :], other.stack[-height:]
        stack = [_either(*pair) for pair in zip(mine, others if height else [], strict=True)]
        stored = {
            place: made | other.stored[place]
            for place, made in self.stored.items()
            if place in other.stored
        }
        here = {
            name: _either(self._told(name, other), other._told(name, self))
            for name in self.here.keys() | other.here.keys()
        }
        return State(stack, here, stored)

    def same_as(self, other: State) -> bool:
        """Whether nothing else is known in another one."""
        return (
            len(self.stack) == len(other.stack)
            and self.here.keys() == other.here.keys()
            and self.stored == other.stored
            and all(map(Value.same_as, self.stack, other.stack))
            and all(value.same_as(other.here[name]) for name, value in self.here.items())
        )

    def _told(self, name: str, other: State) -> Value:
        """Return a variable, as hanging on a store if it shows whether that has happened."""
        value, there = self.here.get(name, Value()), other.here.get(name, Value())
        if value.same_as(there):
            return value
        split = {
            f"split {place}"
            for place, made in self.stored.items()
            if place not in other.stored and not given_back(value, place, made)
        }
        return value.with_sources(frozenset(split)) if split else value


def given_back(value: Value, place: str, made: frozenset[str]) -> bool:
    """Whether a value is what was stored at a place, or computed from it."""
    return f"read {place}" in value.sources or (bool(made) and made <= value.sources)


def read_code(
    code: CodeType, first: State, step: Callable[[dis.Instruction, State], None]
) -> Iterator[tuple[dis.Instruction, State]]:
    """Run ``step``, which changes states, to a fixed point; yield each instruction's state before.

    Instructions that are not reached are left out.
    """
    instructions = list(dis.get_instructions(code))
    following = {a.offset: b.offset for a, b in pairwise(instructions)}
    at = {instruction.offset: instruction for instruction in instructions}
    handlers = _handlers(code, instructions)
    before = {instructions[0].offset: first}
    waiting = [instructions[0].offset]
    for _ in range(VISITS_MOST):
        if not waiting:
            break
        offset = waiting.pop()
        for goes_to, state in _after(
            at[offset], before[offset], step, following.get(offset), handlers[offset]
        ):
            known = before.get(goes_to)
            new_state = state if known is None else known.merged(state)
            if known is None or not new_state.same_as(known):
                before[goes_to] = new_state
                waiting.append(goes_to)
    for instruction in instructions:
        if instruction.offset in before:
            yield instruction, before[instruction.offset].copy()


def leaves_without(code: CodeType, shunned: int) -> bool:
    """Whether a function can return although it never comes to the instruction at an offset."""
    instructions = list(dis.get_instructions(code))
    following = {a.offset: b.offset for a, b in pairwise(instructions)}
    at = {instruction.offset: instruction for instruction in instructions}
    handlers = _handlers(code, instructions)
    seen, waiting = {shunned}, [instructions[0].offset]
    while waiting:
        offset = waiting.pop()
        if offset in seen or offset not in at:
            continue
        seen.add(offset)
        if at[offset].opname.startswith("RETURN_") and at[offset].opname in _ENDS:
            return True
        waiting.extend(_successors(at[offset], following.get(offset)))
        waiting.extend(target for target, _ in handlers[offset])
    return False


def _successors(each: dis.Instruction, following: int | None) -> Iterator[int]:
    if each.opcode in _JUMPS:
        yield int(each.argval)
    if following is not None and each.opname not in _ENDS and not _always_jumps(each):
        yield following


def _always_jumps(each: dis.Instruction) -> bool:
    return each.opname.startswith("JUMP_") and "_IF_" not in each.opname


def _after(
    each: dis.Instruction,
    before: State,
    step: Callable[[dis.Instruction, State], None],
    following: int | None,
    handlers: list[tuple[int, int]],
) -> Iterator[tuple[int, State]]:
    for target, depth in handlers:
        raised = State([*before.stack[:depth], Value()], before.here, before.stored)
        yield target, raised
    for target in _successors(each, following):
        state = before.copy()
        if target == following:
            step(each, state)
        else:
            state.change(dis.stack_effect(each.opcode, each.arg, jump=True))
        yield target, state


def _handlers(
    code: CodeType, instructions: list[dis.Instruction]
) -> defaultdict[int, list[tuple[int, int]]]:
    """Return for each instruction where an exception goes, and the height of the stack there."""
    handlers: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        for instruction in instructions:
            if entry.start <= instruction.offset < entry.end:
                handlers[instruction.offset].append((entry.target, entry.depth + bool(entry.lasti)))
    return handlers


def _either(one: Value, other: Value) -> Value:
    if one.same_as(other):
        return one
    outside = one if one.place or not other.place else other
    same = one.thing is other.thing or outside.place
    return Value(
        outside.thing if same else MISSING,
        outside.place,
        one.sources | other.sources,
        outside.owner if same else None,
        outside.name if same else "",
    )
