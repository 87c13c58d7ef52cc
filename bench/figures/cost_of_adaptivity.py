"""Deshpande (2004), Figure 5: what routing costs where there is nothing to gain by it.

The processor's time of this process. All three predicates cost the same and let everything pass,
so every order is as good as any other, and what an adaptive policy takes longer than a
static order in the same engine is the price of adaptivity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.turns import Turns, take_turns
from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.eddy import Eddy
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.signature import ENTERING
from eddyline.wall_clock import WallClock

TUPLES = 10_000
QUICK_TUPLES = 1_000
FREQUENCIES = (1, 10, 100, 1000)  # tuples between two decisions of the rank policy
BOUNDS = {"two": 2, "four": 4, "ten": 10}
SELDOM = 100
"""Deciding after so many tuples or more is to cost little."""

ADAPTIVE = str(PolicyName.ADAPTIVE)

QUICK_TURNS = 5


@dataclass(frozen=True, slots=True)
class Query:
    """One of the paper's queries: ``delay`` in seconds a call, None for no call at all.

    A turn of the query without delay takes milliseconds, so it is repeated more often.
    """

    name: str
    delay: float | None
    turns: int


QUERIES = (
    Query("no delay", None, 31),
    Query("delay 0", 0.0, 15),
    Query("delay 10 µs", 10e-6, 7),
    Query("delay 100 µs", 100e-6, 5),
)


def delayed(value: int, delay: float) -> int:
    """Return the value, after having looked at the clock for ``delay`` seconds."""
    now = WallClock.now
    until = now() + delay
    while now() < until:
        pass
    return value


class RowPredicate:
    """A Python function applied to one row at a time: passes where it is TRUE."""

    def __init__(self, position: int, name: str, values: Sequence[int], query: Query) -> None:
        """Make module number ``position`` over one column."""
        self._position = position
        self._name = name
        self._values = values
        bound = BOUNDS[name]
        delay = query.delay
        self._function: Callable[[int], bool] = (
            (lambda value: value < bound)
            if delay is None
            else (lambda value: delayed(value, delay) < bound)
        )

    @property
    def name(self) -> str:
        """The column's name."""
        return self._name

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return the tuples that pass."""
        rows = batch.rows[0]
        if rows is None:
            raise ValueError("a predicate got tuples without a component of its relation")
        function, values = self._function, self._values
        passed = [function(values[row]) for row in as_array(rows).tolist()]
        signature = batch.signature.after(self._position)
        if all(passed):
            return (batch.under(signature),)
        return (batch.keep(np.array(passed), signature),)


def policies() -> dict[str, Callable[[], Policy]]:
    """Return every policy by name, static first, rank once for each frequency."""
    by_name: dict[str, Callable[[], Policy]] = {}
    for name in PolicyName:
        if name is PolicyName.BENEFIT:
            continue  # is adaptive where no access methods compete
        if name is not PolicyName.RANK:
            by_name[str(name)] = partial(make_policy, name)
            continue
        for every in FREQUENCIES:
            by_name[rank(every)] = partial(RankPolicy, every)
    return by_name


def measure(query: Query, tuples: int, turns: int, setting: Setting) -> Turns:
    """Let all policies run a query in turn; each run is a new eddy that knows nothing."""
    numbers = np.random.default_rng(2004).permutation(tuples)
    columns = {name: _column(numbers, bound) for name, bound in BOUNDS.items()}

    def run(make: Callable[[], Policy]) -> int:
        modules = [
            RowPredicate(position, name, values, query)
            for position, (name, values) in enumerate(columns.items())
        ]
        eddy = Eddy(modules, make(), WallClock(), np.random.default_rng(0))
        return sum(map(len, eddy.run(TupleBatch(ENTERING, (range(tuples),)))))

    contestants = {name: partial(run, make) for name, make in policies().items()}
    return take_turns(
        contestants,
        turns=turns,
        expected=tuples,
        progress=setting.advance,
        clock=time.process_time,
    )


def cost_of_adaptivity(setting: Setting) -> Outcome:
    """Measure every query."""
    tuples = QUICK_TUPLES if setting.quick else TUPLES
    measured = {
        query.name: measure(query, tuples, QUICK_TURNS if setting.quick else query.turns, setting)
        for query in QUERIES
    }
    ratios = {
        query: {policy: turns.ratio(policy, str(PolicyName.STATIC)) for policy in policies()}
        for query, turns in measured.items()
    }
    counts = [len(turns.seconds[ADAPTIVE]) for turns in measured.values()]
    return Outcome(
        {
            "tuples": tuples,
            "least_turns": min(counts),
            "most_turns": max(counts),
            "every": SELDOM,
            **_claimed(lambda query, policy: ratios[query][policy].median),
        },
        turns=[
            _claimed(
                lambda query, policy, turn=turn: measured[query].ratios(  # type: ignore[misc]
                    policy, str(PolicyName.STATIC)
                )[turn]
            )
            for turn in range(min(counts))
        ],
        rows={
            policy: [by_policy[policy] for by_policy in ratios.values()] for policy in policies()
        },
        points=list(ratios),
        lines={
            query: [(every, by_policy[rank(every)].median) for every in FREQUENCIES]
            for query, by_policy in ratios.items()
        },
        data={
            "tuples": tuples,
            "seconds": {query: dict(turns.seconds) for query, turns in measured.items()},
        },
    )


def _claimed(over_static: Callable[[str, str], float]) -> dict[str, object]:
    """Return what claims are about, given times over static by query and policy."""
    undelayed, smallest = (partial(over_static, query) for query in ("no delay", "delay 10 µs"))
    return {
        "every_10": undelayed(rank(10)),
        "seldom": Numbers(undelayed(rank(every)) for every in FREQUENCIES if every >= SELDOM),
        "smallest": Numbers(smallest(rank(every)) for every in FREQUENCIES),
        "adaptive": undelayed(ADAPTIVE),
    }


def rank(every: int) -> str:
    """Return the name of the rank policy that decides so often."""
    return f"rank every {every}"


def _column(numbers: npt.NDArray[np.int64], bound: int) -> list[int]:
    values: list[int] = (numbers % bound).tolist()
    return values
