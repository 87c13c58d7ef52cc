"""The functions of standing queries in a worker, and what is remembered of them.

A rule is asked of every event, for as long as the stream runs. What a deterministic function
has returned is remembered across rules, cells and micro-batches, so that a worker process calls it
once for each tuple of arguments: columns, and the values of markers. What is remembered has a
bound, which all functions of the process share.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.accumulators import Accumulator, _accumulatorRegistry

from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.engine.functions.balance import Always
from eddyline.engine.functions.function_memory import FunctionMemory
from eddyline.engine.functions.remembered_function import Remembered, RememberedFunction
from eddyline.expressions.vector import Function, Vector
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.query_template import QueryTemplate
from eddyline.tasks.calling import made_function
from eddyline.wall_clock import WallClock

ROOM: Final = 64 << 20
"""Bytes that a worker process remembers of the functions of all standing queries, together.

A short text and a number take about 150: half a million answers.
"""

FunctionKey: TypeAlias = "tuple[UserFunction, SessionSettings]"
"""What makes a function: all that was pickled with it, and the settings that it sees."""


class FunctionMemories:
    """Memories of functions, each for as long as some holder calls the function.

    They share the room equally.
    """

    def __init__(self, room: int) -> None:
        """Together they hold ``room`` bytes."""
        self._room = room
        self._memories: dict[FunctionKey, Remembered] = {}
        self._wanted: WeakKeyDictionary[object, frozenset[FunctionKey]] = WeakKeyDictionary()

    def __len__(self) -> int:
        """Return how many functions are remembered."""
        return len(self._memories)

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        return sum(remembered.memory.nbytes for remembered in self._memories.values())

    def of(self, function: FunctionKey, holder: object) -> Remembered:
        """Return the memory of a function that a holder calls from now on."""
        self.keep({*self._wanted.get(holder, ()), function}, holder)
        return self._memories[function]

    def keep(self, functions: Collection[FunctionKey], holder: object) -> None:
        """Take note of which functions a holder calls; what nobody calls is forgotten."""
        self._wanted[holder] = frozenset(functions)
        wanted = frozenset[FunctionKey]().union(*self._wanted.values())
        share = self._room // max(len(wanted), 1)
        for function in self._memories.keys() - wanted:
            del self._memories[function]
        for function in wanted - self._memories.keys():
            self._memories[function] = Remembered(FunctionMemory(share), Always())
        for remembered in self._memories.values():
            remembered.memory.resize(share)


_MEMORIES: Final = FunctionMemories(ROOM)
"""Those of this worker process."""


class EngineFunctions:
    """The functions of all queries of an eddy, each made once."""

    def __init__(self, eddy: SharedEddy, *, remember: bool) -> None:
        """Give them to an eddy, with memories or without."""
        self._eddy = eddy
        self._remember = remember
        self._known: dict[FunctionKey, tuple[int, RuleFunction]] = {}

    def numbers(self, template: QueryTemplate) -> list[int]:
        """Return the numbers that the functions of a template have in the eddy."""
        numbers = []
        for function in template.functions:
            key = function, template.settings
            if key not in self._known:
                made = self._made(key)
                (number,) = self._eddy.take_functions([made])
                self._known[key] = number, made
            numbers.append(self._known[key][0])
        return numbers

    def keep_only(self, templates: Iterable[QueryTemplate]) -> None:
        """Let functions that no template calls any more go, with what is remembered of them."""
        if not self._known:
            return
        called = {
            (user_function, template.settings)
            for template in templates
            for user_function in template.functions
        }
        for key in self._known.keys() - called:
            _, function = self._known.pop(key)
            function.let_go()
        _MEMORIES.keep(self._known, self)

    def _made(self, key: FunctionKey) -> RuleFunction:
        known = set(_accumulatorRegistry)
        _report(_ACCUMULATORS.values())  # so that an earlier one is not made a second time
        made = made_function(*key)
        for number in _accumulatorRegistry.keys() - known - _ACCUMULATORS.keys():
            _ACCUMULATORS[number] = KeptAccumulator(_accumulatorRegistry[number])
        called = _Called(made.function)
        if made.forgetful or not self._remember:
            return RuleFunction(called)
        return RuleFunction(RememberedFunction(called, _MEMORIES.of(key, self), WallClock()))


class RuleFunction:
    """A function as an eddy has it, for good: what is behind it can go."""

    def __init__(self, function: Function) -> None:
        """Stand for a function."""
        self._function: Function | None = function
        self.vectorized = function.vectorized

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call it; RuntimeError where it was let go."""
        if self._function is None:
            raise RuntimeError("this function was let go, since no query calls it any more")
        return self._function(columns, rows)

    def let_go(self) -> None:
        """Forget what is behind it."""
        self._function = None


class _Called:
    """A function of users, called in task after task."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.vectorized = function.vectorized

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        _report(_ACCUMULATORS.values())
        results = self._function(columns, rows)
        for error in results.errors.values():
            error.__traceback__ = None  # frames, and all that is in them, for as long as the memory
        return results


class KeptAccumulator:
    """An accumulator that functions update for longer than the task in which it was unpickled.

    A task reports those that were unpickled in it, and a function of rules is unpickled only once.
    """

    def __init__(self, accumulator: Accumulator[Any]) -> None:
        """Take one that has just been unpickled, with nothing added."""
        self._accumulator = accumulator
        self._zero = pickle.dumps(accumulator._value)  # noqa: SLF001 - PySpark gives it to drivers only

    def report(self) -> None:
        """Have what is added from now on reported by the task that runs."""
        if self._accumulator.aid not in _accumulatorRegistry:
            self._accumulator._value = pickle.loads(self._zero)  # noqa: S301, SLF001 - our own pickle
            _accumulatorRegistry[self._accumulator.aid] = self._accumulator


_ACCUMULATORS: Final[dict[int, KeptAccumulator]] = {}
"""The accumulators of functions in this worker process, by Spark's number."""


def _report(accumulators: Iterable[KeptAccumulator]) -> None:
    for accumulator in accumulators:
        accumulator.report()
