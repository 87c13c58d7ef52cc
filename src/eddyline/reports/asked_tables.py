"""What lookup tables were asked for."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.reports.wording import NOTHING, count


@dataclass(frozen=True, slots=True)
class AskedTable:
    """What became of one way into a lookup table in all jobs of a query.

    ``keys`` are distinct ones that were asked for, once a job each, in ``requests`` requests, tries
    again included; ``failures`` are calls that brought no answer at a try, ``at_a_time`` the
    most requests under way at once. ``by_source`` says how many keys each of its sources got,
    ``unmatched`` how many rows came with a key that their call had not asked for.
    """

    name: str
    keys: int
    requests: int
    failures: int
    at_a_time: int
    by_source: tuple[tuple[str, int], ...] = ()
    unmatched: int = 0

    @property
    def shares(self) -> str:
        """The keys of each source, as text, where there are several.

        >>> AskedTable("zips", 5, 5, 0, 2, (("api", 3), ("database", 2))).shares
        'api 3, database 2'
        """
        if len(self.by_source) < 2:  # noqa: PLR2004 - several
            return NOTHING
        return ", ".join(f"{name} {count(keys)}" for name, keys in self.by_source)
