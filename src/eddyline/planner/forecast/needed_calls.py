"""What a forecast knows of a function: before any call, of a sample of them, and in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.asking.function_method import FunctionMethod
from eddyline.planner.forecast.surveys import (
    CountedArguments,
    PaidUse,
    SampledArguments,
    SampleSlice,
)
from eddyline.reports.expected import Expected, share, unseen


@dataclass(frozen=True, slots=True)
class FreeKnowledge:
    """What is known of a function before any call: the sample, and which of it may be needed."""

    counted: CountedArguments
    part: SampleSlice
    sample: SampledArguments
    among: int
    whole: Expected
    candidates: tuple[int, ...]

    @property
    def share(self) -> Expected:
        """The part of all arguments that may be needed."""
        return self.share_of(len(self.candidates))

    def share_of(self, found: int) -> Expected:
        """Return the part of all arguments that so many of the candidates are.

        Where some of the rows were looked at, others may need further arguments.
        """
        part = share(found, self.among, self.whole.likely)
        if self.part.rows >= 1.0 or not self.candidates:
            return part
        once = int((self.sample.passing == 1).sum())
        more = unseen(once, self.among - len(self.candidates), self.part.rows)
        likely, most = (
            share(
                min(self.among, round(found + further * found / len(self.candidates))),
                self.among,
                self.whole.likely,
            )
            for further in (more.likely, more.high)
        )
        return Expected(part.low, likely.likely, max(likely.high, most.high))


@dataclass(frozen=True, slots=True)
class DecidedPlaces:
    """Places in a sample that were looked at, those of them that are needed, and those that may be.

    Of the latter some answers are known, and none of these needs them.
    """

    looked_at: tuple[int, ...]
    needed: tuple[int, ...]
    open: tuple[int, ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class NeededCalls:
    """Calls that are needed, without those that are kept: a share ``known`` of all.

    ``places`` are the sampled ones.
    """

    calls: Expected
    places: tuple[int, ...]
    known: float
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class FunctionFindings:
    """What was found out about a function; ``calls`` are those of the query and the forecast."""

    uses: Sequence[PaidUse]
    method: FunctionMethod
    free: FreeKnowledge
    calls: Expected
    known: float
    money: Expected | None
    notes: list[str]
