"""A column that Spark computes beside those of a stream, for the queries that ask about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DerivedColumn:
    """An expression over the columns of one stream that Eddyline does not evaluate itself.

    ``number`` is its own among the columns of ``stream``, beyond those that the stream has: no
    other expression ever gets it in a state directory. Queries that say the same, as ``key`` has
    it, share the column. ``type`` is Spark's as JSON, ``text`` is for people.

    An expression that may raise has two columns: its value, and what it was about where it raises,
    ``is_event``, which is NULL elsewhere; the text of that one names the columns concerned.
    """

    stream: str
    number: int
    key: str
    type: str
    text: str
    is_event: bool = False

    @property
    def name(self) -> str:
        """Its name in the plans of micro-batches."""
        return f"eddyline_derived_{self.number}"
