"""Modules of kernels that are imported when the first of their kernels is called.

To import Numba takes 0.15 to 0.3 s. The driver never calls a kernel, nor does a filter block
in a worker, though what it is made of shares files with what joins. Nor does a join of few rows by
whole numbers: :mod:`eddyline.engine.storage.few_rows` does what it needs.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from eddyline.engine.storage import few_rows


class OnFirstUse:
    """Stands for a module, by its full name, until something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, member: str) -> Any:  # noqa: ANN401 - whatever the module has
        """Import the module; what was asked for once is an attribute from then on."""
        if self._name not in sys.modules and few_rows.pays():
            for_few = getattr(few_rows, member, None)
            if for_few is not None:
                return for_few
        value = getattr(importlib.import_module(self._name), member)
        setattr(self, member, value)
        return value
