"""TPC-H's 22 queries with the specification's validation parameters, as Spark's SQL.

The texts are those of the specification (revision 3), FROM orders included. Q15's view is a
common table expression, ``LIMIT`` stands for "return only the first … selected rows". The
first two lines of a file give the query's title and the output columns that it sorts by.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("sql")


@dataclass(frozen=True, slots=True)
class TpchQuery:
    """One of the 22; ``order_by`` names the output columns that it sorts by."""

    number: int
    title: str
    order_by: tuple[str, ...]
    sql: str

    @property
    def name(self) -> str:
        """Short name: q1 to q22."""
        return f"q{self.number}"

    def sql_at(self, scale: float) -> str:
        """Return the query for a scale factor, on which one parameter of Q11 depends."""
        return self.sql.replace("{fraction}", f"{0.0001 / scale:.12f}")


def _read(path: Path) -> TpchQuery:
    title, sorting, sql = path.read_text(encoding="utf-8").split("\n", 2)
    columns = sorting.removeprefix("-- Sorted by: ")
    order_by = () if columns == "nothing" else tuple(columns.split(", "))
    return TpchQuery(int(path.stem[1:]), title.removeprefix("-- "), order_by, sql)


QUERIES: Final = tuple(map(_read, sorted(FOLDER.glob("q*.sql"))))
