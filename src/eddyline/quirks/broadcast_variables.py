"""The class of broadcast variables, where there are any: the client of Spark Connect has none."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Final

from eddyline.quirks.pyspark_at_hand import MINOR

MODULE: Final = "pyspark.core.broadcast" if MINOR >= (4, 0) else "pyspark.broadcast"
"""The module that defines it, by which a pickle names it, too."""


def _classes() -> tuple[Any, ...]:
    package = MODULE.rpartition(".")[0]
    if importlib.util.find_spec(package) is None:
        return ()
    return (importlib.import_module(MODULE).Broadcast,)


BROADCAST: Final = _classes()
"""The class, for ``isinstance``: of one element, or of none."""
