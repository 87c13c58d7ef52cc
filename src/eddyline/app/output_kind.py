"""The kinds of file that rows can be written to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class OutputKind(StrEnum):
    """By the ending of the file's name."""

    PARQUET = "parquet"
    CSV = "csv"  # with a header; quotes are doubled
    JSON = "json"  # one object a line

    @staticmethod
    def of(path: Path) -> OutputKind | None:
        """Return the kind of a file by its name, None if it is none of these.

        >>> OutputKind.of(Path("rows.CSV")), OutputKind.of(Path("rows.txt"))
        (<OutputKind.CSV: 'csv'>, None)
        """
        ending = path.suffix.removeprefix(".").lower()
        return OutputKind(ending) if ending in set(OutputKind) else None
