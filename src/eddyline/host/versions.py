"""The versions of PySpark that Eddyline works with."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from typing import Final

from eddyline.errors import PySparkMissingError, PySparkTooOldError
from eddyline.quirks.minor_versions import minor_version

TESTED: Final = ((3, 5), (4, 0), (4, 1), (4, 2), (4, 3))
"""The minor versions of PySpark that are tested, oldest first; ``make versions`` tests them."""


class UntestedPySparkWarning(UserWarning):
    """The PySpark that is installed is newer than any that Eddyline was tested with."""


def installed_version() -> str:
    """Return the version of the PySpark that is there; :class:`PySparkMissingError` for none."""
    try:
        import pyspark  # noqa: PLC0415 - it may not be there
    except ModuleNotFoundError as error:
        if error.name not in {"pyspark", "py4j"}:
            raise
        raise PySparkMissingError(error.name) from None
    # The client has all else of this name; it needs no py4j, and another package may.
    has_core = minor_version(pyspark.__version__) >= (4, 0)
    for module in ("pyspark.core" if has_core else "pyspark.context", "py4j"):
        if importlib.util.find_spec(module) is None:
            raise PySparkMissingError(module)
    return str(pyspark.__version__)


@functools.cache
def is_tested() -> bool:
    """Whether the PySpark that is there is one that Eddyline is tested with."""
    return minor_version(installed_version()) in TESTED


@functools.cache  # one warning is enough
def require_tested_version(version: str | None = None) -> None:
    """Raise :class:`PySparkTooOldError`, or warn of a PySpark that nobody has tested.

    ``version`` is that of the PySpark that is installed, unless one is given;
    :class:`PySparkMissingError` where there is none. A new one may work well: what Eddyline takes
    from inside Spark seldom changes.
    """
    if version is None:
        version = installed_version()
    minor = minor_version(version)
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
        f"Eddyline is tested with PySpark {tested}; {version}, which is installed, may differ. "
        "What gives other rows in tiny queries, which run at the first use, is left to Spark.",
        UntestedPySparkWarning,
        stacklevel=3,
    )
