"""What the adaptive policy knows: a record for each (signature, module), and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from eddyline.engine.policies.adaptive_window import (
    AdaptiveWindow,
    Bucket,
    ChangedQuantity,
    Found,
)
from eddyline.engine.policies.policy import no_overhead
from eddyline.engine.routes import Routes
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


class Shared(NamedTuple):
    """What is known of an operation of a module under all signatures together."""

    cost: float
    selectivity: float
    lowest_cost: float
    weight: float  # of its cost, in tuples, beside what one signature knows


@dataclass(slots=True)
class Sum:
    """Records of one operation, or of all operations of a module."""

    module: int = -1
    bucket: Bucket = field(default_factory=Bucket)
    noise: float = 0.0

    def add(self, bucket: Bucket) -> None:
        """Add one more."""
        self.bucket.absorb(bucket)
        self.noise += bucket.cost_noise()


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

    def __init__(self, routes: Routes) -> None:
        """Start with nothing known of the modules of some routes."""
        self.routes = routes
        self.overhead: Callable[[int], float] = no_overhead  # of a visit to a module
        self.stations: dict[Signature, Station] = {}
        self._shared: dict[Hashable, Shared] = {}  # by operation
        self._unseen = [Shared(1.0, 0.5, 0.0, BORROWED)] * routes.modules

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
        shared = self.shared(signature, module)
        cost, selectivity = shared.cost, shared.selectivity
        tuples = 0.0
        station = self.stations.get(signature)
        cell = station.cells.get(module) if station is not None else None
        if cell is not None:
            whole = cell.window.whole
            tuples = whole.tuples
            selectivity = (whole.returned + BORROWED * selectivity) / (tuples + BORROWED)
            cost = (whole.cost + shared.weight * cost) / (whole.cost_tuples + shared.weight)
        variance = selectivity * max(1.0 - selectivity, 0.0) or selectivity
        # Agresti and Coull's four extra observations keep 0 of 8 from looking certain.
        doubt = math.sqrt((variance + 1.0 / (tuples + 4.0)) / (tuples + 4.0))
        lowest_selectivity = max(0.0, selectivity - OPTIMISM * doubt)
        lowest_cost = cost * shared.lowest_cost / shared.cost
        return Estimate(cost, selectivity, lowest_cost, lowest_selectivity)

    def shared(self, signature: Signature, module: int) -> Shared:
        """Return what all signatures together know of what a module does to one of them."""
        known = self._shared.get(self.routes.operation(signature, module))
        return self._unseen[module] if known is None else known

    def seen_cost(self, module: int) -> float:
        """Return the cost a tuple that was seen of a module; 0 where none was."""
        cells = (station.cells.get(module) for station in self.stations.values())
        seen = [cell.window.whole for cell in cells if cell is not None]
        tuples = sum(whole.cost_tuples for whole in seen)
        return sum(whole.cost for whole in seen) / tuples if tuples else 0.0

    def pool(self) -> None:
        """Add the records of each operation up over all signatures."""
        sums: dict[Hashable, Sum] = {}
        whole = [Sum() for _ in self._unseen]
        for signature, station in self.stations.items():
            for module, cell in station.cells.items():
                operation = self.routes.operation(signature, module)
                for total in (sums.setdefault(operation, Sum(module)), whole[module]):
                    total.add(cell.window.whole)
        known = sum(total.bucket.cost_tuples for total in whole)
        typical = sum(total.bucket.cost for total in whole) / known if known else 1.0
        self._unseen = [
            self._weighed(total, module, typical)._replace(selectivity=0.5)
            for module, total in enumerate(whole)
        ]
        self._shared = {
            operation: self._weighed(total, total.module, typical)
            for operation, total in sums.items()
        }

    def _weighed(self, total: Sum, module: int, typical: float) -> Shared:
        bucket = total.bucket
        mean = bucket.cost / bucket.cost_tuples if bucket.cost_tuples else typical
        cost = max(mean, CHEAPEST)
        noise = total.noise + FIRST_DOUBT * FIRST_DOUBT
        doubt = math.sqrt(noise) / max(bucket.cost_visits, 1.0)
        return Shared(
            cost,
            (bucket.returned + 0.5) / (bucket.tuples + 1.0),
            cost * math.exp(-OPTIMISM * doubt),
            max(BORROWED, BORROWED_VISITS * self.overhead(module) / cost),
        )

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
