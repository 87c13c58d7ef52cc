"""The workloads: Python predicates of known cost and selectivity over known data."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

import eddyline

SCALE = 1000
"""Columns hold whole numbers below this, evenly; a predicate passes what is below its threshold."""

MULTIPLIERS = (
    68718952447,
    71777214277,
    74596593329,
    77158673929,
    80235190249,
    83210150767,
    86028157397,
    95683212289,
)
"""Odd numbers that scatter row numbers, one for each column; products stay below 2**63."""

SHIFT = 22
"""Low bits of the products that are dropped, because they are the least scattered."""

PARTITIONS = 2
"""Partitions of the data; each sees the whole change, from its first row to its last."""


class Course(StrEnum):
    """How selectivities run along the rows of each partition."""

    STATIONARY = "stationary"  # they do not change
    FLIPPING = "flipping"  # half-way, the predicates exchange them from first to last
    DRIFTING = "drifting"  # the same, but little by little
    CORRELATED = "correlated"  # they do not change, but the predicates look at the same column


@dataclass(frozen=True, slots=True)
class Workload:
    """A conjunction of Python predicates, in the order in which the user wrote it.

    ``costs`` are microseconds a call, spun or, where ``asleep``, slept; ``passes`` the
    share of rows that each predicate lets pass, 0 to 1 (at the start, where the course is
    no standstill).
    """

    name: str
    rows: int
    costs: tuple[float, ...]
    passes: tuple[float, ...]
    course: Course = Course.STATIONARY
    asleep: bool = False

    def columns(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return the columns that the predicates look at: ``place`` and ``u0``, ``u1``, ….

        ``place`` is a row's place in its partition, 0 to SCALE - 1.
        """
        row = np.arange(self.rows)
        per_partition = self.rows // PARTITIONS
        return {
            "place": row % per_partition * SCALE // per_partition,
            **{
                f"u{i}": (row * MULTIPLIERS[source] >> SHIFT) % SCALE
                for i, source in enumerate(self._sources())
            },
        }

    def sql_columns(self) -> dict[str, str]:
        """Return the same columns as SQL over ``id``, which Spark computes by itself."""
        per_partition = self.rows // PARTITIONS
        return {
            "place": f"id % {per_partition} * {SCALE} div {per_partition}",
            **{
                f"u{i}": f"shiftright(id * {MULTIPLIERS[source]}, {SHIFT}) % {SCALE}"
                for i, source in enumerate(self._sources())
            },
        }

    def _sources(self) -> list[int]:
        """Return which of the drawn numbers each predicate looks at."""
        if self.course is not Course.CORRELATED:
            return list(range(len(self.costs)))
        # All but the last look at the same number, so that the strictest does the
        # work of all of them: independent selectivities promise what never comes.
        return [0] * (len(self.costs) - 1) + [1]

    def threshold(self, predicate: int) -> Callable[[int], float]:
        """Return the number below which a value passes, by the row's place."""
        start = self.passes[predicate] * SCALE
        end = self.passes[-1 - predicate] * SCALE
        if self.course is Course.FLIPPING:
            return lambda place: start if place < SCALE // 2 else end
        if self.course is Course.DRIFTING:
            return lambda place: start + (end - start) * place / SCALE
        return lambda place: start  # noqa: ARG005 - the others look at it

    def function(self, predicate: int) -> Callable[[int, int], bool]:
        """Return the predicate as a Python function of (u, place)."""
        cost = self.costs[predicate] * 1e-6
        threshold = self.threshold(predicate)
        if not cost:
            if self.course is Course.STATIONARY:
                constant = threshold(0)
                return lambda u, place: u < constant  # noqa: ARG005 - all take both
            return lambda u, place: u < threshold(place)
        if self.asleep:
            return self._sleeping(cost, threshold)
        clock = time.perf_counter

        @eddyline.deterministic
        def spinning(u: int, place: int) -> bool:
            end = clock() + cost
            while clock() < end:
                pass
            return u < threshold(place)

        return spinning

    @staticmethod
    def _sleeping(seconds: float, threshold: Callable[[int], float]) -> Callable[[int, int], bool]:
        sleep = time.sleep

        def sleeping(u: int, place: int) -> bool:
            sleep(seconds)
            return u < threshold(place)

        return sleeping

    def outcomes(self) -> npt.NDArray[np.bool_]:
        """Return (predicate, row) -> passes."""
        columns = self.columns()
        return np.array(
            [
                columns[f"u{i}"]
                < np.array([self.threshold(i)(place) for place in range(SCALE)])[columns["place"]]
                for i in range(len(self.costs))
            ]
        )

    def calls(self, order: tuple[int, ...], rows: npt.NDArray[np.bool_]) -> float:
        """Return the microseconds of calls that an order makes on the chosen rows."""
        outcomes = self.outcomes()
        alive = rows.copy()
        total = 0.0
        for predicate in order:
            total += self.costs[predicate] * float(alive.sum())
            alive &= outcomes[predicate]
        return total

    def best_static_order(self) -> tuple[int, ...]:
        """Return the order with the least cost over all rows."""
        everything = np.ones(self.rows, dtype=np.bool_)
        return self._best(everything)

    def clairvoyant_seconds(self, cores: int) -> float:
        """Return the seconds of calls if every stretch of rows went in its best order."""
        place = self.columns()["place"]
        stretches = 1 if self.course in (Course.STATIONARY, Course.CORRELATED) else 20
        stretch = place * stretches // SCALE
        total = 0.0
        for number in range(stretches):
            rows = stretch == number
            total += self.calls(self._best(rows), rows)
        return total * 1e-6 / cores

    def _best(self, rows: npt.NDArray[np.bool_]) -> tuple[int, ...]:
        """Return the best order for some rows: of all, or greedily where they are too many."""
        predicates = range(len(self.costs))
        if len(self.costs) <= 4:  # noqa: PLR2004 - 24 orders; 8 predicates have 40,320
            return min(
                itertools.permutations(predicates), key=lambda order: self.calls(order, rows)
            )
        outcomes = self.outcomes()
        alive = rows.copy()
        order: list[int] = []
        while len(order) < len(self.costs):
            left = [p for p in predicates if p not in order]
            dropped = {p: float((alive & ~outcomes[p]).sum()) for p in left}
            best = max(left, key=lambda p: dropped[p] / max(self.costs[p], 1e-9))
            order.append(best)
            alive &= outcomes[best]
        return tuple(order)


