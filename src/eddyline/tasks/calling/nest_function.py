"""What several functions of a query are made of is called once for all of them.

``df.withColumn("clean", clean("text")).withColumn("words", words("clean"))`` is ``clean(text)``
and ``words(clean(text))`` to Spark, and each calls ``clean`` for itself; a third column made of the
second calls it a third time. A part that functions have in common (see
:mod:`eddyline.blocks.nests`) keeps the values that it gave for the latest rows, and whoever comes
to the same arguments takes them from there. They are Python's own values, as the functions of a
nest hand them on unconverted.

Adaptivity does not change answers: a value is taken only for arguments that the part cannot tell
apart, and only if nobody can have changed it since. Texts and numbers cannot be changed; of lists
and the like a function gets a copy of its own; what is neither is handed on as it is, once, and
not kept. Nor is what a call raises.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Row

from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.nests import part_of
from eddyline.engine.clock import Clock
from eddyline.engine.functions.argument_keys import keys_of
from eddyline.tasks.calling.pickled_functions import UserCode, bind_keywords, in_one_go
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
    set: set.copy,
    bytearray: bytearray.copy,
}

ROOM: Final = 1 << 14
"""Rows whose values are kept at least: those of a batch of Spark's, which has 10,000.

The values of twice as many, or of two larger batches, are there at most.
"""

TRIAL: Final = 500
"""Rows after which it is known what a call costs, and what it costs to keep its value."""

ALLOWANCE: Final = 1e-2
"""Seconds that keeping values may take in vain: for a batch of 10,000 rows it takes 1 to 4 ms.

Only where a call costs more than that: else it can never pay.
"""

SHARE: Final = 0.02
"""Part of the time in a part's calls that may be lost beyond."""

SOME: Final = 64
"""Rows of a visit of which at least one is known where it is worth to look the others up."""

MOST_PER_ROW: Final = 1e-6
"""Seconds that keeping a row's value takes at most, unless something is loaded for the first."""

UNKNOWN: Final = object()


