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

from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.engine.clock import Clock
from eddyline.engine.functions.balance import Always
from eddyline.engine.functions.function_memory import FunctionMemory
from eddyline.engine.functions.remembered_function import Remembered, RememberedFunction
from eddyline.errors import FunctionTooSlowError
from eddyline.expressions.vector import NO_ERRORS, Function, Vector
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

    def __init__(self, eddy: SharedEddy, *, remember: bool, seconds: float | None = None) -> None:
        """Give them to an eddy, with memories or without; each may take ``seconds`` in a task."""
        self._eddy = eddy
        self._seconds = seconds
        self._remember = remember
        self._known: dict[FunctionKey, tuple[int, RuleFunction]] = {}

    def begin(self) -> None:
        """Begin with a task: no function has taken any time in it."""
        if self._seconds is not None:
            for _, function in self._known.values():
                function.begin()

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

    def of(self, template: QueryTemplate) -> list[RuleFunction]:
        """Return the functions of a template that was numbered."""
        return [self._known[function, template.settings][1] for function in template.functions]

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
        function, settings = key
        try:
            made = made_function(function, settings)
        except Exception as error:  # noqa: BLE001 - whatever unpickling the user's code raises
            kind = arrow_type(function.return_type, settings.time_zone)
            return RuleFunction(_Unloaded(kind, error), function.name)
        for number in _accumulatorRegistry.keys() - known - _ACCUMULATORS.keys():
            _ACCUMULATORS[number] = KeptAccumulator(_accumulatorRegistry[number])
        called = _Called(made.function)
        if made.forgetful or not self._remember:
            return RuleFunction(called, function.name, self._seconds)
        remembered = RememberedFunction(called, _MEMORIES.of(key, self), WallClock())
        return RuleFunction(remembered, function.name, self._seconds)


_CLOCK: Final = WallClock()

FIRST_ROWS: Final = 256
"""Rows that a function over vectors with a budget is called for at first, any other for one; then
twice as many each time that it has taken less than :data:`PART` of the budget for them."""

PART: Final = 1 / 32
"""The part of the budget by which a function may exceed it, about: it is not stopped in a call."""


class RuleFunction:
    """A function as an eddy has it, for good: what is behind it can go.

    With a budget it is called for a few rows at a time. When the budget of a task is spent it is
    not called any more in this task: each further row has the same error, and so pauses the
    queries that would need the call.
    """

    def __init__(
        self, function: Function, name: str, seconds: float | None = None, clock: Clock = _CLOCK
    ) -> None:
        """Stand for a function of this name, which may take so many ``seconds`` in a task."""
        self._clock = clock
        self._function: Function | None = function
        self._name = name
        self._seconds = seconds
        self._kind = pa.null()
        self.vectorized = function.vectorized
        self.begin()

    def begin(self) -> None:
        """Begin with a task."""
        self._taken, self._rows = 0.0, 0
        self._size = FIRST_ROWS if self.vectorized else 1
        self._spent: FunctionTooSlowError | None = None

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call it; RuntimeError where it was let go."""
        if self._function is None:
            raise RuntimeError("this function was let go, since no query calls it any more")
        if self._seconds is None or not rows:
            return self._function(columns, rows)
        return self._within(self._function, self._seconds, columns, rows)

    def _within(
        self, function: Function, seconds: float, columns: Sequence[pa.Array], rows: int
    ) -> Vector:
        """Call it for as many rows as there is time for."""
        parts: list[pa.Array] = []
        errors: dict[int, Exception] = {}
        at = 0
        while at < rows and self._spent is None:
            size = min(self._size, rows - at)
            started = self._clock.now()
            vector = function([column.slice(at, size) for column in columns], size)
            took = self._clock.now() - started
            # a copy: what is returned may be filled anew by the next call
            parts.append(pa.concat_arrays([vector.values]) if size < rows else vector.values)
            errors |= {at + place: error for place, error in vector.errors.items()}
            at += size
            self._kind = vector.values.type
            self._taken, self._rows = self._taken + took, self._rows + size
            if took < seconds * PART and size == self._size:
                self._size *= 2
            if self._taken > seconds:
                self._spent = FunctionTooSlowError(
                    f"{self._name} took {self._taken:.3g} s for {self._rows:,} rows in a task, and "
                    f"function_seconds is {seconds:g}"
                )
        if at < rows and self._spent is not None:
            parts.append(pa.nulls(rows - at, self._kind))
            errors |= dict.fromkeys(range(at, rows), self._spent)
        return Vector(pa.concat_arrays(parts), errors or NO_ERRORS)

    def let_go(self) -> None:
        """Forget what is behind it."""
        self._function = None


class _Unloaded:
    """Stands for a function that cannot be unpickled here: an error for each row."""

    vectorized = False

    def __init__(self, kind: pa.DataType, error: Exception) -> None:
        self._kind = kind
        self._error = error

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - there is none to call
        return Vector(pa.nulls(rows, self._kind), dict.fromkeys(range(rows), self._error))


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
