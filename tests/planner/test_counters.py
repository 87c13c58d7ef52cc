"""The counters of a context: what tasks have reported, and what the driver has done for them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import eddyline
from eddyline.counters import (
    BLOCKS,
    BUDGET_REFUSED,
    CALLBACKS_FAILED,
    CALLS_AVOIDED,
    CALLS_MADE,
    COUNTERS,
    LOOKUP_REQUESTS,
    QUOTA_REFUSED,
    ROWS,
    SPILLED,
    Counter,
)
from eddyline.planner.operating import operating_of
from tests.fresh_process import printed_lines

pytestmark = pytest.mark.slow(6)


class Since:
    """What was counted since this was made."""

    def __init__(self, spark: SparkSession) -> None:
        self._operating = operating_of(spark.sparkContext)
        self._before = self._operating.values()

    def __getitem__(self, counter: Counter) -> int:
        return self._operating.values()[counter] - self._before[counter]


def test_names_units_and_meanings() -> None:
    assert len({counter.name for counter in COUNTERS}) == len(COUNTERS)
    for counter in COUNTERS:
        assert counter.description.endswith(".")
        assert counter.unit == "By" or counter.unit.startswith("{")


def test_what_tasks_report(spark: SparkSession) -> None:
    since = Since(spark)
    even, third = (udf(lambda n, by=by: n % by == 0, "boolean") for by in (2, 3))
    df = spark.range(400).filter(even("id") & third("id"))
    fast = eddyline.adapt(df, remember=False)
    assert (since[BLOCKS], since[ROWS]) == (1, 0)
    for action in (1, 2):
        fast.collect()
        assert since[ROWS] == 400 * action
        assert since[CALLS_MADE] + since[CALLS_AVOIDED] == 800 * action
    run = eddyline.report(fast, all=True).to_dict()["blocks"][0]["run"]
    assert (since[CALLS_MADE], since[BLOCKS]) == (run["calls"], 1)
    assert since[SPILLED] == since[CALLBACKS_FAILED] == 0


class BusyError(Exception):
    """What a client raises for status 429."""

    status_code = 429


def test_what_the_driver_does(spark: SparkSession) -> None:
    since = Since(spark)
    source = eddyline.PythonLookup(lambda keys: [(key, key % 10) for key in keys], keys_per_call=8)
    eddyline.lookup_table(spark, "counted", schema="k bigint, v bigint", bind=["k"], source=source)
    spark.range(20).createOrReplaceTempView("asking_counted")
    query = "SELECT v FROM asking_counted JOIN counted ON k = id"
    assert eddyline.adapt(spark.sql(query)).count() == 20
    requests = since[LOOKUP_REQUESTS]
    assert 3 <= requests <= 20
    assert since[CALLS_MADE] == 0

    paid = eddyline.concurrent(
        lambda n: n % 2 == 0, returns="boolean", cost=1, unit="USD", budget=5, max_in_flight=1
    )
    with pytest.raises(Exception, match="BudgetSpentError"):
        eddyline.adapt(spark.range(20).filter(paid("id"))).collect()
    assert since[CALLS_MADE] == 5
    assert since[BUDGET_REFUSED] > 0
    assert since[QUOTA_REFUSED] == 0
    assert since[LOOKUP_REQUESTS] == requests

    refused = [3]

    def busy(number: int) -> bool:
        if refused[0]:
            refused[0] -= 1
            raise BusyError
        return number % 2 == 0

    polite = eddyline.concurrent(busy, returns="boolean", max_in_flight=1)
    assert eddyline.adapt(spark.range(4).filter(polite("id"))).count() == 2
    assert since[QUOTA_REFUSED] == 3
    assert since[CALLS_MADE] == 5 + 4
    eddyline.forget()
    assert (since[LOOKUP_REQUESTS], since[CALLS_MADE]) == (requests, 9)


def test_without_opentelemetry_it_is_said_what_to_install() -> None:
    lines = printed_lines(
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import eddyline.monitor.telemetry as room\n"
        "room.chosen_session = lambda spark: spark\n"
        "try: room.telemetry()\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    assert lines[-1].endswith('pip install "eddyline[telemetry]"')