def spread(predicates: int) -> tuple[float, ...]:
    """Return selectivities from 0.9 down to 0.1: the written order is the worst."""
    return tuple(np.round(np.linspace(0.9, 0.1, predicates), 3).tolist())


def workloads(seconds: float) -> list[Workload]:
    """Return all workloads, sized so that the best order makes ``seconds`` of calls a core.

    Plain Spark makes up to seven times as many. Much shorter runs would compare
    what Spark needs to start a query.
    """
    unequal = "20 µs/50 % and 5 µs/10 %"
    found = [Workload(unequal, _rows(7.0, 2 * seconds), (20.0, 5.0), (0.5, 0.1))]
    for predicates, cost, course in itertools.product((2, 4, 8), (0.0, 5.0, 50.0, 500.0), Course):
        # In order of selectivity each predicate sees what those before it let pass; of
        # predicates that cost nothing every call of plain Spark counts.
        seen = np.cumprod([1.0, *reversed(spread(predicates))])[:-1].sum()
        found.append(
            Workload(
                f"{predicates} x {cost:g} µs, {course}",
                _rows(cost * seen if cost else FREE_CALL * predicates, seconds),
                (cost,) * predicates,
                spread(predicates),
                course,
            )
        )
    found.append(
        Workload(
            "4 x 500 µs asleep, flipping",
            _rows(500.0, seconds),
            (500.0,) * 4,
            spread(4),
            Course.FLIPPING,
            asleep=True,
        )
    )
    return found


FREE_CALL = 0.5
"""Microseconds that plain Spark needs for a call of a function that does nothing."""


def _rows(microseconds: float, seconds: float) -> int:
    return max(int(seconds * PARTITIONS * 1e6 / microseconds) // 1000 * 1000, 4000)
