"""What the adaptive policy knows: a record for each (signature, module), and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from eddyline.engine.policies.adaptive_window import (
    AdaptiveWindow,
    Bucket,
    ChangedQuantity,
    Found,
)
from eddyline.engine.policies.policy import no_overhead
from eddyline.engine.signature import Signature

BORROWED = 32.0
"""Weight, in tuples, of a module's record under other signatures beside that under this one.

Of 8, 16, 32 the last was best by a little on predicates with random costs that
change three times, and made no difference elsewhere.
"""

BORROWED_VISITS = 16.0
"""The same for its cost, in what a visit costs by itself, where tuples cost little beside that.

A probe of a thousand tuples finds the index out of the cache: it measures 80 ns a tuple where
probes of 65,000 take 12. By its own record of one such look the best module looked too dear
for the rest of a star join; what was seen of it behind others puts that right.
"""

FADED = 0.25
"""Weight, in tuples, left to the other modules' records when one's selectivity has changed.

Eight predicates of 500 microseconds that exchange their selectivities half-way take
1.18 times the best orders with 1 tuple, 1.12 with a quarter; without any the
modules would all look alike.
"""

OPTIMISM = 2.0
"""Standard deviations by which a selectivity or a cost may be better than it looks."""

FIRST_DOUBT = 0.5
"""Standard deviation of the logarithm of a cost that was seen once: a factor of 1.6."""

CHEAPEST = 1e-12
"""Least cost of a tuple, in the clock's unit, so that no cost is nothing."""

STATIONS = 4096
"""Signatures that are remembered from one eddy to the next; a record of one takes some 2 kB."""


class Estimate(NamedTuple):
    """What one module is expected to do to one tuple."""

    cost: float
    selectivity: float
    lowest_cost: float  # were it as low as its doubt allows
    lowest_selectivity: float  # likewise


@dataclass(slots=True)
class Cell:
    """What is known of one module for one signature."""

    window: AdaptiveWindow
    sent: int = 0  # tuples
    last_sent: int = 0  # in the policy's own time


@dataclass(slots=True)
class Station:
    """What is kept for one signature: where its tuples wait, and are sent on."""

    cells: dict[int, Cell] = field(default_factory=dict)  # by module
    chosen: int = -1  # the last choice, -1 where there was none
    standing: float = 0.0  # cost for which it still stands
    usual: int = 0  # tuples of the last visit that was no look
    doubt_budget: float = 0.0  # what settling doubts may still cost
    stale_budget: float = 0.0  # what refreshing old knowledge may still cost
    last_used: int = 0  # in the policy's own time


class Knowledge:
    """Conditional statistics that fill each other's gaps.

    A cell is the record of a module under one signature. Where it holds few tuples,
    the module's record over all signatures fills in.
    """

    new_window: type[AdaptiveWindow] = AdaptiveWindow
    """What remembers the visits; another way of forgetting can be put in its place."""

    def __init__(self, modules: int) -> None:
        """Start with nothing known of so many modules."""
        self.stations: dict[Signature, Station] = {}
        self.overhead: Callable[[int], float] = no_overhead  # of a visit to a module
        self._pooled = [Estimate(1.0, 0.5, 0.0, 0.0)] * modules
        self._borrowed = [BORROWED] * modules  # the weight of its cost under other signatures

    def station(self, signature: Signature) -> Station:
        """Return the record of a signature."""
        station = self.stations.get(signature)
        if station is None:
            station = self.stations[signature] = Station()
        return station

    def cell(self, station: Station, module: int) -> Cell:
        """Return the record of a module for the signature of a station."""
        cell = station.cells.get(module)
        if cell is None:
            cell = station.cells[module] = Cell(self.new_window())
        return cell

    def estimate(self, signature: Signature, module: int) -> Estimate:
        """Return cost and selectivity, a tuple, and how low they may plausibly be."""
        pooled = self._pooled[module]
        cost, selectivity = pooled.cost, pooled.selectivity
        tuples = 0.0
        station = self.stations.get(signature)
        cell = station.cells.get(module) if station is not None else None
        if cell is not None:
            whole = cell.window.whole
            tuples = whole.tuples
            selectivity = (whole.returned + BORROWED * selectivity) / (tuples + BORROWED)
            borrowed = self._borrowed[module]
            cost = (whole.cost + borrowed * cost) / (whole.cost_tuples + borrowed)
        variance = selectivity * max(1.0 - selectivity, 0.0) or selectivity
        # Agresti and Coull's four extra observations keep 0 of 8 from looking certain.
        doubt = math.sqrt((variance + 1.0 / (tuples + 4.0)) / (tuples + 4.0))
        lowest_selectivity = max(0.0, selectivity - OPTIMISM * doubt)
        lowest_cost = cost * pooled.lowest_cost / pooled.cost
        return Estimate(cost, selectivity, lowest_cost, lowest_selectivity)

    def seen_cost(self, module: int) -> float:
        """Return the cost a tuple that was seen of a module; 0 where none was."""
        cells = (station.cells.get(module) for station in self.stations.values())
        seen = [cell.window.whole for cell in cells if cell is not None]
        tuples = sum(whole.cost_tuples for whole in seen)
        return sum(whole.cost for whole in seen) / tuples if tuples else 0.0

    def pool(self) -> None:
        """Add each module's records up over all signatures."""
        sums = [Bucket() for _ in self._pooled]
        noises = [0.0] * len(sums)
        for station in self.stations.values():
            for module, cell in station.cells.items():
                whole = cell.window.whole
                sums[module].absorb(whole)
                noises[module] += whole.cost_noise()
        known = sum(whole.cost_tuples for whole in sums)
        typical = sum(whole.cost for whole in sums) / known if known else 1.0
        self._pooled = []
        self._borrowed = []
        for module, (whole, noise) in enumerate(zip(sums, noises, strict=True)):
            mean = whole.cost / whole.cost_tuples if whole.cost_tuples else typical
            cost = max(mean, CHEAPEST)
            doubt = math.sqrt(noise + FIRST_DOUBT * FIRST_DOUBT) / max(whole.cost_visits, 1.0)
            selectivity = (whole.returned + 0.5) / (whole.tuples + 1.0)
            lowest_cost = cost * math.exp(-OPTIMISM * doubt)
            self._pooled.append(Estimate(cost, selectivity, lowest_cost, 0.0))
            self._borrowed.append(max(BORROWED, BORROWED_VISITS * self.overhead(module) / cost))

    def forget(self, signature: Signature, module: int, found: Found) -> None:
        """Drop what other signatures know of a module from before it changed.

        A change of selectivity is one of the data and seldom comes alone: what is
        known of the other modules may still hold, but no longer stands against what
        is seen from now on. A change of cost may be a hiccup of the machine.
        """
        for other, station in self.stations.items():
            station.standing = 0.0
            for number, cell in station.cells.items():
                if number == module:
                    if other != signature:
                        cell.window.forget_before(found.quantity, found.when)
                elif found.quantity is ChangedQuantity.SELECTIVITY:
                    cell.window.fade(FADED)

    def forget_rare(self) -> None:
        """Drop the signatures that were not seen for longest, if there are too many."""
        if len(self.stations) > STATIONS:
            latest = sorted(self.stations.items(), key=lambda entry: entry[1].last_used)
            self.stations = dict(latest[-STATIONS // 2 :])
