"""What a lookup asks for rows, and how it is told that there will be none."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import pyarrow as pa

from eddyline.asking.limits import Limits, OnError
from eddyline.keeping.keep import span_of

if TYPE_CHECKING:
    from eddyline.asking.patience import Gate


def described_error(error: BaseException) -> str:
    r"""Return an error's kind and text, even where its text cannot be had.

    Half a surrogate pair, which UTF-8 cannot encode, is escaped: the text goes through a socket.

    >>> described_error(ValueError("half \ud800"))
    'ValueError: half \\ud800'
    """
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - whatever it raises instead of its text
        return kind
    return text.encode(errors="backslashreplace").decode()


class NoAnswerError(Exception):
    """A source has given no rows for a call, and will not. It never leaves this package.

    ``of_keys`` says whether some of the call's keys may be to blame, so that the others have rows
    if they are asked for without these.
    """

    def __init__(self, message: str, *, of_keys: bool = True) -> None:
        """Say what happened; the caller adds source and keys."""
        super().__init__(message)
        self.of_keys = of_keys


class TryAgainError(NoAnswerError):
    """A source has not answered this time; it may ``after`` so many seconds, if it has said so.

    Mostly no key is to blame: it is the source that does not answer.
    """

    def __init__(self, message: str, after: float | None = None, *, of_keys: bool = False) -> None:
        """Say what happened."""
        super().__init__(message, of_keys=of_keys)
        self.after = after


Key: TypeAlias = tuple[object, ...]
"""The values of the bind columns, in their order, none of them NULL."""


@dataclass(frozen=True, slots=True)
class LookedUpTable:
    """A table of which a source knows the rows, given the values of its ``bind`` columns.

    >>> LookedUpTable("t", ("zip", "income"), (pa.string(), pa.float64()), (0,)).bind_names
    ('zip',)
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    bind: tuple[int, ...]

    @property
    def bind_names(self) -> tuple[str, ...]:
        """The names of the bind columns."""
        return tuple(self.columns[column] for column in self.bind)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema(list(zip(self.columns, self.types, strict=True)))


class LookupConnection(Protocol):
    """A source that is open; used by one event loop, for many calls at a time."""

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return all rows of the table for the given keys, in any order; others may be among them.

        Raises :class:`TryAgainError` where that may help,
        :class:`NoAnswerError` where not; any other error means the
        latter. Where some of the keys may be to blame, others are asked for without them.
        """
        ...

    async def close(self) -> None:
        """Let go of all that is open."""
        ...


class LookupSource(Protocol):
    """Where the rows of a table come from: a description, which opens nothing and holds no secret.

    ``label`` names it in messages; ``keys_per_call`` is how many keys it takes in one.
    """

    @property
    def label(self) -> str:
        """The source as people know it, without secrets."""
        ...

    @property
    def keys_per_call(self) -> int:
        """Keys that one call may ask for, 1 at least."""
        ...

    def check(self, table: LookedUpTable) -> None:
        """Raise ValueError where this cannot be a source of the table; nothing is opened.

        :class:`~eddyline.errors.MissingSecretError` where a secret is not set.
        """
        ...

    def connect(self, table: LookedUpTable, gate: Gate) -> LookupConnection:
        """Open it; every request goes through the gate."""
        ...


_OF_SOURCES: Final = ("label", "keys_per_call", "check", "connect")


@dataclass(frozen=True)
class LookupMethod:
    """A further way to the rows of a lookup table: by other bind columns, from its own source.

    ``source`` is one source, or several that give the same rows (mirrors), each within these
    limits. A request costs ``cost``, in ``unit``. See :func:`eddyline.lookup_table`.
    """

    bind: Sequence[str]
    source: LookupSource | Sequence[LookupSource]
    max_in_flight: int = field(default=16, kw_only=True)
    rate: float | None = field(default=None, kw_only=True)
    timeout: float = field(default=30.0, kw_only=True)
    retries: int = field(default=3, kw_only=True)
    patience: str | dt.timedelta = field(default="10 minutes", kw_only=True)
    cost: float | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True)

    @property
    def sources(self) -> tuple[LookupSource, ...]:
        """The sources; ValueError where there is none, TypeError for what is none."""
        sources = tuple(self.source) if isinstance(self.source, Sequence) else (self.source,)
        if not sources:
            raise ValueError("a lookup needs a source at least")
        for source in sources:
            if isinstance(source, type):
                raise TypeError(f"a source is an object, not the class {source.__name__}")
            if lacking := [name for name in _OF_SOURCES if not hasattr(source, name)]:
                raise TypeError(
                    "a source is an HttpLookup, a SqlLookup, a PythonLookup or an object with the "
                    f"same methods, not {source!r}, which lacks {', '.join(lacking)}"
                )
        return sources

    def limits(self, on_error: str) -> Limits:
        """Return the limits of each source; ValueError for what cannot be."""
        return Limits(
            self.max_in_flight,
            self.rate,
            self.timeout,
            self.retries,
            span_of(self.patience, "patience"),
            OnError.named(on_error),
        )
