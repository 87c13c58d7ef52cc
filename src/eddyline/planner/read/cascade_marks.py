"""Where a plan calls a cascade: a Python function that only stands for it."""

from __future__ import annotations

from typing import Any, Final

from pyspark.serializers import CPickleSerializer

from eddyline.planner.read.chains import Tree
from eddyline.quirks import arrow_columns
from eddyline.tasks.not_adapted import CascadeMark

_NAME: Final = CascadeMark.__name__.encode()


def cascade_of(command: bytes) -> CascadeMark | None:
    """Return the cascade that a pickled function stands for; None for any other."""
    if _NAME not in command:
        return None
    serializer = CPickleSerializer()
    loaded: Any = serializer.loads(command)  # type: ignore[no-untyped-call]  # PySpark's own is untyped
    mark = loaded[0] if isinstance(loaded, tuple) else None
    return mark if isinstance(mark, CascadeMark) else None


def cascade_in(tree: Tree) -> CascadeMark | None:
    """Return the cascade that a ``PythonUDF`` stands for; None for any other expression."""
    if tree.name != "PythonUDF" or tree.evaluation_type != arrow_columns.STAND_IN:
        return None
    return cascade_of(tree.pickled.command)
