"""State that Python keeps in a stream (``transformWithStateInPandas``), which came with 4.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eddyline.errors import PySparkTooOldError
from eddyline.quirks.pyspark_at_hand import MINOR

if TYPE_CHECKING or MINOR >= (4, 0):
    from pyspark.sql.streaming.stateful_processor import (
        MapState,
        StatefulProcessor,
        StatefulProcessorHandle,
        ValueState,
    )
else:
    MapState = StatefulProcessor = StatefulProcessorHandle = ValueState = object

__all__ = [
    "MapState",
    "StatefulProcessor",
    "StatefulProcessorHandle",
    "ValueState",
    "require_state_in_python",
]


def require_state_in_python() -> None:
    """Raise :class:`PySparkTooOldError` where Spark has none."""
    if MINOR < (4, 0):
        raise PySparkTooOldError(
            "Standing queries keep their state by transformWithStateInPandas, which PySpark "
            f"{MINOR[0]}.{MINOR[1]} does not have. Install a newer one: pip install 'pyspark>=4.0'"
        )
