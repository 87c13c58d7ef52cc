"""Avnur and Hellerstein (2000), Section 4.5 and Figure 11: costs that change places."""

from __future__ import annotations

from statistics import median

import numpy as np
import numpy.typing as npt

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.figures.selections import ORDERS, SEED, contestants
from eddyline.simulation.simulate import SimulatedSelection, SimulationResult, simulate

TUPLES = 4_000
PHASE = 1_000  # tuples after which the costs change places
CHEAP, EXPENSIVE = 1.0, 100.0
SELECTIVITY = 0.1
EVERY = 50  # tuples from one point of a line to the next
RUNS = 5

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


def toggling_costs(setting: Setting) -> Outcome:
    """Run every policy several times, and take the medians."""
    results: dict[str, list[SimulationResult]] = {}
    for name, make in contestants(ORDERS).items():
        for run in range(1 if setting.quick else RUNS):
            result = simulate(selections(), make(), tuples=TUPLES, seed=SEED + run)
            results.setdefault(name, []).append(result)
            setting.advance()
    curve = {
        name: np.median([so_far(run) for run in runs], axis=0) for name, runs in results.items()
    }
    phase = {
        name: np.median([run.first_shares(TUPLES // PHASE)[:, 0] for run in runs], axis=0)
        for name, runs in results.items()
    }
    times = {name: [run.total_time for run in runs] for name, runs in results.items()}
    time = {name: median(runs) for name, runs in times.items()}
    ends = Numbers(float(share) for share in curve["windowed_lottery"][PHASE - 1 :: PHASE])
    places = range(EVERY, TUPLES + 1, EVERY)
    drawn = {name: [float(shares[place - 1]) for place in places] for name, shares in curve.items()}
    return Outcome(
        {
            "ends": ends,
            "percent": Numbers(100 * share for share in ends),
            "lottery": time["windowed_lottery"],
            "static": min(time[order] for order in ORDERS),
            "adaptive": time["adaptive"],
            "next": min(took for name, took in time.items() if name != "adaptive"),
        },
        rows={name: [*phase[name], time[name], time[name] / BEST] for name in results},
        lines={
            name: [(place, 100 * share) for place, share in zip(places, shares, strict=True)]
            for name, shares in drawn.items()
            if name not in ORDERS
        },
        marks=range(PHASE, TUPLES, PHASE),
        data={
            "units": times,
            "best": BEST,
            "first_share_by_phase": {name: shares.tolist() for name, shares in phase.items()},
            "first_share_so_far": drawn,
            "every": EVERY,
        },
    )
