"""What several functions of a query are made of is called once for all of them.

``df.withColumn("clean", clean("text")).withColumn("words", words("clean"))`` is ``clean(text)``
and ``words(clean(text))`` to Spark, and each calls ``clean`` for itself; a third column made of the
second calls it a third time. A part that functions have in common (see
:mod:`eddyline.blocks.nests`) keeps the values that it gave for the latest rows, and whoever comes
to the same arguments takes them from there. They are Python's own values, as the functions of a
nest hand them on unconverted.

Adaptivity does not change answers: rows are worked on one by one, as in Spark, and a value is taken
only for arguments that the part cannot tell apart. What is kept is as it was when the part returned
it: texts, numbers and dates, which nobody can change, and copies of lists and dicts of these, which
whoever takes one gets a copy of. Another value is handed on and not kept, nor is what a call
raises.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Row

from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.nests import part_of
from eddyline.engine.clock import Clock
from eddyline.engine.functions.argument_keys import keys_of
from eddyline.tasks.calling.pickled_functions import UserCode, in_one_go
from eddyline.tasks.calling.row_function import Reader, RowFunction, Writer, call_rows

UNCHANGEABLE: Final = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None)),
        *(decimal.Decimal, dt.date, dt.datetime, dt.time, dt.timedelta),
    }
)
"""Types of values that nobody can change. A class that is made of one of them may be changeable."""

_GROUPS: Final = frozenset({tuple, Row})
"""Types that cannot be changed if nothing in them can."""

_COPIED: Final[Mapping[type, Callable[[Any], Any]]] = {
    list: list.copy,
    dict: dict.copy,
    bytearray: bytearray.copy,
}
"""How values that can be changed are copied. Not so sets: a copy may be in another order."""

KEEP_COST: Final = 1.6e-6
"""Seconds that it takes to keep a row's number or text; a list of six texts takes 3.4 us."""

FIND_COST: Final = 0.3e-6
"""Seconds that it takes to find a row's number or text; a list of six texts takes 0.9 us."""

SAMPLED: Final = 64
"""Of so many calls the first is timed: to read the clock takes 1 us."""

TRIAL: Final = 500
"""Calls after which it is known whether values can be kept, and what they cost."""

ALLOWANCE: Final = 4e-2
"""Seconds that keeping values may take in vain: those of a batch of lists take 34 ms."""

SHARE: Final = 0.02
"""Part of the time in a part's calls that may be lost beyond."""

LARGE_KEY: Final = 1 << 10
"""Bytes of a row's arguments, on average, from which on a digest stands for them."""

UNKNOWN: Final = object()


@dataclass(slots=True)
class Visit:
    """What happened at a part while a function was called for some rows."""

    hits: int = 0
    misses: int = 0
    unkept: int = 0
    timed: int = 0
    seconds: float = 0.0


