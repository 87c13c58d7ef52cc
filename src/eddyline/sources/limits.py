"""How a source may be asked, and what becomes of a key that it does not answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class OnError(StrEnum):
    """What becomes of a key for which there is no answer."""

    FAIL = "fail"  # the query fails, with an error that names source and key
    NULL = "null"  # one row: the key, and NULL in all other columns
    SKIP = "skip"  # no row


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
        """Check the numbers; ValueError."""
        if self.max_in_flight < 1:
            raise ValueError(f"max_in_flight is 1 at least, not {self.max_in_flight}")
        if self.rate is not None and not (self.rate > 0 and math.isfinite(self.rate)):
            raise ValueError(f"rate is a number of requests a second, above 0, not {self.rate}")
        if not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {self.timeout}")
        if self.retries < 0:
            raise ValueError(f"retries is a number of tries from 0 on, not {self.retries}")
