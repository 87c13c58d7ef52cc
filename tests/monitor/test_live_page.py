"""The live page of a session, as its user gets it."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

import eddyline
from eddyline.tasks.live_news import LOOKING


def test_queries_of_the_session_are_there(spark: SparkSession) -> None:
    @fn.udf("boolean")
    def even(number: int) -> bool:
        return number % 2 == 0

    with eddyline.live(spark) as page:
        assert page.url in repr(page)
        assert page.url in page._repr_html_()
        eddyline.adapt(
            spark.range(0, 1000, 1, 2).filter(even("id") & even(fn.col("id") + 2))
        ).count()
        assert json.loads(asked(page.url, "queries?find=even"))["queries"][0]["rows_in"] == 1000
    assert spark.conf.get(LOOKING, None) is None
    with pytest.raises(ConnectionRefusedError):
        asked(page.url)
    page.stop()  # again


def asked(url: str, path: str = "") -> bytes:
    where = urlsplit(url)
    assert where.hostname is not None
    connection = HTTPConnection(where.hostname, where.port, timeout=60)
    try:
        connection.request("GET", where.path + path)
        return connection.getresponse().read()
    finally:
        connection.close()


@pytest.mark.parametrize("port", [-1, 65_536, True, "8080", 1.5, None])
def test_what_is_no_port(spark: SparkSession, port: Any) -> None:  # noqa: ANN401
    with pytest.raises((TypeError, ValueError), match="A port is a"):
        eddyline.live(spark, port=port)
    assert spark.conf.get(LOOKING, None) is None


def test_a_port_that_is_taken(spark: SparkSession) -> None:
    with eddyline.live(spark) as page:
        port = int(page.url.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match="in use"):
            eddyline.live(spark, port=port)
    assert spark.conf.get(LOOKING, None) is None
