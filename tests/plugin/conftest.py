"""The plug-in needs Spark 4.0."""

from __future__ import annotations

from eddyline.quirks.pyspark_at_hand import MINOR

collect_ignore_glob = ["test_*"] if MINOR < (4, 0) else []
