"""DataFrames and sessions with a JVM, which got a package of their own beside those of Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eddyline.quirks.pyspark_at_hand import MINOR

if TYPE_CHECKING or MINOR >= (4, 0):
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
else:
    from pyspark.sql import DataFrame as ClassicDataFrame

CLASSIC: Final = "org.apache.spark.sql.classic." if MINOR >= (4, 0) else "org.apache.spark.sql."
"""The package of their classes in the JVM."""

__all__ = ["CLASSIC", "ClassicDataFrame"]
