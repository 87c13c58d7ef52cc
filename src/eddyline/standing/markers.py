"""Named parameter markers in SQL text: ``:name``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from eddyline.errors import NotShareableError
from eddyline.standing.sql_tokens import COMMENT, QUOTED

_TOKENS: Final = re.compile(
    rf"""
    {QUOTED}
    | {COMMENT}
    | ::                            # a cast
    | (?<![\w)\]]):(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


PARAMETER: Final = "eddyline_parameter_"
"""What the names of functions that stand for parameters begin with; the parameters' follow."""


def with_markers(sql: str, replaced: Callable[[str], str]) -> str:
    """Return a statement with what ``replaced`` gives for each marker's name in its place.

    >>> with_markers("SELECT ':a', b::INT FROM t WHERE a = :a", str.upper)
    "SELECT ':a', b::INT FROM t WHERE a = A"
    """
    return _TOKENS.sub(lambda m: replaced(m["name"]) if m["name"] else m[0], sql)


def markers_in(sql: str) -> tuple[str, ...]:
    """Return the names of the markers in a statement, each once.

    >>> markers_in("SELECT * FROM t WHERE a BETWEEN :low AND :high OR b = :low")
    ('low', 'high')
    """
    names: dict[str, None] = {}

    def take(name: str) -> str:
        names.setdefault(name)
        return name

    with_markers(sql, take)
    return tuple(names)


def require_columns(sql: str, columns: Collection[str]) -> None:
    """Raise NotShareableError where a statement has a marker that none of the columns gives."""
    for name in markers_in(sql):
        if name not in columns:
            raise NotShareableError(f"there is no parameter {name} for :{name} in: {sql}")
