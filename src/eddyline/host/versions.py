"""The versions of PySpark that Eddyline works with."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Final

import pyspark

from eddyline.errors import PySparkTooOldError

TESTED: Final = ((4, 1), (4, 2), (4, 3))
"""The minor versions of PySpark that are tested, oldest first; ``make versions`` tests them."""


class UntestedPySparkWarning(UserWarning):
    """The PySpark that is installed is newer than any that Eddyline was tested with."""


@functools.cache  # one warning is enough
def require_tested_version(version: str = pyspark.__version__) -> None:
    """Raise :class:`PySparkTooOldError`, or warn of a PySpark that nobody has tested.

    It may work well: what Eddyline takes from inside Spark seldom changes.
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    minor = (int(match[1]), int(match[2])) if match else (0, 0)
    if minor in TESTED:
        return
    tested = ", ".join(f"{major}.{minor}" for major, minor in TESTED)
    if minor < TESTED[0]:
        oldest = ".".join(map(str, TESTED[0]))
        raise PySparkTooOldError(
            f"Eddyline works with PySpark {tested}, not with {version}, which is installed. "
            f"Install a newer one: pip install 'pyspark>={oldest}'"
        )
    warnings.warn(
        f"Eddyline is tested with PySpark {tested}; {version}, which is installed, may differ.",
        UntestedPySparkWarning,
        stacklevel=3,
    )
