"""Avnur and Hellerstein (2000), Section 4.5.1, Figures 12 and 13: a relation that comes late.

R in the figures; S in the variation that the paper only tells the outcome of.

Both static orders and the paper's policy over binary joins, as the paper has them, and eddies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.figures.joins import part_of
from bench.figures.selections import SEED
from bench.known_joins import JoinRun, R, S, T, over_binary_joins, over_stems, tables
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.lottery import WINDOW, LotteryPolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.static import StaticPolicy

DELAY = 10.0
"""Seconds after which R, or S, can be read."""

POINTS = 60  # of each line

BINARY_RS = "binary, RS first"
BINARY_ST = "binary, ST first"
BINARY_LOTTERY = "binary, w. lottery"
BINARY_ADAPTIVE = "binary, adaptive"
STEMS = ("SteMs, w. lottery", "SteMs, adaptive")
EDDIES = (BINARY_LOTTERY, BINARY_ADAPTIVE, *STEMS)

Contestant = tuple[Callable[..., JoinRun], Callable[[], Policy]]

CONTESTANTS: Mapping[str, Contestant] = {
    BINARY_RS: (over_binary_joins, functools.partial(StaticPolicy, (0, 1))),
    BINARY_ST: (over_binary_joins, functools.partial(StaticPolicy, (1, 0))),
    BINARY_LOTTERY: (over_binary_joins, functools.partial(LotteryPolicy, WINDOW)),
    BINARY_ADAPTIVE: (over_binary_joins, AdaptivePolicy),
    STEMS[0]: (over_stems, functools.partial(LotteryPolicy, WINDOW)),
    STEMS[1]: (over_stems, AdaptivePolicy),
}


@dataclass(frozen=True, slots=True)
class LateRuns:
    """The runs with a relation late and those with all there at once, by contestant."""

    delay: float
    late: Mapping[str, JoinRun]
    punctual: Mapping[str, JoinRun]

    def harm(self, contestant: str) -> float:
        """Return by how many times the delay prolongs a run."""
        return self.late[contestant].seconds / self.punctual[contestant].seconds

    def later(self, contestant: str) -> float:
        """Return by how many seconds the delay prolongs a run."""
        return self.late[contestant].seconds - self.punctual[contestant].seconds

    @property
    def times(self) -> list[float]:
        """The moments at which lines have a point."""
        end = max(run.seconds for run in self.late.values())
        # The delay's end is one of them, or what happens there would look like before it.
        return sorted({self.delay, *np.linspace(0.0, end, POINTS).tolist()})


@functools.cache
def _punctual(part: float, seed: int) -> Mapping[str, JoinRun]:
    return _over_all(part, seed, {})


def _over_all(part: float, seed: int, late: Mapping[int, float]) -> Mapping[str, JoinRun]:
    data = tables(rs=1.0, st=0.2, seed=seed, part=part)
    return {
        name: over(data, policy, late=late, seed=seed)
        for name, (over, policy) in CONTESTANTS.items()
    }


@functools.cache
def _runs(part: float, seed: int, relation: int) -> LateRuns:
    delay = DELAY * part

    return LateRuns(delay, _over_all(part, seed, {relation: delay}), _punctual(part, seed))


def runs(setting: Setting, relation: int = R) -> LateRuns:
    """Return the runs with a relation late; the second time without running them again."""
    result = _runs(part_of(setting), SEED + setting.seed, relation)
    setting.advance()
    return result


def late_relation(setting: Setting) -> Outcome:
    """Figure 12: results in the course of time."""
    result = runs(setting)
    late, times = result.late, result.times
    seconds = {name: run.seconds for name, run in late.items()}
    better, worse = sorted((seconds[BINARY_RS], seconds[BINARY_ST]))
    soon = result.delay * 1.5
    results = {name: run.results_by(soon) for name, run in late.items()}
    binary = [name for name in CONTESTANTS if name not in STEMS]
    return Outcome(
        {
            "part": part_of(setting),
            "delay": result.delay,
            "lottery": seconds[BINARY_LOTTERY],
            "over_better": seconds[BINARY_LOTTERY] / better,
            "way": (seconds[BINARY_LOTTERY] - better) / (worse - better),
            "worse": worse,
            "harm": Numbers(map(result.harm, STEMS)),
            "stems": Numbers(seconds[name] for name in STEMS),
            "binary": Numbers(seconds[name] for name in binary),
            "soon": soon,
            "stems_soon": Numbers(results[name] for name in STEMS),
            "binary_soon": Numbers(results[name] for name in binary),
            "st_first_soon": results[BINARY_ST],
            "lottery_soon": results[BINARY_LOTTERY],
        },
        rows={name: _times(result, name) for name in late},
        lines=_results(result),
        marks=[result.delay],
        data={
            "delay": result.delay,
            "seconds": seconds,
            "seconds_without_delay": {name: run.seconds for name, run in result.punctual.items()},
            "pairs": {name: run.pairs for name, run in late.items()},
            "times": times,
            "results": {
                name: [run.results_by(time) for time in times] for name, run in late.items()
            },
        },
    )


def _times(result: LateRuns, name: str) -> list[object]:
    run = result.late[name]
    return [
        run.time_of(0.0),
        run.time_of(0.5),
        run.seconds,
        result.punctual[name].seconds,
        result.harm(name),
        run.pairs,
    ]


def _results(result: LateRuns) -> dict[str, list[tuple[float, float]]]:
    """Return thousands of results over time, by contestant."""
    return {
        name: [(t, run.results_by(t) / 1000) for t in result.times if t <= run.seconds]
        + [(run.seconds, run.rows / 1000)]
        for name, run in result.late.items()
    }


def late_stream(setting: Setting) -> Outcome:
    """Show the variation of Figure 12 that the paper leaves out: S comes late, which joins both."""
    result = runs(setting, S)
    seconds = {name: run.seconds for name, run in result.late.items()}
    later = {name: result.later(name) for name in CONTESTANTS}
    orders = (BINARY_RS, BINARY_ST)
    better = min(seconds[name] for name in orders)
    return Outcome(
        {
            "part": part_of(setting),
            "delay": result.delay,
            "later": Numbers(later[name] / result.delay for name in CONTESTANTS),
            "binary_later": Numbers(
                later[name] / result.delay for name in CONTESTANTS if name not in STEMS
            ),
            "stems_later": Numbers(later[name] / result.delay for name in STEMS),
            "over_better": seconds[BINARY_LOTTERY] / better,
            "punctual_over_better": result.punctual[BINARY_LOTTERY].seconds
            / min(result.punctual[name].seconds for name in orders),
            "stems": Numbers(seconds[name] for name in STEMS),
            "binary": Numbers(seconds[name] for name in CONTESTANTS if name not in STEMS),
        },
        rows={name: _times(result, name) for name in CONTESTANTS},
        lines=_results(result),
        marks=[result.delay],
        data={"delay": result.delay, "seconds": seconds, "later": later},
    )


def better_so_far(run: JoinRun, times: list[float]) -> list[float]:
    """Return the share of S tuples that met T before R, of those sent until each time."""
    passages = run.passages
    better = list(accumulate(p.tuples * (p.first == T) for p in passages))
    sent = list(accumulate(p.tuples for p in passages))
    shares, place = [], -1
    for time in times:
        while place + 1 < len(passages) and passages[place + 1].time <= time:
            place += 1
        shares.append(better[place] / sent[place] if place >= 0 else float("nan"))
    return shares


def late_flow(setting: Setting) -> Outcome:
    """Figure 13: which way S tuples go while R is late, and after."""
    result = runs(setting)
    late, times, delay = {name: result.late[name] for name in EDDIES}, result.times, result.delay
    to_r = {
        name: (run.first_share(R, until=delay), run.first_share(R, since=delay))
        for name, run in late.items()
    }
    curves = {name: better_so_far(run, times) for name, run in late.items()}
    pairs = {name: run.pairs for name, run in late.items()}
    return Outcome(
        {
            "part": part_of(setting),
            "delay": delay,
            "while_late": to_r[BINARY_LOTTERY][0],
            "then": to_r[BINARY_LOTTERY][1],
            "stems": Numbers(late[name].first_share(T) for name in STEMS),
            "stems_pairs": Numbers(pairs[name] for name in STEMS),
            "binary_pairs": pairs[BINARY_LOTTERY],
        },
        rows={
            name: [
                100 * to_r[name][0],
                100 * to_r[name][1],
                100 * (1 - run.first_share(T)),
                run.pairs,
            ]
            for name, run in late.items()
        },
        lines={
            name: [
                (time, 100 * share)
                for time, share in zip(times, curves[name], strict=True)
                if time <= run.seconds
            ]
            for name, run in late.items()
        },
        marks=[delay],
        data={
            "delay": delay,
            "times": times,
            "met_t_first_so_far": {
                name: [None if share != share else share for share in shares]  # noqa: PLR0124 - NaN
                for name, shares in curves.items()
            },
            "met_r_first_while_late_and_then": to_r,
            "pairs": pairs,
        },
    )
