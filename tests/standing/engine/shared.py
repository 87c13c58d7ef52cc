"""Generated sets of standing queries over three streams, and what their answers are."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from bench.sharing.audit import Audit
from bench.sharing.planned_eddy import PlannedEddy
from bench.sharing.sharing_plans import PLANS
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.expressions import And, Argument, Comparison, ComparisonOperator, Expression, Literal
from eddyline.standing.engine.join_conditions import JoinAttribute, conditions_in
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import Edge, SharedQuery, Stream, TimeBound, edge
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.wall_clock import WallClock
from tests.properties import examples
from tests.standing.engine.conditions import conditions_on
from tests.standing.engine.three_valued import value_of

KEY, OTHER_KEY, VALUE, TIME = range(4)
TYPES = (pa.int64(), pa.int64(), pa.int64(), pa.timestamp("us"))
STREAMS = tuple(Stream(name, TYPES, TIME) for name in "RST")


def of_plan(plan: str | None, wanted: int = 100) -> settings:
    """Return the settings of a property of a plan: a sixth of the examples for those of papers.

    The one that standing queries run with has no name; nobody can choose the others.
    """
    return examples(wanted if plan is None else max(1, wanted // 6))


Row = tuple[int | None, int | None, int | None, int | None]
"""Two keys, a value, and the time in microseconds."""

Answer = Counter[tuple[int, tuple[Row, ...]]]
"""How often each query has each tuple as a result."""

BY_KEY = {(r, s): edge((r, KEY), (s, KEY)) for r, s in ((0, 1), (0, 2), (1, 2))}
BY_OTHER = {(r, s): edge((r, OTHER_KEY), (s, OTHER_KEY)) for r, s in BY_KEY}

PAPER: Sequence[tuple[tuple[int, ...], tuple[Edge, ...]]] = (
    ((0,), ()),
    ((0, 1), (BY_KEY[0, 1],)),
    ((0, 1, 2), (BY_KEY[0, 1], BY_OTHER[1, 2])),
    ((1, 2), (BY_OTHER[1, 2],)),
)
"""Streams and edges of queries whose joins have their parts in common, as Q3 to Q6 have."""

ANY: Sequence[tuple[tuple[int, ...], tuple[Edge, ...]]] = (
    *PAPER,
    ((2,), ()),
    ((0, 1), (BY_OTHER[0, 1],)),
    ((0, 1), (BY_KEY[0, 1], BY_OTHER[0, 1])),
    ((0, 1, 2), (BY_KEY[0, 1], BY_KEY[0, 2])),
    ((0, 1, 2), (BY_KEY[0, 1], BY_OTHER[0, 2])),
    ((0, 1, 2), (BY_KEY[0, 1], BY_OTHER[1, 2], BY_OTHER[0, 2])),
)

values = st.none() | st.integers(0, 9)
rows = st.tuples(
    st.none() | st.integers(0, 2), st.integers(0, 2), values, st.none() | st.integers(0, 50)
)


@dataclass(frozen=True)
class Push:
    """Rows that come together."""

    stream: int
    rows: Sequence[Row]


pushes = st.lists(st.builds(Push, st.integers(0, 2), st.lists(rows, max_size=6)), max_size=12)


def between(low: int, high: int) -> Expression:
    """Return a selection of values."""
    value = Argument(VALUE, pa.int64())
    return And(
        (
            Comparison(ComparisonOperator.GREATER_OR_EQUAL, value, Literal(low, pa.int64())),
            Comparison(ComparisonOperator.LESS_OR_EQUAL, value, Literal(high, pa.int64())),
        )
    )


selections = st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)).map(
    lambda pair: between(*pair)
)


@st.composite
def queries(
    draw: st.DrawFn, shapes: Sequence[tuple[tuple[int, ...], tuple[Edge, ...]]] = ANY
) -> SharedQuery:
    """Draw a query of one of some shapes."""
    streams, edges = draw(st.sampled_from(shapes))
    bounds = []
    if len(streams) > 1 and draw(st.booleans()):
        late, early = streams[0], streams[1]
        least = draw(st.integers(-20, 20))
        bounds.append(TimeBound(early, late, least, least + draw(st.integers(0, 30))))
    conditions = draw(conditions_on(streams)) if len(streams) > 1 else ()
    return SharedQuery(
        {s: draw(selections) for s in streams}, frozenset(edges), tuple(bounds), conditions
    )


query_sets = st.dictionaries(st.integers(0, 300), queries(), min_size=1, max_size=6)


def selects(query: SharedQuery, stream: int, row: Row) -> bool:
    """Tell whether a query's selection on a stream is TRUE for a row."""
    predicate = query.selections[stream]
    if predicate is None:
        return True
    assert isinstance(predicate, And)
    low, high = (term.right.value for term in predicate.terms)  # type: ignore[attr-defined]
    return row[VALUE] is not None and low <= row[VALUE] <= high


