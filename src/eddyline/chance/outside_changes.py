"""What a function changes that outlives its call, and whether its results may hang on it.

Results hang on earlier calls where a call leaves something behind: a number in a dictionary of the
module, a value in a list of a closure or a default, an attribute of the function or of its object.
A call may change as it likes what it has made itself.

One way of leaving something behind is harmless and common: what is computed from a key is put under
that key, or what is computed from nothing is put anywhere, and the function returns the same
whether it was there or not. It is told from the others by the flow of the values: what is stored
comes from no more arguments than its key does and from nothing that the function changes; what is
returned is the stored value or hangs on no store. Another is a container that is only added to
(see :mod:`eddyline.chance.logs`). Where that cannot be told it is taken for a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Final

from eddyline.chance.dataflow import (
    State,
    Value,
    given_back,
    leaves_without,
    read_code,
)
from eddyline.chance.flow_steps import FlowSteps, Store
from eddyline.chance.inert_pickle import MISSING
from eddyline.chance.logs import is_log

_TOO_LONG: Final = 4_000  # instructions of one function


@dataclass(frozen=True)
class _Return:
    value: Value
    stored: dict[str, frozenset[str]]


def changes_in(code: CodeType, steps: FlowSteps) -> Iterator[str]:
    """Yield what a function changes so that results may hang on earlier calls, as text.

    Whatever else is found on the way is in ``steps`` then. Takes time in proportion to the
    instructions, and twice the stores.
    """
    if len(code.co_code) > 2 * _TOO_LONG:
        return
    returns: list[_Return] = []
    tested: set[str] = set()
    for instruction, state in read_code(code, State([], dict(steps.arguments(code))), steps.step):
        steps.report(instruction, state.copy())
        if instruction.opname in {"RETURN_VALUE", "YIELD_VALUE"}:
            returns.append(_Return(state.pop()[0], state.stored))
        elif instruction.opname == "RETURN_CONST":
            returns.append(_Return(Value(), state.stored))
        elif "JUMP" in instruction.opname and "_IF_" in instruction.opname and state.stack:
            tested |= state.stack[-1].sources

    def meaning(name: str) -> object:
        if name in code.co_varnames:
            return steps.given.get(name, MISSING)
        return steps.outer(name) if name in steps.closure else steps.known.get(name, MISSING)

    changed = [place for place in steps.changed if not is_log(code, place, meaning)]
    yield from (f"changes {place}, which outlives the call" for place in changed)
    places = {store.place for store in steps.stores}
    for store in steps.stores:
        if not _is_settling(store, places, returns, tested, code):
            yield f"changes {store.place}, which outlives the call"


def _is_settling(  # noqa: PLR0911 - a rule each
    store: Store, places: set[str], returns: Sequence[_Return], tested: set[str], code: CodeType
) -> bool:
    """Whether a function returns the same whether it has stored something before or not."""
    value, place = store.value, store.place
    if not _arguments(value.sources) <= _arguments(store.key):
        return False
    if not {source for source in store.key if source.startswith("made ")} <= value.sources:
        return False  # as C[k // 10] = k does; which of them is there hangs on what came first
    if any(_overlap(read, other) for read in _reads(value.sources) for other in places):
        return False
    conditional = leaves_without(code, store.offset)
    if not conditional and any(_overlap(read, place) for read in _reads(tested)):
        return False
    for outcome in returns:
        sources = outcome.value.sources
        if {f"split {place}", f"stale {place}"} & sources:
            return False
        if any(place.startswith(f"{read}[") for read in _reads(sources)):
            return False  # as of len(L)
        kept = outcome.stored.get(place) if conditional else None
        if kept is not None and not given_back(outcome.value, place, kept):
            return False
    return True


def _arguments(sources: frozenset[str]) -> set[str]:
    return {source for source in sources if source.startswith("argument ")}


def _reads(sources: frozenset[str] | set[str]) -> Iterator[str]:
    return (source.removeprefix("read ") for source in sources if source.startswith("read "))


def _overlap(one: str, other: str) -> bool:
    """Whether two places may be one, or one in the other.

    >>> _overlap("d", "d['n']"), _overlap("d[…]", "d['n']"), _overlap("d['m']", "d['n']")
    (True, True, False)
    """
    if one == other or other.startswith(f"{one}[") or one.startswith((f"{other}[", f"{other}.")):
        return True
    (base, item, _), (other_base, other_item, _) = one.partition("["), other.partition("[")
    return bool(item and other_item) and base == other_base and "[…]" in one + other
