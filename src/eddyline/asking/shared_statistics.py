"""What a job was asked for so far, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.asking.patience import Wait


@dataclass(frozen=True, slots=True)
class SharedLookupStatistics:
    """What was asked so far: distinct keys, calls for them, and the requests that these took.

    ``by_source`` are the keys that each source was asked for, in the order of registration,
    ``unmatched`` the rows that came with a key that their call had not asked for. ``kept`` are
    further keys whose answers a ledger had. ``refusals`` are requests that were refused for quota,
    which are none of the requests, and ``waited`` the seconds in which none was let through for
    that. The requests have cost what was ``spent``, in ``unit``. ``choice`` says whether a table
    that can be scanned as well was, and why, where that was decided while the job ran.
    """

    keys: int
    calls: int
    requests: int
    tries: int
    failures: int
    most_in_flight: int
    by_source: tuple[tuple[str, int], ...] = ()
    unmatched: int = 0
    kept: int = 0
    refusals: int = 0
    waited: float = 0.0
    waits: tuple[Wait, ...] = ()
    choice: str = ""
    spent: float = 0.0
    unit: str = ""

    def plus(self, other: SharedLookupStatistics) -> SharedLookupStatistics:
        """Return the sum, for two jobs that ask the same sources."""
        keys = zip(self.by_source, other.by_source, strict=True)
        return SharedLookupStatistics(
            self.keys + other.keys,
            self.calls + other.calls,
            self.requests + other.requests,
            self.tries + other.tries,
            self.failures + other.failures,
            max(self.most_in_flight, other.most_in_flight),
            tuple((source, one + two) for (source, one), (_, two) in keys),
            self.unmatched + other.unmatched,
            self.kept + other.kept,
            self.refusals + other.refusals,
            self.waited + other.waited,
            self.waits + other.waits,
            self.choice or other.choice,
            self.spent + other.spent,
            self.unit,
        )


@dataclass(frozen=True, slots=True)
class QuotaWait:
    """Keys that wait since a quota is spent: so many of those that are known are ``answered``.

    The others take about so many ``seconds``, None where nobody knows yet.
    """

    answered: int
    known: int
    seconds: float | None

    def __str__(self) -> str:
        """Return what people read of it.

        >>> str(QuotaWait(4_120, 10_000, 715.0))
        'waiting for quota, 4,120 of 10,000 answered, about 12 min'
        >>> str(QuotaWait(0, 10, None))
        'waiting for quota, 0 of 10 answered'
        """
        text = f"waiting for quota, {self.answered:,} of {self.known:,} answered"
        if self.seconds is None:
            return text
        minutes, hours = self.seconds / 60, self.seconds / 3_600
        about = f"{self.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min"  # noqa: PLR2004 - as people say
        return f"{text}, about {about if hours < 2 else f'{hours:.1f} h'}"  # noqa: PLR2004 - likewise
