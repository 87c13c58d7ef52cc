"""A function that is called once for each distinct tuple of arguments, where that pays.

A function is an index access method whose bind fields are its arguments, and a SteM on it is a
cache (Raman, Deshpande and Hellerstein, 2003, Section 2); what caching an expensive method
spares, and hashing for it, is from Hellerstein and Naughton (1996). Here it is a function like
others, so that a remembered predicate is to the eddy what it has become: a cheap predicate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.engine.clock import Clock
from eddyline.engine.functions.argument_keys import keys_of
from eddyline.engine.functions.balance import Balance
from eddyline.engine.functions.function_memory import FunctionMemory
from eddyline.errors import FunctionAnswerError
from eddyline.expressions.vector import NO_ERRORS, CollectiveFailure, Function, Vector

_PARTS: Final = np.arange(256)
PLACES: Final = (_PARTS + _PARTS**2 * math.sqrt(2) % 1) / 256
"""Where in a visit rows are picked out: somewhere in each of 256 parts of it.

Evenly, numbers that go round in a circle would seem never to repeat.
"""


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """What one function's memory did so far.

    ``calls`` are rows that the function was called for, ``hits`` rows that were answered without
    a call, ``distinct`` tuples of arguments that are held, in ``nbytes`` bytes. Seconds are those
    of the clock, in calls and beside them.
    """

    calls: int
    hits: int
    distinct: int
    nbytes: int
    call_seconds: float
    lookup_seconds: float


@dataclass(slots=True)
class Remembered:
    """Results of a function, and whether it pays to keep them: what outlives a task."""

    memory: FunctionMemory
    balance: Balance = field(default_factory=Balance)


class RememberedFunction:
    """A deterministic function with a memory.

    What one row's call raises is the error of its arguments, and remembered like a value. Where a
    function over vectors fails, any of the rows may be the cause: nothing of that is remembered.
    """

    def __init__(
        self,
        function: Function,
        remembered: Remembered,
        clock: Clock,
        balance: Balance | None = None,
    ) -> None:
        """``remembered`` may hold results of this function from an earlier task.

        Its balance decides whether it pays to look for them, unless there is another.
        """
        self._function = function
        self._memory = remembered.memory
        self._balance = remembered.balance if balance is None else balance
        self._clock = clock
        self._calls = 0
        self._hits = 0
        self._call_seconds = 0.0
        self._lookup_seconds = 0.0
        if function.vectorized:  # a first look at few rows would be another call
            self._balance.expect_repeats()

    @property
    def vectorized(self) -> bool:
        """Whether the user's code sees whole vectors."""
        return self._function.vectorized

    def statistics(self) -> MemoryStatistics:
        """Return what was done so far, by this object."""
        return MemoryStatistics(
            self._calls,
            self._hits,
            len(self._memory),
            self._memory.nbytes,
            self._call_seconds,
            self._lookup_seconds,
        )

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Return the function's results for ``rows`` rows; each column has that length."""
        if not rows:
            return self._called(columns, rows)
        if self._balance.wants_some(rows):
            self._pick_some(columns, rows)
        return self._answered(columns, rows)

    def _answered(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Return the results for rows of which none, some or all are worth looking up."""
        looked_up = self._balance.rows_worth(rows)
        if looked_up == 0:
            return self._called(columns, rows)
        if looked_up == rows:
            return self._looked_up(columns, rows)
        # A first look at some; how it goes with the others depends on what it finds.
        first = self._looked_up([column.slice(0, looked_up) for column in columns], looked_up)
        held = pa.concat_arrays([first.values])  # a copy: of a buffer, say, that is filled anew
        # None of these are picked out again: of 25 visits 11 to 16 did that, in 0.25 ms each.
        rest = self._answered([column.slice(looked_up) for column in columns], rows - looked_up)
        errors = {**first.errors, **{looked_up + at: error for at, error in rest.errors.items()}}
        return Vector(pa.concat_arrays([held, rest.values]), errors or NO_ERRORS)

    def _pick_some(self, columns: Sequence[pa.Array], rows: int) -> None:
        """Have the balance know whether arguments repeat among rows from all over the visit."""
        started = self._clock.now()
        places = len(PLACES)
        if rows < 4 * places:  # each is one row of its own no longer
            places = min(places, rows)
            some = [column.slice(0, places) for column in columns]
        else:
            chosen = pa.array((PLACES * rows).astype(np.int64))
            some = [column.take(chosen) for column in columns]
        keys = keys_of(some, places)
        repeated = 0  # where they are too large to be packed
        if keys is not None:
            counts = Counter(keys.to_pylist())
            most = max(counts.values())
            repeated = places - len(counts)
            # One value, say NULL, in a tenth of the rows spares no more than a tenth of the calls.
            if 2 * most < places:
                repeated -= most - 1
        self._balance.picked(places, repeated, self._clock.now() - started)

    def _looked_up(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        started = self._clock.now()
        keys = keys_of(columns, rows)
        if keys is None:
            return self._called(columns, rows)
        encoded = keys.dictionary_encode(null_encoding="encode")
        distinct = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy()
        numbers = self._memory.find(distinct)
        missing = np.flatnonzero(numbers < 0)
        spent = -self._call_seconds
        if not len(missing):
            results = self._memory.results(numbers[codes])
        elif len(missing) == rows:  # all are new, and all differ
            results = self._called(columns, rows)
            self._remember(distinct, encoded.dictionary.nbytes, results)
        else:
            first = np.empty(len(distinct), np.int64)
            first[codes[::-1]] = np.arange(rows - 1, -1, -1)  # the last to be written is the first
            chosen = pa.array(first[missing])
            fresh = self._called([column.take(chosen) for column in columns], len(missing))
            new = [distinct[position] for position in missing.tolist()]
            size = encoded.dictionary.nbytes * len(missing) // len(distinct)
            added = self._remember(new, size, fresh)
            if added is None:
                results = self._together(numbers, missing, fresh, codes)
            else:
                numbers[missing] = added
                results = self._memory.results(numbers[codes])
        self._memory.age()
        spent += self._call_seconds
        seconds = self._clock.now() - started - spent
        self._lookup_seconds += seconds
        self._hits += rows - len(missing)
        self._balance.looked_up(rows, rows - len(missing), seconds)
        return results

    def _remember(
        self, keys: Sequence[object], nbytes: int, fresh: Vector
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        """Take results in; return their numbers, None where some of them cannot be kept."""
        errors = fresh.errors
        lasting = {
            at: error for at, error in errors.items() if not isinstance(error, CollectiveFailure)
        }
        if len(lasting) == len(errors) and len(errors) <= self._memory.room_for_errors():
            return self._memory.add(keys, fresh, nbytes)
        kept = np.delete(np.arange(len(fresh)), list(errors))
        if len(kept):
            chosen = [keys[position] for position in kept.tolist()]
            values = fresh.values.take(pa.array(kept))
            self._memory.add(chosen, Vector(values), nbytes * len(kept) // len(keys))
        return None

    def _together(
        self,
        numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
        missing: np.ndarray[tuple[int], np.dtype[np.int64]],
        fresh: Vector,
        codes: np.ndarray[tuple[int], np.dtype[np.int32]],
    ) -> Vector:
        """Return the results of all rows, where some are in no memory."""
        known = np.flatnonzero(numbers >= 0)
        before = self._memory.results(numbers[known]) if len(known) else None
        place = np.empty(len(numbers), np.int64)
        place[missing] = np.arange(len(missing))
        place[known] = len(missing) + np.arange(len(known))
        parts = [fresh.values] if before is None else [fresh.values, before.values]
        errors = dict(fresh.errors)
        for at, error in {} if before is None else before.errors.items():
            errors[len(missing) + at] = error
        places = place[codes]
        failed = np.flatnonzero(np.isin(places, np.fromiter(errors, np.int64)))
        return Vector(
            pa.concat_arrays(parts).take(pa.array(places)),
            {at: errors[int(places[at])] for at in failed.tolist()},
        )

    def _called(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call the function; FunctionAnswerError where it returns another number of values."""
        started = self._clock.now()
        results = self._function(columns, rows)
        seconds = self._clock.now() - started
        if len(results) != rows:
            raise FunctionAnswerError(
                f"a function has returned {len(results)} values for {rows} rows"
            )
        if rows:
            self._balance.called(rows, seconds)
        self._call_seconds += seconds
        self._calls += rows
        return results
