"""What all tests may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyspark
import pytest
from pyspark.sql import SparkSession

import eddyline
from tests import looked_up, properties
from tests.validated import SETTINGS

properties.register()


LONGEST: Final = (
    "tests/standing/test_standing_queries.py",
    "tests/planner/test_enabling.py",
    "tests/planner/test_clusters.py",
    "tests/docs/test_examples.py",
    "tests/planner/test_shapes.py",
    "tests/standing/test_join_conditions.py",
    "tests/standing/test_aggregates.py",
    "tests/standing/test_bounded_joins.py",
    "tests/standing/test_rule_functions.py",
    "tests/standing/tasks/test_standing_cells.py",
    "tests/oracle/test_tpch.py",
    "tests/planner/test_concurrent_functions.py",
    "tests/app/test_rules.py",
    "tests/planner/test_bind_patterns.py",
    "tests/bench/test_figures.py",
    "tests/planner/test_lookup_tables.py",
    "tests/oracle/test_random_joins.py",
    "tests/planner/joins/test_failures.py",
    "tests/planner/joins/test_map_side.py",
    "tests/host/test_session.py",
    "tests/oracle/test_adversarial.py",
    "tests/planner/joins/test_random_queries.py",
    "tests/oracle/test_random_expressions.py",
    "tests/planner/joins/test_random_layouts.py",
    "tests/planner/joins/test_reduction.py",
    "tests/planner/test_valid_plans.py",
    "tests/asking/test_postgres.py",
    "tests/watching/test_running_aggregates.py",
    "tests/planner/test_outer_lookups.py",
    "tests/planner/joins/test_nested_columns.py",
    "tests/planner/joins/test_keys_of_all_types.py",
    "tests/asking/test_http_failures.py",
    "tests/standing/engine/test_shared_eddy.py",
    "tests/planner/test_settings.py",
    "tests/tasks/calling/test_arguments.py",
    "tests/tasks/calling/test_results.py",
    "tests/planner/test_malformed_text.py",
    "tests/planner/test_watch.py",
    "tests/reports/test_merging.py",
    "tests/planner/joins/test_spill.py",
)
"""Files of a quarter of a minute and more, the longest first: begun last, they would keep one
process busy when all others have nothing left to do."""


WITH_SPARK: Final = ("tests/app/", "tests/docs/", "tests/host/", "tests/oracle/", "tests/planner/")
"""Folders whose tests start Spark, be it in processes of their own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.nodeid.startswith(WITH_SPARK):
            item.add_marker("spark")
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_configure(config: pytest.Config) -> None:
    looked_up.remember()
    if pyspark.__version__.startswith("4.1."):
        # That PySpark leaves the socket of every collect() to the garbage collector.
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def no_views_are_left() -> Iterator[None]:
    """Drop the temporary views that a file's tests made: the next file's may not rest on them."""
    yield
    if session := SparkSession.getActiveSession():
        for table in session.sql("SHOW TABLES").collect():
            if table["isTemporary"]:
                session.catalog.dropTempView(table["tableName"])


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for the whole run, on two cores, as a user would start it."""
    session = eddyline.session("eddyline-tests", master="local[2]", config=SETTINGS)
    yield session
    session.stop()
