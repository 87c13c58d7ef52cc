"""What a worker tries before anything of a query depends on it."""

from __future__ import annotations

import importlib
import importlib.util


def eddies_run_here(_: object) -> bool:
    """Import what a filter's eddy needs; ``ModuleNotFoundError`` where something is missing.

    Whoever unpickles this has found Eddyline already. A join's eddy needs Numba, which takes longer
    to import than the rest together.
    """
    importlib.import_module("eddyline.tasks.filter_task")
    if importlib.util.find_spec("numba") is None:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")
    return True
