"""The plug-in needs Spark 4.0; programs that are submitted to Spark are not imported."""

from __future__ import annotations

from eddyline.quirks.pyspark_at_hand import MINOR

PROGRAMS = ["aware.py", "cluster.py", "faults.py", "functions.py", "unaware.py"]

collect_ignore_glob = PROGRAMS + (["test_*"] if MINOR < (4, 0) else [])
