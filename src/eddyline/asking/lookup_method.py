"""A way to look rows up, as users describe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import LookupSource


@dataclass(frozen=True)
class LookupMethod:
    """A further way to the rows of a lookup table: by other bind columns, from its own source.

    ``source`` is one source, or several that give the same rows (mirrors), each within these
    limits. See :func:`eddyline.lookup_table`.
    """

    bind: Sequence[str]
    source: LookupSource | Sequence[LookupSource]
    max_in_flight: int = field(default=16, kw_only=True)
    rate: float | None = field(default=None, kw_only=True)
    timeout: float = field(default=30.0, kw_only=True)
    retries: int = field(default=3, kw_only=True)

    @property
    def sources(self) -> tuple[LookupSource, ...]:
        """The sources; ValueError where there is none, TypeError for what is none."""
        found = tuple(self.source) if isinstance(self.source, Sequence) else (self.source,)
        if not found:
            raise ValueError("a lookup needs a source at least")
        for each in found:
            if isinstance(each, type) or not hasattr(each, "connect"):
                raise TypeError(
                    f"a source is an HttpLookup, a SqlLookup or a PythonLookup, not {each!r}"
                )
        return found

    def limits(self, on_error: str) -> Limits:
        """Return the limits of each source; ValueError for what cannot be."""
        return Limits(
            self.max_in_flight, self.rate, self.timeout, self.retries, OnError.named(on_error)
        )
