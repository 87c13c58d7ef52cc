"""The plug-in needs Spark 4.0; programs that are submitted to Spark are not imported."""

from __future__ import annotations

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR

collect_ignore_glob = ["aware.py", "cluster.py", "faults.py", "functions.py", "unaware.py"]


@pytest.fixture(scope="session", autouse=True)
def spark_takes_the_plug_in() -> None:
    """Skip all tests where it does not; a glob would not leave out files that are named."""
    if MINOR < (4, 0):
        pytest.skip("the plug-in needs Spark 4.0")
