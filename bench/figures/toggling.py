"""Avnur and Hellerstein (2000), Section 4.5 and Figure 11: operators that change places.

Their costs do in the figure; their selectivities in the variation that the paper only tells the
outcome of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.figures.selections import ORDERS, SEED, contestants
from eddyline.engine.policies.policy import Policy
from eddyline.simulation.simulate import SimulatedSelection, SimulationResult, simulate

TUPLES = 4_000
PHASE = 1_000  # tuples after which the operators change places
CHEAP, EXPENSIVE = 1.0, 100.0
SELECTIVITY = 0.1
EVERY = 50  # tuples from one point of a line to the next
RUNS = 5

BEST = TUPLES * (CHEAP + SELECTIVITY * EXPENSIVE)
"""Expected delay units of a run that always knows which selection is cheap."""

COST = 10.0
"""Delay units of a selection where only selectivities toggle."""

BEST_OF_SELECTIVITIES = TUPLES * COST
"""Delay units of a run that always knows which selection lets nothing pass."""

MANY = 4
"""Selections where more than two take turns in letting nothing pass, each for one phase."""


def toggling() -> tuple[SimulatedSelection, ...]:
    """Return #1, which starts cheap, and #2, which then is expensive."""

    def cost_of(starts: float, then: float) -> Callable[[float, int], float]:
        return lambda _, number: then if number // PHASE % 2 else starts

    return (
        SimulatedSelection(cost=cost_of(CHEAP, EXPENSIVE), selectivity=SELECTIVITY, name="#1"),
        SimulatedSelection(cost=cost_of(EXPENSIVE, CHEAP), selectivity=SELECTIVITY, name="#2"),
    )


def blocking_in_turn(selections: int) -> tuple[SimulatedSelection, ...]:
    """Return selections of one cost, each of which lets nothing pass in its phases, else all."""

    def selectivity_of(place: int) -> Callable[[float, int], float]:
        return lambda _, number: 0.0 if number // PHASE % selections == place else 1.0

    return tuple(
        SimulatedSelection(cost=COST, selectivity=selectivity_of(place), name=f"#{place + 1}")
        for place in range(selections)
    )


def so_far(result: SimulationResult) -> npt.NDArray[np.float64]:
    """Return the share of the tuples up to each that went to #1 first, by tuple number."""
    first = result.first_modules() == 0
    return np.cumsum(first) / np.arange(1, len(first) + 1)


def _simulated(
    selections: Sequence[SimulatedSelection],
    policies: Mapping[str, Callable[[], Policy]],
    setting: Setting,
) -> dict[str, list[SimulationResult]]:
    """Run every policy several times."""
    count = 1 if setting.quick else RUNS
    results: dict[str, list[SimulationResult]] = {}
    for name, make in policies.items():
        for run in range(count):
            seed = SEED + setting.seed * count + run
            results.setdefault(name, []).append(
                simulate(selections, make(), tuples=TUPLES, seed=seed)
            )
            setting.advance()
    return results


def _medians(results: Mapping[str, Sequence[SimulationResult]]) -> dict[str, float]:
    return {name: median(run.total_time for run in runs) for name, runs in results.items()}


def _outcome(
    results: Mapping[str, list[SimulationResult]],
    best: float,
    **measured: Any,  # noqa: ANN401 - as an outcome takes it
) -> Outcome:
    """Return the medians of the runs: which share of the tuples went to #1 first, and times."""
    curve = {
        name: np.median([so_far(run) for run in runs], axis=0) for name, runs in results.items()
    }
    phase = {
        name: np.median([run.first_shares(TUPLES // PHASE)[:, 0] for run in runs], axis=0)
        for name, runs in results.items()
    }
    time = _medians(results)
    ends = Numbers(float(share) for share in curve["windowed_lottery"][PHASE - 1 :: PHASE])
    places = range(EVERY, TUPLES + 1, EVERY)
    drawn = {name: [float(shares[place - 1]) for place in places] for name, shares in curve.items()}
    return Outcome(
        {
            "tuples": TUPLES,
            "runs": len(next(iter(results.values()))),
            "ends": ends,
            "percent": Numbers(100 * share for share in ends),
            "lottery": time["windowed_lottery"],
            "static": min(time[order] for order in ORDERS),
            "adaptive": time["adaptive"],
            "next": min(took for name, took in time.items() if name != "adaptive"),
            **measured,
        },
        rows={name: [*phase[name], time[name], time[name] / best] for name in results},
        lines={
            name: [(place, 100 * share) for place, share in zip(places, shares, strict=True)]
            for name, shares in drawn.items()
            if name not in ORDERS
        },
        marks=range(PHASE, TUPLES, PHASE),
        data={
            "units": {name: [run.total_time for run in runs] for name, runs in results.items()},
            "best": best,
            "first_share_by_phase": {name: shares.tolist() for name, shares in phase.items()},
            "first_share_so_far": drawn,
            "every": EVERY,
        },
    )


def toggling_costs(setting: Setting) -> Outcome:
    """Figure 11: costs change places."""
    return _outcome(_simulated(toggling(), contestants(ORDERS), setting), BEST)


def toggling_selectivities(setting: Setting) -> Outcome:
    """Show the variation that the paper leaves out: costs stay, selectivities change places."""
    policies = contestants(ORDERS)
    two = _simulated(blocking_in_turn(2), policies, setting)
    static = contestants({"static": range(MANY)})["static"]
    named = {name: policies[name] for name in ("windowed_lottery", "adaptive")}
    many = _medians(_simulated(blocking_in_turn(MANY), {"static": static, **named}, setting))
    costs = _medians(_simulated(toggling(), {**named, **_orders(policies)}, setting))
    time = _medians(two)
    over_static = {name: took / time["s1 before s2"] for name, took in time.items()}
    return _outcome(
        two,
        BEST_OF_SELECTIVITIES,
        many=MANY,
        static_over=Numbers(time[order] / BEST_OF_SELECTIVITIES for order in ORDERS),
        lottery_over=time["windowed_lottery"] / BEST_OF_SELECTIVITIES,
        adaptive_over=time["adaptive"] / BEST_OF_SELECTIVITIES,
        gain=1 / over_static["windowed_lottery"],
        gain_of_costs=min(costs[order] for order in ORDERS) / costs["windowed_lottery"],
        gain_of_many=many["static"] / many["windowed_lottery"],
        adaptive_gain_of_many=many["static"] / many["adaptive"],
    )


def _orders(policies: Mapping[str, Callable[[], Policy]]) -> dict[str, Callable[[], Policy]]:
    return {name: policies[name] for name in ORDERS}
