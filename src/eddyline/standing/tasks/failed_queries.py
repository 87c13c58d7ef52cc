"""What is told of a query that cannot go on: the error, the event, and the results that it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from eddyline.reports.wording import shortened

LONGEST_ERROR: Final = 500
"""Characters of an error that are kept."""

LONGEST_VALUE: Final = 60
"""Characters of a value of an event that are shown."""

LONGEST_EVENT: Final = 300
"""Characters of an event that are shown."""


REMEDY: Final = (
    "Other results of this micro-batch were put out. Change the query with replace(), or mend what "
    "it reads and go on with resume()."
)
"""What can be done where an error has no remedy of its own."""


class QueryFailure(NamedTuple):
    """Why a query cannot go on: the first error, and the event or row that it was about.

    ``rows`` are those that would have been results and were left out, as far as that is known;
    ``remedy`` says what can be done, where that is something of its own.
    """

    error: str
    event: str = ""
    rows: int = 0
    remedy: str = ""

    @property
    def reason(self) -> str:
        """All that as a text, with what can be done."""
        parts = [f"{self.error.rstrip('.')}."]
        if self.event:
            parts.append(f"It was met with {self.event}.")
        if self.rows:
            rows = "row is" if self.rows == 1 else "rows are"
            parts.append(f"{self.rows:,} {rows} left out of its results for this.")
        return " ".join([*parts, self.remedy or REMEDY])


def error_text(error: Exception) -> str:
    """Return what went wrong as one line."""
    return shortened(f"{type(error).__name__}: {error}", LONGEST_ERROR)


def shown_event(values: Mapping[str, object]) -> str:
    """Return the values of columns as a text of one line.

    >>> shown_event({"code": 500, "text": "a" * 100})
    'code = 500, text = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    parts = (f"{name} = {_shown(value)}" for name, value in values.items())
    return shortened(", ".join(parts), LONGEST_EVENT)


def _shown(value: object) -> str:
    return "NULL" if value is None else shortened(str(value), LONGEST_VALUE)
