"""Paths as Spark reads and writes them."""

from __future__ import annotations

import re

from eddyline.standing.outputs import QUERY


def as_plain(path: str) -> str:
    r"""Return a path as a pattern that nothing else matches: Spark reads all paths as patterns.

    >>> print(as_plain("/state [1]/a*"))
    /state \[1\]/a\*
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def directory_of(query: str) -> str:
    """Return the directory with the results of a query, as Spark names that of a value.

    >>> directory_of("a/b"), directory_of("5 %"), directory_of("a{1}")
    ('query=a%2Fb', 'query=5 %25', 'query=a%7B1}')
    """
    escaped = re.sub(r"[\x01-\x1f\"#%'*/:=?\\\x7f{\[\]^]", _as_hexadecimal, query)
    return f"{QUERY}={escaped}"


def _as_hexadecimal(found: re.Match[str]) -> str:
    return f"%{ord(found.group()):02X}"