class SharedPart:
    """The values of one part for the latest rows, by their arguments, and whether it pays.

    >>> part, visit = SharedPart(largest=1_000), Visit()
    >>> split = part.taking(lambda key, text: text.split(), visit, lambda: 0.0)
    >>> split(b"a b", "a b"), split(b"a b", "a b"), visit.hits
    (['a', 'b'], ['a', 'b'], 1)
    """

    def __init__(self, largest: int) -> None:
        """Begin without any; ``largest`` is how many bytes all values may take, with their keys."""
        self._latest: dict[Hashable, Any] = {}
        self._before: dict[Hashable, Any] = {}
        self._largest = largest // 2  # of the latest, and of those before them
        self._nbytes = 0
        self._misses = 0
        self._unkept = 0
        self._timed = 0
        self._seconds = 0.0
        self._lost = 0.0

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._latest) + len(self._before)

    @property
    def pays(self) -> bool:
        """Whether the calls that were spared make up for the time spent on keeping values."""
        if self._misses >= TRIAL and (
            2 * self._unkept > self._misses or self._call_cost < KEEP_COST
        ):
            return False
        return self._lost <= ALLOWANCE + SHARE * self._misses * self._call_cost

    @property
    def _call_cost(self) -> float:
        return self._seconds / self._timed if self._timed else 0.0

    def taking(self, call: UserCode, visit: Visit, now: Callable[[], float]) -> UserCode:
        """Return a function that takes the value of a row, by its key, or else calls for it.

        ``call`` is given the key, too. ``visit`` counts what happens, by the clock ``now``.
        """
        latest, before = self._latest, self._before
        copies, called = _COPIED.get, self._misses

        def take(key: Hashable, *values: object) -> object:
            nonlocal latest, before
            value = latest.get(key, UNKNOWN)
            if value is UNKNOWN and before:
                value = before.get(key, UNKNOWN)
            if value is not UNKNOWN:
                visit.hits += 1
                copy = copies(type(value))
                return value if copy is None else copy(value)
            visit.misses += 1
            if (called + visit.misses) % SAMPLED != 1:
                value = call(key, *values)
            else:
                earlier, started = now(), now()
                value = call(key, *values)
                visit.seconds += max(now() - 2 * started + earlier, 0.0)
                visit.timed += 1
            kept = as_it_is_now(value)
            if kept is UNKNOWN:
                visit.unkept += 1
                return value
            if self._nbytes >= self._largest:
                before, latest = latest, {}
                self._before, self._latest, self._nbytes = before, latest, 0
            latest[key] = kept
            self._nbytes += _size(key) + _size(kept)
            return value

        return take

    def visited(self, visit: Visit, seconds: float) -> None:
        """Learn from a visit, before which rows were told apart in so many seconds."""
        self._misses += visit.misses
        self._unkept += visit.unkept
        self._timed += visit.timed
        self._seconds += visit.seconds
        spent = seconds + visit.misses * KEEP_COST + visit.hits * FIND_COST
        spent -= visit.hits * self._call_cost
        self._lost = max(self._lost + spent, 0.0)
        if not self.pays:  # never again
            self._latest, self._before = {}, {}


def as_it_is_now(value: object) -> object:
    """Return a value that stays as one is now, whatever becomes of that; UNKNOWN if there is none.

    >>> as_it_is_now(["a", ("b", None)]), as_it_is_now([["a"]]) is UNKNOWN
    (['a', ('b', None)], True)
    """
    kind = type(value)
    try:
        if kind in UNCHANGEABLE or (kind in _GROUPS and _cannot_change(value)):
            return value
        copy = _COPIED.get(kind)
        if copy is None or not _cannot_change(value):
            return UNKNOWN
        return copy(value)
    except TypeError:  # a type that cannot be hashed
        return UNKNOWN


def _cannot_change(values: Any) -> bool:  # noqa: ANN401 - what a user's function returns
    """Return whether nobody can change what is in a list, a tuple or a dict."""
    inside = (*values.keys(), *values.values()) if type(values) is dict else values
    # Without a loop of Python's where that tells: 0.2 us instead of 0.4 for a list of six texts.
    return UNCHANGEABLE.issuperset(map(type, inside)) or all(
        type(each) in UNCHANGEABLE
        or (type(each) in _GROUPS and UNCHANGEABLE.issuperset(map(type, each)))
        for each in inside
    )


def _size(value: Any) -> int:  # noqa: ANN401 - what a user's function returns
    """Return about how many bytes a value takes that can be kept."""
    size = sys.getsizeof(value)
    if type(value) not in UNCHANGEABLE and value and type(value) is not bytearray:
        some = next(iter(value.values() if type(value) is dict else value))
        size += len(value) * sys.getsizeof(some)
    return size


