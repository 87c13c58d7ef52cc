"""Two joins of known cost on a virtual clock: R and S on S.a, S and T on S.b.

The query of Avnur and Hellerstein (2000, Sections 4.4 and 4.5.1), over SteMs by the engine's
own join eddy and, for comparison, over binary joins as the paper has them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.binary_joins import BinaryJoin, BinaryRoutes, Side
from eddyline.engine.batch import TupleBatch
from eddyline.engine.eddy import Eddy
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_order import Goal, ReadingOrder
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.modules.stem import SteM
from eddyline.engine.policies.policy import Policy
from eddyline.engine.signature import Signature
from eddyline.expressions import Comparison, ComparisonOperator
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock

R, S, T = range(3)
NAMES = ("R", "S", "T")

ROWS = (10_000, 80_000, 10_000)
"""The cardinalities of R, S and T (Table 1)."""

UNIT = 112e-6
"""Virtual seconds that a build, a probe or a match takes.

"Our in-memory pipelined hash joins all have the same cost." With so much 43.5 % of S have
been put into and have probed the RS join after the 10 seconds that R is late, as in Figure 13.
"""

VISIT = 20
"""Rows of an arrival, and the most tuples of a visit.

The paper routes single tuples; that would take twenty times as long to simulate.
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """Virtual seconds of the parts of a visit: a row built, a tuple that probes, a match."""

    build: float = UNIT
    probe: float = UNIT
    match: float = UNIT

    def of(self, builds: int, probes: int, matches: int) -> float:
        """Return what so much of each takes."""
        return self.build * builds + self.probe * probes + self.match * matches


EQUAL_COSTS: Mapping[int, Costs] = dict.fromkeys((R, S, T), Costs())


