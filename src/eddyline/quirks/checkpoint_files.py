"""Where Spark has the class that renames the files of checkpoints by Hadoop's older interface."""

from __future__ import annotations

from typing import Final

from eddyline.quirks.pyspark_at_hand import MINOR

RENAMED: Final = (
    "org.apache.spark.sql.execution.streaming."
    + ("checkpointing." if MINOR >= (4, 1) else "")
    + "FileSystemBasedCheckpointFileManager"
)
"""Writes a file beside its place and renames it, by ``FileSystem`` instead of ``FileContext``."""
