"""Avnur and Hellerstein (2000), Figure 12: a relation that comes late, and results over time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.hash_joins import NEARLY
from bench.figures.join_runs import QUICK_PART
from bench.figures.sweep import SEED
from bench.known_joins import JoinRun, R, Tables, over_binary_joins, over_stems, tables
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.policies.windowed_lottery import WindowedLotteryPolicy
from eddyline.reports.axes import Axis
from eddyline.reports.svg import Mark, Series, line_chart

DELAY = 10.0
"""Seconds after which R can be read."""

POINTS = 60  # of each line

HALF_WAY = 0.5
"""Up to this part of the way from the better to the worse order is far from the worse."""

UNHARMED = 1.05
"""Up to so many times as long as without the delay, a plan is not harmed by it."""

BINARY_RS = "binary, RS first"
BINARY_ST = "binary, ST first"
BINARY_LOTTERY = "binary, w. lottery"
BINARY_ADAPTIVE = "binary, adaptive"
STEMS_LOTTERY = "SteMs, w. lottery"
STEMS_ADAPTIVE = "SteMs, adaptive"
EDDIES = (BINARY_LOTTERY, BINARY_ADAPTIVE, STEMS_LOTTERY, STEMS_ADAPTIVE)

Contestant = tuple[Callable[..., JoinRun], Callable[[], Policy]]

CONTESTANTS: Mapping[str, Contestant] = {
    BINARY_RS: (over_binary_joins, functools.partial(StaticPolicy, (0, 1))),
    BINARY_ST: (over_binary_joins, functools.partial(StaticPolicy, (1, 0))),
    BINARY_LOTTERY: (over_binary_joins, WindowedLotteryPolicy),
    BINARY_ADAPTIVE: (over_binary_joins, AdaptivePolicy),
    STEMS_LOTTERY: (over_stems, WindowedLotteryPolicy),
    STEMS_ADAPTIVE: (over_stems, AdaptivePolicy),
}
"""Both static orders and the paper's policy over binary joins, as the paper has them; eddies."""


@dataclass(frozen=True, slots=True)
class LateRuns:
    """The runs with R late and those with all there at once, by contestant."""

    delay: float
    late: Mapping[str, JoinRun]
    punctual: Mapping[str, JoinRun]

    def harm(self, contestant: str) -> float:
        """Return by how many times the delay prolongs a run."""
        return self.late[contestant].seconds / self.punctual[contestant].seconds

    def times(self) -> list[float]:
        """Return the moments at which lines have a point."""
        end = max(run.seconds for run in self.late.values())
        # The delay's end is one of them, or what happens there would look like before it.
        return sorted({self.delay, *np.linspace(0.0, end, POINTS).tolist()})


@functools.cache
def _runs(part: float) -> LateRuns:
    data = tables(rs=1.0, st=0.2, seed=SEED, part=part)
    delay = DELAY * part

    def run(contestant: Contestant, data: Tables, late: Mapping[int, float]) -> JoinRun:
        over, policy = contestant
        return over(data, policy, late=late, seed=SEED)

    return LateRuns(
        delay,
        {name: run(contestant, data, {R: delay}) for name, contestant in CONTESTANTS.items()},
        {name: run(contestant, data, {}) for name, contestant in CONTESTANTS.items()},
    )


def runs(quick: bool, advance: Advance) -> LateRuns:  # noqa: FBT001 - as Experiment has it
    """Return the runs of the figure; the second time without running them again."""
    result = _runs(QUICK_PART if quick else 1.0)
    advance()
    return result


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    result = runs(quick, advance)
    late = result.late
    seconds = {name: run.seconds for name, run in late.items()}
    better, worse = sorted((seconds[BINARY_RS], seconds[BINARY_ST]))
    way = (seconds[BINARY_LOTTERY] - better) / (worse - better)
    stems = [seconds[STEMS_LOTTERY], seconds[STEMS_ADAPTIVE]]
    harm = [result.harm(STEMS_LOTTERY), result.harm(STEMS_ADAPTIVE)]
    soon = result.delay * 1.5
    results = {name: run.results_by(soon) for name, run in late.items()}
    title = f"Results over time, R comes after {result.delay:g} seconds"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Figure 12)",
        svg=line_chart(
            [
                Series(
                    name,
                    [(t, run.results_by(t) / 1000) for t in result.times() if t <= run.seconds]
                    + [(run.seconds, run.rows / 1000)],
                    dashed=name not in EDDIES,
                )
                for name, run in late.items()
            ],
            title,
            "virtual seconds",
            "results (thousands)",
            x_axis=Axis(low=0.0),
            marks=[Mark(result.delay, "R", "R comes")],
        ),
        columns=("seconds", "first", "half", "all", "not late", "times", "pairs"),
        rows=tuple(
            (
                name,
                f"{run.time_of(0.0):.1f}",
                f"{run.time_of(0.5):.1f}",
                f"{run.seconds:.1f}",
                f"{result.punctual[name].seconds:.1f}",
                f"{result.harm(name):.2f}",
                f"{run.pairs:,}",
            )
            for name, run in late.items()
        ),
        claims=(
            Claim(
                "paper",
                "an eddy over binary joins (windowed lottery) does not adapt to the delay as well "
                "as it could",
                f"{seconds[BINARY_LOTTERY]:.1f} s, {seconds[BINARY_LOTTERY] / better:.2f} times "
                "the better order",
                seconds[BINARY_LOTTERY] / better > NEARLY,
            ),
            Claim(
                "paper",
                "but far better than pessimally",
                f"{way:.0%} of the way to the worse order, {worse:.1f} s",
                way <= HALF_WAY,
            ),
            Claim(
                "ours",
                f"over SteMs the delay makes a run at most {UNHARMED} times as long",
                " and ".join(f"{ratio:.2f}" for ratio in harm),
                max(harm) <= UNHARMED,
                "While R is late, S rows that T has no match for are dropped before they are "
                "built, so R finds none of them.",
            ),
            Claim(
                "ours",
                "over SteMs an eddy is done before any plan over binary joins",
                f"after {stems[0]:.1f} and {stems[1]:.1f} s; the best over binary joins "
                f"after {min(seconds[name] for name in CONTESTANTS if 'binary' in name):.1f} s",
                max(stems) < min(seconds[name] for name in CONTESTANTS if "binary" in name),
                "SteMs hold no intermediate results, so a plan over them builds less as well.",
            ),
            Claim(
                "ours",
                "and has the most results soon after R has come",
                f"after {soon:g} s {results[STEMS_LOTTERY]:,} and {results[STEMS_ADAPTIVE]:,}; "
                f"the best over binary joins {results[BINARY_ST]:,}, the paper's eddy "
                f"{results[BINARY_LOTTERY]:,}",
                min(results[STEMS_LOTTERY], results[STEMS_ADAPTIVE])
                > max(results[name] for name in CONTESTANTS if "binary" in name),
            ),
        ),
        data={
            "delay": result.delay,
            "seconds": seconds,
            "seconds_without_delay": {name: run.seconds for name, run in result.punctual.items()},
            "pairs": {name: run.pairs for name, run in late.items()},
            "times": result.times(),
            "results": {
                name: [run.results_by(time) for time in result.times()]
                for name, run in late.items()
            },
        },
    )


EXPERIMENT = Experiment(lambda quick: 1, draw)  # noqa: ARG005 - one set of runs
