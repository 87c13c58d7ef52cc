"""One processor for many modules, on a virtual clock."""

from __future__ import annotations

import math

from eddyline.simulation.virtual_clock import VirtualClock


class Processor:
    """One processor that modules with work share round-robin, on a virtual clock.

    A module keeps the processor for a time slice; one whose tuple needs less
    gives the rest back. Whole rounds in which no tuple gets done are taken in one
    step, so a tuple costs the same to simulate however many slices it takes.

    >>> processor = Processor(2, VirtualClock(), time_slice=1.0)
    >>> processor.begin(0, 5.0)
    >>> processor.begin(1, 2.0)
    >>> processor.run(), processor.clock.now()  # 0 1 0 1: one unit each, in turn
    (1, 4.0)
    >>> processor.run(), processor.clock.now()
    (0, 7.0)
    """

    def __init__(self, modules: int, clock: VirtualClock, time_slice: float) -> None:
        """Start idle; ValueError unless the time slice is above 0."""
        if not time_slice > 0.0:
            raise ValueError(f"a time slice is a duration above 0, not {time_slice}")
        self.clock = clock
        self._slice = time_slice
        self._left: list[float | None] = [None] * modules  # work left; None: idle
        self._next = 0  # whose slice comes next

    def is_idle(self, module: int) -> bool:
        """Tell whether a module has nothing to do."""
        return self._left[module] is None

    def begin(self, module: int, work: float) -> None:
        """Give an idle module a tuple that takes ``work`` of processor time, from 0 on."""
        if not 0.0 <= work < math.inf:
            raise ValueError(f"a tuple's cost is a number from 0 on, not {work}")
        self._left[module] = work

    def run(self, most: float = math.inf) -> int | None:
        """Run until a tuple is done; return its module.

        Returns None where all modules are idle, and after ``most`` time, with the
        slice in which that is over.
        """
        left, time_slice = self._left, self._slice
        busy = [(work, module) for module, work in enumerate(left) if work is not None]
        if not busy:
            return None
        if len(busy) == 1:
            work, module = busy[0]
            if work > most:
                left[module] = work - most
                self.clock.advance(most)
                return None
            self.clock.advance(work)
            return self._done(module)
        spent = 0.0
        rounds = math.ceil(min(min(busy)[0], most / len(busy)) / time_slice) - 1
        if rounds > 0:
            given = rounds * time_slice
            for work, module in busy:
                left[module] = work - given
            spent = given * len(busy)
        while spent < most:
            module = self._next
            remaining = left[module]
            if remaining is not None:
                if remaining <= time_slice:
                    self.clock.advance(spent + max(remaining, 0.0))
                    return self._done(module)
                left[module] = remaining - time_slice
                spent += time_slice
            self._next = (module + 1) % len(left)
        self.clock.advance(spent)
        return None

    def _done(self, module: int) -> int:
        self._left[module] = None
        self._next = (module + 1) % len(self._left)
        return module
