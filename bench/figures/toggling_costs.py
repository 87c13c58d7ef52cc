"""Avnur and Hellerstein (2000), Section 4.5 and Figure 11: costs that change places."""

from __future__ import annotations

from statistics import median

import numpy as np
import numpy.typing as npt

from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.sweep import ORDERS, SEED, contestants
from eddyline.engine.simulation.simulate import SimulatedSelection, SimulationResult, simulate
from eddyline.reports.axes import Axis
from eddyline.reports.svg import Mark, Series, line_chart

TUPLES = 4_000
PHASE = 1_000  # tuples after which the costs change places
CHEAP, EXPENSIVE = 1.0, 100.0
SELECTIVITY = 0.1
BINS = 80
RUNS = 5
EVEN = 0.1
"""Up to so much off 50 % counts as an even use of both orders."""

BEST = TUPLES * (CHEAP + SELECTIVITY * EXPENSIVE)
"""Expected delay units of a run that always knows which selection is cheap."""


def selections() -> tuple[SimulatedSelection, ...]:
    """Return #1, which starts cheap, and #2."""

    def cost_of_first(_: float, number: int) -> float:
        return EXPENSIVE if number // PHASE % 2 else CHEAP

    def cost_of_second(_: float, number: int) -> float:
        return CHEAP if number // PHASE % 2 else EXPENSIVE

    return (
        SimulatedSelection(cost=cost_of_first, selectivity=SELECTIVITY, name="#1"),
        SimulatedSelection(cost=cost_of_second, selectivity=SELECTIVITY, name="#2"),
    )


def so_far(result: SimulationResult) -> npt.NDArray[np.float64]:
    """Return the share of the tuples up to each that went to #1 first, by tuple number."""
    first = result.first_modules() == 0
    return np.cumsum(first) / np.arange(1, len(first) + 1)


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    curves: dict[str, list[npt.NDArray[np.float64]]] = {}
    phases: dict[str, list[npt.NDArray[np.float64]]] = {}
    times: dict[str, list[float]] = {}
    for name, make in contestants().items():
        for run in range(_runs(quick)):
            result = simulate(selections(), make(), tuples=TUPLES, seed=SEED + run)
            curves.setdefault(name, []).append(so_far(result))
            phases.setdefault(name, []).append(result.first_shares(TUPLES // PHASE)[:, 0])
            times.setdefault(name, []).append(result.total_time)
            advance()
    curve = {name: np.median(runs, axis=0) for name, runs in curves.items()}
    phase = {name: np.median(runs, axis=0) for name, runs in phases.items()}
    time = {name: median(runs) for name, runs in times.items()}
    every = TUPLES // BINS
    ends = [float(share) for share in curve["windowed_lottery"][PHASE - 1 :: PHASE]]
    static = min(time[order] for order in ORDERS)
    title = "Costs toggle between 1 and 100 every 1,000 tuples"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Section 4.5)",
        svg=line_chart(
            [
                Series(
                    name,
                    [(tuple_, 100 * curve[name][tuple_ - 1]) for tuple_ in _places(every)],
                )
                for name in curve
                if name not in ORDERS
            ],
            title,
            "tuples",
            "tuples so far that went to #1 first",
            x_axis=Axis(low=0, high=TUPLES),
            y_axis=Axis(low=0, high=100, unit=" %"),
            marks=[Mark(at, hint="costs change places") for at in range(PHASE, TUPLES, PHASE)],
        ),
        columns=("#1 first in tuples", "1-1000", "-2000", "-3000", "-4000", "units", "over best"),
        rows=tuple(
            (
                name,
                *(f"{share:.0%}" for share in phase[name]),
                f"{time[name]:,.0f}",
                f"{time[name] / BEST:.2f}",
            )
            for name in curve
        ),
        claims=(
            Claim(
                "paper",
                "the eddy (windowed lottery) sends most of the first 1,000 tuples to #1 first",
                f"{ends[0]:.0%}",
                ends[0] > 0.5,  # noqa: PLR2004 - most
            ),
            Claim(
                "paper",
                "after each second phase it has used both orders evenly, after each first one not",
                " %, ".join(f"{100 * share:.0f}" for share in ends) + " % after each phase",
                abs(ends[1] - 0.5) <= EVEN
                and abs(ends[3] - 0.5) <= EVEN
                and ends[0] > 0.5 + EVEN < ends[2],
            ),
            Claim(
                "paper",
                "it beats both static orders",
                f"{time['windowed_lottery']:,.0f} units against {static:,.0f}",
                time["windowed_lottery"] < static,
            ),
            Claim(
                "ours",
                "adaptive beats every other policy",
                f"{time['adaptive']:,.0f} units; the next needs "
                f"{min(took for name, took in time.items() if name != 'adaptive'):,.0f}",
                time["adaptive"] == min(time.values()),
            ),
        ),
        data={
            "units": {name: list(runs) for name, runs in times.items()},
            "best": BEST,
            "first_share_by_phase": {name: shares.tolist() for name, shares in phase.items()},
            "first_share_so_far": {
                name: [float(curve[name][tuple_ - 1]) for tuple_ in _places(every)]
                for name in curve
            },
            "every": every,
        },
    )


def _runs(quick: bool) -> int:  # noqa: FBT001 - as Experiment has it
    return 1 if quick else RUNS


def _places(every: int) -> range:
    return range(every, TUPLES + 1, every)


EXPERIMENT = Experiment(lambda quick: len(contestants()) * _runs(quick), draw)
