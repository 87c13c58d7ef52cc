"""How far the access methods of one relation are, in counts: what a policy may know of them."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from eddyline.engine.clock import Clock

MEMORY: Final = 64.0
"""Probes that count: the part of them that finds all its matches rises while a scan goes on."""


class TableProgress:
    """What has come of a relation by scan, what may still come, and who waits for its lookups.

    Where a scan and lookups compete, what a lookup is worth falls with the part of the relation
    that is in its SteM: a missing row comes the sooner by itself. The part is known where the
    scan says how many rows it has left; else it is taken from the probes: of those that meet a
    relation whose rows come in no order, that part finds its matches.
    """

    def __init__(self, clock: Clock | None, *, scanned: bool) -> None:
        """Without a clock nobody knows when a row comes by scan."""
        self.clock = clock
        self.waiting = 0
        """Prior probers that have been neither to a lookup nor back at the SteM."""
        self._scanned = scanned
        self._complete = False
        self._since: float | None = None
        self._rows = 0
        self._expected: float | None = None
        self._found = 0.0  # share of the latest probes that did not bounce back
        self._probes = 0.0

    def now(self) -> float:
        """Return the time, in the clock's unit."""
        return 0.0 if self.clock is None else self.clock.now()

    def began(self) -> None:
        """Note that rows are being read, of this relation or of others."""
        if self._since is None and self.clock is not None:
            self._since = self.clock.now()

    def came(self, rows: int) -> None:
        """Count rows that came by scan."""
        self._rows += rows

    def expects(self, rows: float | None) -> None:
        """Take note of the rows that a scan has left; None where nobody knows."""
        self._expected = rows

    def ended(self) -> None:
        """Note that the scan has ended."""
        self._complete = True

    def probed(self, tuples: int, bounced: int) -> None:
        """Count tuples that probed for the first time, and those of them that came back."""
        if tuples:
            self._probes = min(self._probes + tuples, MEMORY + tuples)
            self._found += ((1.0 - bounced / tuples) - self._found) * tuples / self._probes

    def bounced(self, tuples: int) -> None:
        """Count prior probers that go to a lookup next, or back to the SteM."""
        self.waiting += tuples

    def went_on(self, tuples: int) -> None:
        """Count prior probers that have gone there."""
        # What an eddy before has left behind was never counted here.
        self.waiting = max(self.waiting - tuples, 0)

    @property
    def bounce_share(self) -> float:
        """The share of the latest probes that came back; 1 as long as there were none."""
        return 1.0 - self._found

    def seconds_by_scan(self) -> float:
        """Return after how long a row that is missing now comes by scan, on average.

        In the clock's unit. Infinity where there is no scan, or none has given a row.
        """
        if not self._scanned:
            return math.inf
        if self._complete:
            return 0.0
        if self._since is None or self.clock is None or not self._rows:
            return math.inf
        left = self._expected
        if left is None:
            left = self._rows * self.bounce_share / self._found if self._found else math.inf
        # At the rate so far; a scan that stalls gradually loses it.
        return 0.5 * left * (self.clock.now() - self._since) / self._rows


class Fetching(NamedTuple):
    """What fetches the rows that a SteM lacks: modules of lookups, and the relation's progress."""

    lookups: tuple[int, ...]
    table: TableProgress
