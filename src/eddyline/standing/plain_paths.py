"""Paths as Spark reads and writes them."""

from __future__ import annotations

import re


def as_plain(path: str) -> str:
    r"""Return a path as a pattern that nothing else matches: Spark reads all paths as patterns.

    >>> print(as_plain("/state [1]/a*"))
    /state \[1\]/a\*
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
