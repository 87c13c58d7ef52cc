"""How a source may be asked, and what becomes of a key that it does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eddyline.asking.checked_numbers import positive_number, whole_number


class OnError(StrEnum):
    """What becomes of a key for which there is no answer."""

    FAIL = "fail"  # the query fails, with an error that names source and key
    NULL = "null"  # one row: the key, and NULL in all other columns
    SKIP = "skip"  # no row

    @classmethod
    def named(cls, name: object) -> OnError:
        """Return the member of this name; ValueError where there is none."""
        for member in cls:
            if member == name:
                return member
        raise ValueError(f"on_error is 'fail', 'null' or 'skip', not {name!r}")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one source, for the whole job.

    At most ``max_in_flight`` requests at a time, and ``rate`` a second; ``timeout`` seconds for
    a call; after a failure that may pass ``retries`` more tries.
    """

    max_in_flight: int = 16
    rate: float | None = None
    timeout: float = 30.0
    retries: int = 3
    on_error: OnError = OnError.FAIL

    def __post_init__(self) -> None:
        """Check the numbers; TypeError, ValueError."""
        whole_number(self.max_in_flight, "max_in_flight", 1)
        if self.rate is not None:
            positive_number(self.rate, "rate", "of requests a second")
        positive_number(self.timeout, "timeout", "of seconds", finite=False)
        whole_number(self.retries, "retries", 0)
