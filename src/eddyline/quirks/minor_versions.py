"""Minor versions, as of PySpark; for those who cannot know whether there is any."""

from __future__ import annotations

import re


def minor_version(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version; zeros where there are none.

    >>> minor_version("4.0.5"), minor_version("4.1.0.dev1"), minor_version("unknown")
    ((4, 0), (4, 1), (0, 0))
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
