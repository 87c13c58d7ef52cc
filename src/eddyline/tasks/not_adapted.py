"""What stands for lookup tables and slow functions in a plan: it fails if Spark runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from eddyline.errors import NotAdaptedError

UNANSWERED: Final = (
    "In a session under eddyline.enable() this is said where Python has not answered in time: "
    "eddyline.status() tells why, and spark.eddyline.rewriteTimeout says how long Spark waits."
)


BY_HAND: Final = (
    "Run the query through eddyline.adapt(df), which asks for the values that the query has for "
    f"them. {UNANSWERED}"
)

BY_PLUGIN: Final = (
    "Eddyline's plug-in asks for the values that a query has for them, but where "
    "spark.eddyline.enabled is not true, where a program has called eddyline.enable() or "
    "eddyline.adapt() itself, and where its process does not answer, as the driver's log says then."
)


@dataclass(frozen=True, slots=True)
class NotAdapted:
    """The function of a lookup table's leaf; ``number`` tells tables of one name apart.

    Its ``advice`` is who asks for its rows.
    """

    table: str
    bind: tuple[tuple[str, ...], ...]
    number: int
    advice: str = BY_HAND

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's protocol
        """Raise NotAdaptedError: nobody knows for which values of its bind columns to ask."""
        ways = " or ".join(map(" and ".join, self.bind))
        raise NotAdaptedError(
            f"{self.table} is a lookup table, which answers only for given values of {ways}. "
            f"{self.advice}"
        )


@dataclass(frozen=True, slots=True)
class Scanned:
    """The function of a lookup table that can be scanned as well: it passes its rows on."""

    table: str
    number: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what comes."""
        yield from batches


@dataclass(frozen=True, slots=True)
class ConcurrentMark:
    """Stands for a function that is called where the driver is; ``number`` says for which.

    ``width``, ``unit``, ``price`` and ``values`` are those of CalledByDriver. Its maker gives it
    the ``declaration`` to hold, which does not travel.
    """

    name: str
    number: int
    width: int
    unit: str
    price: str
    values: int = 1
    declaration: object = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[ConcurrentMark], tuple[object, ...]]:
        """Return what a plan holds of it."""
        own = (self.name, self.number, self.width, self.unit, self.price, self.values)
        return ConcurrentMark, own

    def __call__(self, *columns: object) -> object:
        """Raise NotAdaptedError: here nobody knows the limits of the job."""
        raise NotAdaptedError(
            f"{self.name} is a concurrent function, whose calls ({len(columns)} arguments) are "
            f"made for the whole job together. Run the query through eddyline.adapt(df), which "
            f"has them made. {UNANSWERED}"
        )


@dataclass(frozen=True, slots=True)
class CascadeMark:
    """Stands for a cascade, a predicate that a proxy decides where it can; ``number`` says which.

    Its maker gives it the ``declaration`` to hold, which does not travel.
    """

    name: str
    number: int
    declaration: object = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[CascadeMark], tuple[object, ...]]:
        """Return what a plan holds of it."""
        return CascadeMark, (self.name, self.number)

    def __call__(self, *columns: object) -> object:
        """Raise NotAdaptedError: here nobody knows what the proxy may decide."""
        raise NotAdaptedError(
            f"{self.name} is a cascade, whose proxy may decide ({len(columns)} arguments) what was "
            f"proven of it for the whole query. Run the query through eddyline.adapt(df), which "
            f"has that done. {UNANSWERED}"
        )