def joins(query: SharedQuery, components: Mapping[int, Row]) -> bool:
    """Tell whether rows fit together for a query, as far as there are any."""
    for join in query.edges:
        if all(place.relation in components for place in join):
            met = {components[place.relation][place.column] for place in join}
            if len(met) > 1 or None in met:
                return False
    for bound in query.bounds:
        if bound.early in components and bound.late in components:
            early, late = components[bound.early][TIME], components[bound.late][TIME]
            if early is None or late is None:
                return False
            if not bound.least <= late - early <= bound.greatest:
                return False
    return meets(query, components)


def meets(query: SharedQuery, components: Mapping[int, Row]) -> bool:
    """Tell whether rows meet the conditions of a query that are known of such tuples."""
    streams = sum(1 << stream for stream in components)
    return all(
        value_of(each.predicate, components, each.constants) is True
        for each in conditions_in(query.conditions)
        if not JoinAttribute.of(each.predicate).needs(query.shape.streams) & ~streams
    )


def answer_of(queries_: Mapping[int, SharedQuery], given: Sequence[Push]) -> Answer:
    """Return all results: every combination of rows, tried."""
    came = [[row for push in given if push.stream == s for row in push.rows] for s in range(3)]
    answer: Answer = Counter()
    for number, query in queries_.items():
        streams = sorted(query.selections)
        chosen = [[row for row in came[s] if selects(query, s, row)] for s in streams]
        for tuple_ in itertools.product(*chosen):
            if joins(query, dict(zip(streams, tuple_, strict=True))):
                answer[number, tuple_] += 1
    return answer


class Run:
    """A shared eddy, and the results that it has delivered; by a plan, and audited then."""

    def __init__(
        self,
        plan: str | None,
        *,
        make_policy: Callable[[], Policy] = RankPolicy,
        seed: int = 0,
        streams: Sequence[Stream] = STREAMS,
    ) -> None:
        self.answer: Answer = Counter()
        self.audit = Audit()
        generator = np.random.default_rng(seed)
        self.eddy = (
            SharedEddy(streams, self._take, WallClock(), generator, make_policy=make_policy)
            if plan is None
            else PlannedEddy(
                streams,
                self._take,
                WallClock(),
                generator,
                plan=PLANS[plan],
                make_policy=make_policy,
                audit=self.audit,
            )
        )

    @property
    def zombies(self) -> int:
        """Tuples that were made for nobody, as far as the eddy has found out."""
        return self.eddy.zombies if isinstance(self.eddy, PlannedEddy) else 0

    def push(self, given: Sequence[Push]) -> Run:
        """Push rows."""
        for push in given:
            columns = [
                pa.array([row[c] for row in push.rows], pa.int64()).cast(a_type)
                for c, a_type in enumerate(TYPES)
            ]
            self.eddy.push(push.stream, columns, len(push.rows))
        return self

    def _take(self, results: SharedResults) -> None:
        of_streams = [
            list(
                zip(
                    *(results.column(s, c).cast(pa.int64()).to_pylist() for c in range(len(TYPES))),
                    strict=True,
                )
            )
            for s in results.streams
        ]
        tuples = list(zip(*of_streams, strict=True))
        positions, numbers = self.eddy.sets.spread(results.lineages)
        for position, number in zip(positions.tolist(), numbers.tolist(), strict=True):
            self.answer[number, tuples[position]] += 1


ALIKE = [Push(s, [(1, 1, value, 0) for value in range(10)]) for s in (0, 1, 0, 1)]
"""Rows that all join: which results are wanted is up to selections alone."""


def apart(*bounds: tuple[int, int]) -> dict[int, SharedQuery]:
    """Return queries over two streams that select the same values of both."""
    edges = frozenset({BY_KEY[0, 1]})
    return {
        number: SharedQuery({0: between(*pair), 1: between(*pair)}, edges)
        for number, pair in enumerate(bounds)
    }