@dataclass(frozen=True, slots=True)
class Tables:
    """The join columns: ``r_a``, ``s_a``, ``s_b``, ``t_b``, int64, one value a row."""

    r_a: npt.NDArray[np.int64]
    s_a: npt.NDArray[np.int64]
    s_b: npt.NDArray[np.int64]
    t_b: npt.NDArray[np.int64]

    def columns(self, relation: int) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the columns of a relation."""
        return ((self.r_a,), (self.s_a, self.s_b), (self.t_b,))[relation]

    def answer(self) -> int:
        """Return the number of rows of R, S and T joined."""
        most = 1 + max(int(column.max()) for column in (self.r_a, self.s_a, self.s_b, self.t_b))
        of_r, of_t = np.bincount(self.r_a, minlength=most), np.bincount(self.t_b, minlength=most)
        return int((of_r[self.s_a] * of_t[self.s_b]).sum())

    def pieces(self, relation: int) -> list[Arrival]:
        """Return the rows of a relation as they are read."""
        columns = self.columns(relation)
        return [
            Arrival(tuple(pa.array(part) for part in parts), len(parts[0]))
            for start in range(0, len(columns[0]), VISIT)
            for parts in [[column[start : start + VISIT] for column in columns]]
        ]


def tables(rs: float, st: float, seed: int, part: float = 1.0) -> Tables:
    """Return uniform tables in which a row of S has ``rs`` matches in R and ``st`` in T.

    On average; ``part`` is the part of the paper's cardinalities.
    """
    generator = np.random.default_rng(seed)
    of_r, of_s, of_t = (round(rows * part) for rows in ROWS)
    a, b = round(of_r / rs), round(of_t / st)
    return Tables(
        generator.integers(0, a, of_r),
        generator.integers(0, a, of_s),
        generator.integers(0, b, of_s),
        generator.integers(0, b, of_t),
    )


def query() -> JoinQuery:
    """Return the query."""
    number = pa.int64()
    relations = (
        JoinRelation("R", (number,)),
        JoinRelation("S", (number, number)),
        JoinRelation("T", (number,)),
    )
    plain = JoinQuery(relations)
    return JoinQuery(
        relations,
        (
            Comparison(ComparisonOperator.EQUAL, plain.column(R, 0), plain.column(S, 0)),
            Comparison(ComparisonOperator.EQUAL, plain.column(S, 1), plain.column(T, 0)),
        ),
    )


class LateScan(HeldScan):
    """An input that has nothing to give before a virtual time."""

    def __init__(self, arrivals: Sequence[Arrival], clock: VirtualClock, since: float) -> None:
        """Give ``arrivals`` from the time ``since`` on."""
        super().__init__(arrivals)
        self._clock = clock
        self.since = since

    def poll(self) -> Arrival | None:
        """Return the next rows; None before it is time."""
        return None if self._clock.now() < self.since else super().poll()


@dataclass(frozen=True, slots=True)
class Passage:
    """Tuples of S that met ``first`` before the other one.

    The eddy sent them there, or asked there whether they are worth building.
    """

    time: float
    first: int  # R or T
    tuples: int


@dataclass(slots=True)
class Passages:
    """Sees where S tuples that are joined with nothing yet go first, and counts pairs."""

    clock: VirtualClock
    joins_with: Mapping[int, int]  # module -> R or T
    seen: list[Passage] = field(default_factory=list)
    pairs: int = 0

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,  # noqa: ARG002 - the protocol's arguments
        seconds: float,  # noqa: ARG002
    ) -> None:
        """Note a visit of S tuples to a join, or one of pairs to the other."""
        if signature.spanned == 1 << S and module in self.joins_with:
            self.note(self.joins_with[module], tuples_in)
        elif signature.spanned in (1 << R | 1 << S, 1 << S | 1 << T):
            self.pairs += tuples_in

    def note(self, first: int, tuples: int) -> None:
        """Note that S tuples have met R or T first."""
        self.seen.append(Passage(self.clock.now(), first, tuples))

    def followed(self, joined: Iterable[int]) -> JoinRun:
        """Return a run that gives so many results at a time, when it is over."""
        results = []
        rows = 0
        for more in joined:
            if more:
                rows += more
                results.append((self.clock.now(), rows))
        return JoinRun(self.clock.now(), tuple(results), tuple(self.seen), self.pairs)


@dataclass(frozen=True, slots=True)
class KnownCosts:
    """Lets time pass for what a SteM does.

    Also when it is asked, outside of a visit, which tuples have a match; the answer costs as
    much as a probe. Rows that have none are not built.
    """

    clock: VirtualClock
    costs: Costs
    passages: Passages

    def worked(self, stem: SteM, builds: int, probes: int, matches: int) -> None:  # noqa: ARG002 - one SteM's costs
        """Let the time of a visit pass."""
        self.clock.advance(self.costs.of(builds, probes, matches))

    def asked(self, stem: SteM, batch: TupleBatch) -> None:
        """Let the time of an answer pass, and note tuples of S."""
        self.clock.advance(self.costs.probe * len(batch))
        if batch.signature.spanned == 1 << S:
            self.passages.note(stem.relation, len(batch))


@dataclass(frozen=True, slots=True)
class JoinRun:
    """What came of a run: virtual seconds, results in the course of time, ways of S tuples.

    ``pairs`` counts the intermediate results, RS and ST.
    """

    seconds: float
    results: tuple[tuple[float, int], ...]  # time, rows so far
    passages: tuple[Passage, ...]
    pairs: int

    @property
    def rows(self) -> int:
        """The number of results."""
        return self.results[-1][1] if self.results else 0

    def results_by(self, time: float) -> int:
        """Return the number of results up to a time."""
        place = bisect_right(self.results, time, key=itemgetter(0))
        return self.results[place - 1][1] if place else 0

    def time_of(self, part: float) -> float:
        """Return when a part of all results was there, of the first one for 0."""
        return next(at for at, rows in self.results if rows >= part * self.rows)

    def first_share(self, relation: int, since: float = 0.0, until: float = np.inf) -> float:
        """Return the share of the S tuples sent meanwhile that met ``relation`` first."""
        sent = [0, 0, 0]
        for passage in self.passages:
            if since <= passage.time <= until:
                sent[passage.first] += passage.tuples
        return sent[relation] / max(sum(sent), 1)


def over_stems(
    data: Tables,
    policy: Callable[[], Policy],
    *,
    goal: Goal = Goal.INTERACTIVE,
    costs: Mapping[int, Costs] = EQUAL_COSTS,
    loaded: Sequence[int] = (),
    late: Mapping[int, float] | None = None,
    seed: int = 0,
) -> JoinRun:
    """Run the query over SteMs.

    ``costs`` are those of each relation's SteM. The rows of ``loaded`` relations are in theirs
    before the start, for nothing. ``late`` says when a relation can be read, if not at once.
    """
    clock = VirtualClock()
    passages = Passages(clock, {R: R, T: T})
    chance = np.random.default_rng(seed)
    join = JoinEddy(
        query(),
        (),
        policy,
        clock,
        chance,
        quantum=FixedQuantum(VISIT),
        instrument=passages,
    )
    join.reading.goal = goal
    if loaded:
        for relation in loaded:
            for arrival in data.pieces(relation):
                for _ in join.push(relation, arrival):
                    raise ValueError("what is loaded matches before S is read")
        # One that has not seen it being loaded: there is nothing to learn from that.
        join.eddy.follow(policy())
    for stem in join.stems:
        stem.charge = KnownCosts(clock, costs[stem.relation], passages)
    inputs = _inputs(data, clock, late or {}, loaded)
    joined = join.run(inputs, wait=lambda: _wait(inputs, clock))
    return passages.followed(each.rows for each in joined)


def over_binary_joins(
    data: Tables,
    policy: Callable[[], Policy],
    *,
    goal: Goal = Goal.INTERACTIVE,
    late: Mapping[int, float] | None = None,
    seed: int = 0,
) -> JoinRun:
    """Run the query over two binary joins, RS (module 0) and ST (module 1).

    The eddy is the engine's, and so are policies and the order of reading.
    """
    clock = VirtualClock()
    passages = Passages(clock, {0: R, 1: T})

    def charge(builds: int, probes: int, matches: int) -> None:
        clock.advance(Costs().of(builds, probes, matches))

    sides = (
        (Side(R, data.r_a), Side(S, data.s_a)),
        (Side(S, data.s_b), Side(T, data.t_b)),
    )
    eddy = Eddy(
        [
            BinaryJoin(number, NAMES[left.relation] + NAMES[right.relation], left, right, charge)
            for number, (left, right) in enumerate(sides)
        ],
        policy(),
        clock,
        np.random.default_rng(seed),
        routes=BinaryRoutes([(left.relation, right.relation) for left, right in sides]),
        quantum=FixedQuantum(VISIT),
        instrument=passages,
    )
    inputs = _inputs(data, clock, late or {})

    def joined() -> Iterator[int]:
        reading, read = ReadingOrder(goal), [0, 0, 0]
        while order := reading.order(inputs, read):
            arrivals = ((number, inputs[number].poll()) for number in order)
            number, arrival = next(((n, a) for n, a in arrivals if a is not None), (0, None))
            if arrival is None:
                _wait(inputs, clock)
                continue
            numbers = range(read[number], read[number] + arrival.rows)
            read[number] += arrival.rows
            components = tuple(numbers if relation == number else None for relation in (R, S, T))
            yield sum(map(len, eddy.run(TupleBatch(Signature(1 << number), components))))

    return passages.followed(joined())


def _inputs(
    data: Tables, clock: VirtualClock, late: Mapping[int, float], loaded: Sequence[int] = ()
) -> list[LateScan]:
    return [
        LateScan(
            [] if relation in loaded else data.pieces(relation), clock, late.get(relation, 0.0)
        )
        for relation in (R, S, T)
    ]


def _wait(inputs: Sequence[LateScan], clock: VirtualClock) -> None:
    """Let the time pass until an input that has given nothing yet can be read."""
    clock.advance(min(late.since for late in inputs if not late.ended) - clock.now())