class SharedPart:
    """The values of one part for the latest rows, by their arguments, and whether it pays.

    >>> part = SharedPart()
    >>> part.keep([b"a", b"b"], ["A", ["B"]], {})
    >>> part.known([b"b", b"c"]) == [["B"], UNKNOWN]
    True
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._latest: dict[Hashable, Any] = {}
        self._before: dict[Hashable, Any] = {}
        self._calls = 0
        self._call_seconds = 0.0
        self._tried = 0
        self._tried_seconds = 0.0
        self._lost = 0.0

    @property
    def pays(self) -> bool:
        """Whether the calls that were spared made up for the time spent on keeping values."""
        if self._calls >= TRIAL and self._call_cost < self._tried_seconds / self._tried:
            return False
        return self._lost <= ALLOWANCE + SHARE * self._call_seconds

    @property
    def _call_cost(self) -> float:
        return self._call_seconds / self._calls if self._calls else 0.0

    def known(self, keys: Sequence[Hashable]) -> list[Any]:
        """Return the value for each row's arguments, ``UNKNOWN`` where there is none."""
        some = keys[:: max(len(keys) // SOME, 1)]
        if not any(key in self._latest or key in self._before for key in some):
            return [UNKNOWN] * len(keys)  # most probably; it would be 0.1 us a row to know
        latest, before = self._latest.get, self._before.get
        if not self._before:
            return [latest(key, UNKNOWN) for key in keys]
        return [
            value if (value := latest(key, UNKNOWN)) is not UNKNOWN else before(key, UNKNOWN)
            for key in keys
        ]

    def keep(
        self, keys: Sequence[Hashable], values: Sequence[Any], errors: Mapping[int, Exception]
    ) -> None:
        """Keep the values of rows that have not failed, if they can be kept."""
        if len(self._latest) >= ROOM:
            self._before, self._latest = self._latest, {}
        if not errors and set(map(type, values)) <= UNCHANGEABLE:
            self._latest.update(zip(keys, values, strict=True))
            return
        for row, (key, value) in enumerate(zip(keys, values, strict=True)):
            if row not in errors and _can_be_kept(value):
                self._latest[key] = value

    def called(self, rows: int, seconds: float) -> None:
        """Learn how long calls of the part took, those of the parts inside included."""
        self._calls += rows
        self._call_seconds += seconds

    def tried(self, rows: int, hits: int, seconds: float) -> None:
        """Learn how long it took to look rows up and to keep others, and how many were known."""
        seconds = min(seconds, rows * MOST_PER_ROW)
        self._tried += rows
        self._tried_seconds += seconds
        self._lost = max(self._lost + seconds - hits * self._call_cost, 0.0)


def _can_be_kept(value: Any) -> bool:  # noqa: ANN401 - whatever a user's function returns
    """Return whether nobody can change a value, or else a copy is as good as it is."""
    kind = type(value)
    if kind in UNCHANGEABLE:
        return True
    if kind in _COPIED:
        inside = (*value.keys(), *value.values()) if kind is dict else value
    elif kind in _GROUPS:
        inside = value
    else:
        return False
    # Without a loop of Python's where that tells: 0.2 us instead of 1 for a list of six texts.
    return UNCHANGEABLE.issuperset(map(type, inside)) or all(map(_cannot_change, inside))


def _cannot_change(value: object) -> bool:
    return type(value) not in _COPIED and _can_be_kept(value)


def handed_on(values: Sequence[Any]) -> Sequence[Any]:
    """Return values for a function that may change them, while somebody else has them as well."""
    if _COPIED.keys().isdisjoint(map(type, values)):
        return values
    return [_COPIED[type(value)](value) if type(value) in _COPIED else value for value in values]


class SharedParts:
    """The parts of one job's functions in this process."""

    def __init__(self) -> None:
        """Begin without any."""
        self._parts: dict[tuple[UserFunction, SessionSettings], SharedPart] = {}

    def of(self, part: UserFunction, settings: SessionSettings) -> SharedPart:
        """Return what is kept of a part, called under these settings."""
        return self._parts.setdefault((part, settings), SharedPart())


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the functions of a job have in common, and a clock to tell what it costs to share it."""

    parts: SharedParts
    clock: Clock


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
    parts: SharedParts,
) -> list[Stretch]:
    """Return the stretches of a function, whose parts others share; ``code`` is its nest's."""
    stretches: list[Stretch] = []
    done = 0
    for length in sorted({*function.shared, len(code)}):
        own = in_one_go(code[done:length])
        part = parts.of(part_of(function, length), settings) if length in function.shared else None
        stretches.append(Stretch(own if done else bind_keywords(own, function.keywords), part))
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
        """Rows whose values came from somebody else's call."""

    def _called(
        self,
        columns: Sequence[pa.Array],
        arguments: Sequence[Sequence[Any]],
        rows: int,
        errors: dict[int, Exception],
    ) -> list[Any]:
        if any(stretch.part is not None and stretch.part.pays for stretch in self._stretches):
            started = self._clock.now()
            keys = keys_of(columns, rows)
            if keys is not None:
                values = keys.to_pylist()
                seconds = self._clock.now() - started
                return self._values(len(self._stretches) - 1, values, arguments, errors, seconds)
        return super()._called(columns, arguments, rows, errors)

    def _values(
        self,
        number: int,
        keys: Sequence[Hashable],
        arguments: Sequence[Sequence[Any]],
        errors: dict[int, Exception],
        spent: float = 0.0,
    ) -> list[Any]:
        """Return what a stretch gives for each row, from its part or by calls.

        ``spent`` are the seconds that it took to tell rows apart.
        """
        part = self._stretches[number].part
        if part is None or not part.pays:
            return self._called_anew(number, keys, arguments, errors)
        started = self._clock.now()
        values = part.known(keys)
        missing = [row for row, value in enumerate(values) if value is UNKNOWN]
        hits = len(keys) - len(missing)
        looked = self._clock.now()
        fresh, failed = keys, dict[int, Exception]()
        if missing:
            own = arguments
            if hits:
                fresh = [keys[row] for row in missing]
                own = [[column[row] for row in missing] for column in arguments]
            results = self._called_anew(number, fresh, own, failed)
            called = self._clock.now()
            part.called(len(missing), called - looked)
            part.keep(fresh, results, failed)
            if hits:
                for row, value in zip(missing, results, strict=True):
                    values[row] = value
            else:
                values = results
            for position, error in failed.items():
                errors[missing[position]] = error
            looked += self._clock.now() - called
        part.tried(len(keys), hits, spent + looked - started)
        if number == len(self._stretches) - 1:
            self.taken += hits
        return values

    def _called_anew(
        self,
        number: int,
        keys: Sequence[Hashable],
        arguments: Sequence[Sequence[Any]],
        errors: dict[int, Exception],
    ) -> list[Any]:
        """Call the functions of a stretch, with what the stretch inside it gives."""
        rows, code = len(keys), self._stretches[number].code
        if not number:
            return call_rows(code, arguments, rows, errors)
        values = self._values(number - 1, keys, arguments, errors)
        if not errors:
            return call_rows(code, [handed_on(values)], rows, errors)
        sound = [row for row in range(rows) if row not in errors]
        failed: dict[int, Exception] = {}
        given = handed_on([values[row] for row in sound])
        results: list[Any] = [None] * rows
        for row, value in zip(sound, call_rows(code, [given], len(sound), failed), strict=True):
            results[row] = value
        errors.update((sound[position], error) for position, error in failed.items())
        return results