@dataclass(slots=True)
class SharedParts:
    """The parts of one job's functions in this process."""

    _parts: dict[tuple[UserFunction, SessionSettings], SharedPart] = field(default_factory=dict)

    def of(self, part: UserFunction, settings: SessionSettings, largest: int) -> SharedPart:
        """Return what is kept of a part, called under these settings; see :class:`SharedPart`."""
        return self._parts.setdefault((part, settings), SharedPart(largest))


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the functions of a job have in common, a clock to tell what it costs, and a bound.

    ``largest`` is how many bytes the values of one part may take.
    """

    parts: SharedParts
    clock: Clock
    largest: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Functions of a nest from one shared part to the next, as one.

    ``part`` keeps what they return; None for the outermost where nothing else is made of it.
    """

    code: UserCode
    part: SharedPart | None


def stretches_of(
    function: UserFunction,
    code: Sequence[UserCode],
    settings: SessionSettings,
    sharing: Sharing,
) -> list[Stretch]:
    """Return the stretches of a function, whose parts others share; ``code`` is its nest's."""
    stretches: list[Stretch] = []
    done = 0
    for length in sorted({*function.shared, len(code)}):
        part = None
        if length in function.shared:
            part = sharing.parts.of(part_of(function, length), settings, sharing.largest)
        stretches.append(Stretch(in_one_go(code[done:length]), part))
        done = length
    return stretches


class NestFunction(RowFunction):
    """A function made of parts that others are made of, too."""

    def __init__(
        self,
        whole: UserCode,
        stretches: Sequence[Stretch],
        readers: Sequence[Reader],
        write: Writer,
        clock: Clock,
    ) -> None:
        """``stretches`` are innermost first; ``whole`` is all of them in one go.

        ``clock`` tells whether keeping values pays.
        """
        super().__init__(whole, readers, write)
        self._stretches = stretches
        self._clock = clock
        self.taken = 0
        """Rows whose values were there, from a call that was made for an equal row."""

    def _called(
        self,
        columns: Sequence[pa.Array],
        arguments: Sequence[Sequence[Any]],
        rows: int,
        errors: dict[int, Exception],
    ) -> list[Any]:
        paying = [
            stretch.part
            for stretch in self._stretches
            if stretch.part is not None and stretch.part.pays
        ]
        if not paying:
            return super()._called(columns, arguments, rows, errors)
        started = self._clock.now()
        keys = _short_keys(columns, rows)
        if keys is None:
            return super()._called(columns, arguments, rows, errors)
        seconds = self._clock.now() - started
        visits = {id(part): Visit() for part in paying}
        function = self._calling(visits)
        try:
            return call_rows(function, [keys, *arguments], rows, errors)
        finally:
            for part in paying:
                part.visited(visits[id(part)], seconds / len(paying))
            outermost = visits.get(id(self._stretches[-1].part))
            self.taken += 0 if outermost is None else outermost.hits

    def _calling(self, visits: Mapping[int, Visit]) -> UserCode:
        """Return a function of a row's key and arguments, whose parts count what they do."""
        function: UserCode = _without_key(self._stretches[0].code)
        for number, stretch in enumerate(self._stretches):
            if number:
                function = _of_inner(stretch.code, function)
            visit = visits.get(id(stretch.part))
            if stretch.part is not None and visit is not None:
                function = stretch.part.taking(function, visit, self._clock.now)
        return function


def _short_keys(columns: Sequence[pa.Array], rows: int) -> Sequence[Hashable] | None:
    """Return what tells rows apart, in a few bytes a row; None where that takes too many."""
    keys = keys_of(columns, rows)
    if keys is None:
        return None
    values: list[Any] = keys.to_pylist()
    if keys.nbytes <= LARGE_KEY * rows:
        return values
    return [value if value is None else hashlib.sha256(value).digest() for value in values]


def _without_key(code: UserCode) -> UserCode:
    return lambda _, *values: code(*values)


def _of_inner(code: UserCode, inner: UserCode) -> UserCode:
    return lambda key, *values: code(inner(key, *values))
