"""How a source may be asked, and what becomes of a key that it does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eddyline.checked_values import positive_number, whole_number


class OnFailure(StrEnum):
    """What becomes of a row for which a function has no value."""

    FAIL = "fail"  # the query fails, if everything else accepts the row
    NULL = "null"  # the value is NULL
    KEEP = "keep"  # the value is a struct of a value and an error, one of them NULL

    @classmethod
    def named(cls, name: object) -> OnFailure:
        """Return the member of this name; ValueError where there is none."""
        for member in cls:
            if member == name:
                return member
        raise ValueError(f"on_error is 'fail', 'null' or 'keep', not {name!r}")


PATIENCE: Final = 600.0
"""Seconds for which a spent quota is waited for, where nothing else is said."""


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
    a call; after a failure that may pass ``retries`` more tries. A refusal for quota is no failure:
    it is waited out for ``patience`` seconds, if nothing is accepted meanwhile.
    """

    max_in_flight: int = 16
    rate: float | None = None
    timeout: float = 30.0
    retries: int = 3
    patience: float = PATIENCE
    on_error: OnError = OnError.FAIL

    def __post_init__(self) -> None:
        """Check the numbers; TypeError, ValueError."""
        whole_number(self.max_in_flight, "max_in_flight", 1)
        if self.rate is not None:
            positive_number(self.rate, "rate", "of requests a second")
        positive_number(self.timeout, "timeout", "of seconds", finite=False)
        whole_number(self.retries, "retries", 0)
        positive_number(self.patience, "patience", "of seconds", finite=False)
