"""One of several sources that give the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from eddyline.asking.asking import Asking
from eddyline.asking.gate import Gate
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import Key, LookedUpTable, LookupSource

NEWEST: Final = 0.2
"""Weight of the last call in what a call usually takes."""


class Mirror:
    """A source, its limits, and what is under way there."""

    def __init__(
        self,
        table: LookedUpTable,
        source: LookupSource,
        limits: Limits,
        random: Random,
        now: Callable[[], float],
    ) -> None:
        """Get ready; the source is opened with the first call."""
        self.label = source.label
        self.keys_per_call = source.keys_per_call
        self.gate = Gate(limits)
        self.lurking = False  # whether a worker waits for keys of others to be overdue
        self.under_way: dict[Key, float] = {}
        """Keys that it is asked for now, with the time since when."""
        self.keys = 0
        self.usual_seconds = 0.0
        """Seconds that a call usually takes; 0 before the first."""
        self._table = table
        self._source = source
        self._limits = limits
        self._random = random
        self._now = now
        self._asking: Asking | None = None
        self._closed: list[Asking] = []

    @property
    def tries(self) -> int:
        """How often it was tried."""
        return sum(each.tries for each in self._all())

    @property
    def failures(self) -> int:
        """Keys without an answer."""
        return sum(each.failures for each in self._all())

    def opened(self) -> Asking:
        """Return what asks it; it is open from now on."""
        if self._asking is None:
            self._asking = Asking(
                self._table,
                self.label,
                self._source.connect(self._table, self.gate),
                self._limits,
                self._random,
                self._now,
            )
        return self._asking

    async def close(self) -> None:
        """Close it, until it is asked again."""
        asking, self._asking = self._asking, None
        if asking is not None:
            self._closed.append(asking)
            await asking.close()

    def begin(self, keys: Sequence[Key]) -> float:
        """Note a call that begins; return the time."""
        now = self._now()
        self.keys += len(keys)
        self.under_way.update(dict.fromkeys(keys, now))
        return now

    def end(self, keys: Sequence[Key]) -> None:
        """Note that a call has ended."""
        for key in keys:
            self.under_way.pop(key, None)

    def took(self, seconds: float) -> None:
        """Learn what a call took."""
        usual = self.usual_seconds
        self.usual_seconds = usual + NEWEST * (seconds - usual) if usual else seconds

    def _all(self) -> list[Asking]:
        return [*self._closed, *([] if self._asking is None else [self._asking])]
