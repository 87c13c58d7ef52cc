"""Clients in SQL are adapted: the shell of Spark, JDBC, and Spark Connect."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from eddyline.host.java import java_for_launch
from tests.http_service import HttpService, Reply, Request
from tests.plugin.applications import PLUGIN, command, environment, ran

pytestmark = [pytest.mark.spark, pytest.mark.slow(60)]

FUNCTIONS: Final = {
    "spark.eddyline.functions": str(Path(__file__).with_name("functions.py")),
    "spark.sql.catalogImplementation": "in-memory",  # else a database is made for a metastore
}

CONNECT: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"

QUERY: Final = "SELECT id FROM range(500) WHERE even(id) AND tenth(id)"

ASKED: Final = (
    f"SELECT count(*) AS n FROM ({QUERY})",  # noqa: S608 - it is the constant above
    f"EXPLAIN {QUERY}",
    "SET spark.eddyline.enabled=false",
    f"EXPLAIN {QUERY}",
)
"""What all of them ask."""


def test_the_shell_of_spark(tmp_path: Path) -> None:
    run = ran(tmp_path, "spark-sql", "-e", ";".join(ASKED), settings=PLUGIN | FUNCTIONS)
    lines = run.stdout.splitlines()
    assert lines[0] == "50", run.stderr
    switched = next(n for n, line in enumerate(lines) if line.startswith("spark.eddyline.enabled"))
    assert "eddy[" in "".join(lines[:switched])
    assert "eddy[" not in "".join(lines[switched:])


AIRCRAFT: Final = """
    CREATE TABLE IF NOT EXISTS aircraft (tail STRING, seats INT)
    USING eddyline_lookup OPTIONS (url 'URL/{tail}', bind 'tail')
"""

SEATS: Final = """
    SELECT a.seats FROM VALUES ('N1'), ('N22'), ('N1') AS f(tail)
    JOIN aircraft a ON a.tail = f.tail ORDER BY 1
"""


@pytest.fixture(scope="module")
def service() -> Iterator[HttpService]:
    """Aircraft with as many seats as characters in the path of their request."""

    def answer(request: Request) -> Reply:
        return Reply([{"seats": len(request.path)}])

    with HttpService(answer) as started:
        yield started


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """A server of Spark's with the plug-in, for JDBC and for Spark Connect."""

    jdbc: int
    connect: int
    log: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    started = Server(free_port(), free_port(), folder / "log")
    settings = {
        "spark.connect.grpc.binding.port": str(started.connect),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.plugins": ",".join([*PLUGIN.values(), CONNECT]),
    }
    listening = (f"port={started.jdbc}", "bind.host=127.0.0.1")
    where = [word for each in listening for word in ("--hiveconf", f"hive.server2.thrift.{each}")]
    kind = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    given = FUNCTIONS | settings
    start = command("spark-submit", "--class", kind, "spark-internal", *where, settings=given)
    with java_for_launch(), started.log.open("w") as log:
        running = subprocess.Popen(
            start, stdout=log, stderr=log, cwd=folder, env=environment(), stdin=subprocess.DEVNULL
        )
        try:
            wait_for(started.jdbc, started.connect)
            yield started
        finally:
            running.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(30)
            running.kill()
            running.wait()


def wait_for(*ports: int) -> None:
    until = time.monotonic() + 90
    for port in ports:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                break


def test_jdbc(spark: SparkSession, server: Server, service: HttpService) -> None:
    java: Any = spark.sparkContext._jvm
    url = f"jdbc:hive2://127.0.0.1:{server.jdbc}"
    made = AIRCRAFT.replace("URL", service.url)
    connection = java.org.apache.hive.jdbc.HiveDriver().connect(url, java.java.util.Properties())
    answers = []
    try:
        statement = connection.createStatement()
        for asked in (made, SEATS, *ASKED):
            statement.execute(asked)
            rows, answer = statement.getResultSet(), ""
            while rows.next():
                answer += rows.getString(1)
            answers.append(answer)
    finally:
        connection.close()
    _, seats, counted, adapted, _, plain = answers
    assert seats == "334", server.log.read_text()  # N1 twice, N22 once
    assert counted == "50", server.log.read_text()
    assert "eddy[" in adapted
    assert "eddy[" not in plain


CLIENT: Final = """
import eddyline, json, sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
even = F.udf(lambda n: n % 2 == 0, "boolean")
third = F.udf(lambda n: n % 3 == 0, "boolean")
frame = spark.range(300).filter(even("id") & third("id"))
frame.createOrReplaceTempView("some")
found = [frame.count(), len(frame.collect()), spark.sql(sys.argv[2]).count()]
plan = spark.sql("EXPLAIN SELECT * FROM some").collect()[0][0]
report = spark.sql("SELECT report FROM eddyline_report('some')").collect()[0][0]
spark.conf.set("spark.eddyline.enabled", "false")
off = spark.sql("EXPLAIN SELECT * FROM some").collect()[0][0]
spark.conf.set("spark.eddyline.enabled", "true")
with eddyline.disable(spark):
    disabled = spark.sql("EXPLAIN SELECT * FROM some").collect()[0][0]
eddy = ["eddy[" in text for text in (plan, off, disabled)]
frame.createOrReplaceTempView("`my view`")
spark.sql("SELECT * FROM eddyline_explain('`my view`')").collect()
def refused(call):
    try:
        spark.sql(f"SELECT * FROM {call}").collect()
    except Exception as error:
        return str(error).splitlines()[0]
wrong = [refused(call) for call in json.loads(sys.argv[3])]
spark.sql(sys.argv[4])
seats = [row.seats for row in spark.sql(sys.argv[5]).collect()]
tails = spark.createDataFrame([("N333",), ("N1",)], "tail string")
seats += sorted(row.seats for row in tails.join(spark.table("aircraft"), "tail").collect())
again = spark.conf.get("spark.eddyline.enabled")
print(json.dumps(
    {"found": found, "eddy": eddy, "again": again, "report": report}
    | {"wrong": wrong, "seats": seats}))
"""

WRONG: Final = {
    "eddyline_report('some', 'other')": "eddyline_report takes one argument at most, not 2",
    "eddyline_report(rand())": "eddyline_report needs a constant text",
    "eddyline_report(nvl('some', 'other'))": "eddyline_report needs a constant text",
    "eddyline_report(view => 'some')": "eddyline_report needs a constant text",
    "eddyline_report()": "eddyline_report needs a view or a query",
    "eddyline_status('some')": "eddyline_status() takes no argument",
    "eddyline_explain('SHOW TABLES')": "neither a view nor a query, but a command: SHOW TABLES",
}
"""Calls that are wrong, and what is said to them."""


def test_spark_connect(tmp_path: Path, server: Server, service: HttpService) -> None:
    pytest.importorskip("grpc", reason="the client of Spark Connect needs it")
    told = (QUERY, json.dumps([*WRONG]), AIRCRAFT.replace("URL", service.url), SEATS)
    run = subprocess.run(
        [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{server.connect}", *told],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=tmp_path,
        env=environment(),
    )
    assert run.returncode == 0, run.stderr + server.log.read_text()
    said = json.loads(run.stdout.splitlines()[-1])
    assert said["found"] == [50, 50, 50]
    assert said["eddy"] == [True, False, False]
    assert said["again"] == "true"
    assert "300 rows in" in said["report"]
    for refusal, expected in zip(said["wrong"], WRONG.values(), strict=True):
        assert expected in refusal
    assert said["seats"] == [3, 3, 4, 3, 5]
