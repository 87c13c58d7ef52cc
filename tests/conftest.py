"""What all tests may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyspark
import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import eddyline
from tests.validated import SETTINGS

# A machine that is busy with something else must not fail a property; and CI
# must fail for what a change did, not for an example that it drew by chance.
settings.register_profile("tests", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "tests")


def pytest_configure(config: pytest.Config) -> None:
    if pyspark.__version__.startswith("4.1."):
        # That PySpark leaves the socket of every collect() to the garbage collector.
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for the whole run, on two cores, as a user would start it."""
    session = eddyline.session("eddyline-tests", master="local[2]", config=SETTINGS)
    yield session
    session.stop()
