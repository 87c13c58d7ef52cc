"""The data sources of Table 3 and the queries of Figure 5 of Raman and others (2003).

"Index lookups are implemented as sleeps of identical duration." What the paper leaves open is
read off its figures, and stands here: see each constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.access_methods.world import World
from eddyline.engine.join_query import JoinQuery, JoinRelation, Lookup
from eddyline.engine.modules.concurrent_index_access import ConcurrentSource
from eddyline.engine.modules.scan_access import Arrival
from eddyline.expressions import Comparison, ComparisonOperator

INT: Final = pa.int64()

LOOKUP: Final = 1.0
"""Seconds of an index lookup.

The paper gives none. In Figure 8 (iii) two indexes serve 200 tuples, some 82 distinct keys each,
in about 90 seconds.
"""

R_EVERY: Final = 0.059
"""Seconds between two rows of R: its 1000 rows are there after 59 s (footnote 6)."""

W_EVERY: Final = 0.167
"""Seconds between two rows of W.

The paper gives neither its size nor its speed. It is given R's 1000 keys, since all of R joins,
and a scan that is over within the 200 s of Figure 12 (ii) and faster than lookups.
"""

ROWS: Final = 1000
DISTINCT: Final = 250

Column = npt.NDArray[np.int64]


def source_r(seed: int = 0) -> tuple[Column, Column]:
    """Return R: ``key``, and ``a`` with 250 distinct values, randomly assigned."""
    generator = np.random.default_rng(seed)
    return generator.permutation(ROWS), generator.integers(0, DISTINCT, ROWS)


def arrivals(columns: Sequence[Column]) -> list[Arrival]:
    """Return rows one by one."""
    return [
        Arrival(tuple(pa.array(column[row : row + 1]) for column in columns), 1)
        for row in range(len(columns[0]))
    ]


def constantly(seconds: float) -> Callable[[float], float]:
    """Return how long a lookup takes that begins at some time: always the same."""
    return lambda _: seconds


def stalled(since: float, until: float) -> Callable[[float], float]:
    """Return the same for a source that answers nothing from one time to another."""

    def seconds(now: float) -> float:
        if now + LOOKUP <= since or now >= until:
            return LOOKUP
        return max(until - now, 0.0) + max(LOOKUP - max(since - now, 0.0), 0.0)

    return seconds


@dataclass(slots=True)
class Index:
    """An index on a unique column: rows by key, how long a lookup takes, and its probes."""

    columns: Sequence[Column]
    bind: int
    seconds: Callable[[float], float] = field(default_factory=lambda: constantly(LOOKUP))
    probes: list[tuple[float, int]] = field(default_factory=list)  # when, and for which key

    def rows(self) -> dict[int, int]:
        """Return the row number of each key."""
        return {int(key): row for row, key in enumerate(self.columns[self.bind])}

    def probed(self, now: float, key: int) -> float:
        """Note a probe; return the seconds that it takes."""
        self.probes.append((now, key))
        return self.seconds(now)

    def source(self, world: World) -> ConcurrentSource:
        """Return the source of a lookup over SteMs."""
        rows = self.rows()

        def answer(bindings: Sequence[pa.Array]) -> list[pa.Array]:
            found = [row for key in bindings[0].to_pylist() if (row := rows.get(key)) is not None]
            return [pa.array(column[found]) for column in self.columns]

        def seconds(bindings: Sequence[pa.Array]) -> float:
            return self.probed(world.clock.now(), bindings[0][0].as_py())

        return ConcurrentSource(world.caller(answer, seconds))


def relation(
    name: str, columns: int, *binds: int, scan: bool = False, key: int | None = None
) -> JoinRelation:
    """Describe a relation of integers, with a lookup on each of some columns."""
    lookups = tuple(Lookup((bind,)) for bind in binds)
    return JoinRelation(
        name,
        (INT,) * columns,
        scan=scan,
        lookups=lookups,
        key=() if key is None else (key,),
    )


def joined(
    relations: Sequence[JoinRelation], *equalities: tuple[tuple[int, int], tuple[int, int]]
) -> JoinQuery:
    """Describe a join by equalities; its outputs are all columns."""
    plain = JoinQuery(tuple(relations))
    return JoinQuery(
        tuple(relations),
        tuple(
            Comparison(ComparisonOperator.EQUAL, plain.column(*left), plain.column(*right))
            for left, right in equalities
        ),
        tuple(
            plain.column(r, c) for r, each in enumerate(relations) for c in range(len(each.types))
        ),
    )


def q1() -> JoinQuery:
    """SELECT * FROM R, S WHERE R.a = S.x."""
    return joined([relation("R", 2, scan=True), relation("S", 2, 0)], ((0, 1), (1, 0)))


def q2() -> JoinQuery:
    """SELECT * FROM R, S WHERE R.a = S.x AND R.a = S.y."""
    s = relation("S", 2, 0, 1, key=0)
    return joined([relation("R", 2, scan=True), s], ((0, 1), (1, 0)), ((0, 1), (1, 1)))


def q3() -> JoinQuery:
    """SELECT * FROM R, T, U WHERE R.a = T.x AND R.a = U.x AND T.y = U.x."""
    return joined(
        [relation("R", 2, scan=True), relation("T", 2, 0), relation("U", 2, 0)],
        ((0, 1), (1, 0)),
        ((0, 1), (2, 0)),
        ((1, 1), (2, 0)),
    )


def q4(*, scan: bool = True, index: bool = True) -> JoinQuery:
    """SELECT * FROM R, W WHERE R.key = W.key, W by scan, by index or by both.

    W has one column more, which says by which access method a row came.
    """
    both = scan and index
    w = relation("W", 2, *([0] if index else []), scan=scan, key=0 if both else None)
    return joined([relation("R", 2, scan=True), w], ((0, 0), (1, 0)))
