"""``python -m bench clients``: the twelve realistic queries, sent by clients of every kind.

Each way has a JVM of its own, in which the same texts run with eddies and plainly, by turns: a
classic session under ``enable``; a classic session that the plug-in adapts; a client of Spark
Connect and one of JDBC, each with a server whose driver has the plug-in; and a client of Connect
under ``enable`` with a server that has nothing of Eddyline, which asks the same as DataFrames.
Ratios are over plain Spark by the same client, so that what a client itself takes is in both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
import pyspark
from pyspark import SparkContext
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench.plugged_in import PLUGIN, environment, session
from bench.realistic.frames import FRAMES
from bench.realistic.queries import QUERIES, Realistic
from bench.realistic.records import made
from bench.turns import Turns, take_turns
from eddyline.host.java import java_for_launch

WAYS: Final = ("classic", "plug-in", "connect", "jdbc", "client")

GREATEST_MEAN: Final = 0.45
"""The target: the geometric mean over plain Spark by the same client."""

GREATEST_OVERHEAD: Final = 1.05
"""The target: what the plug-in takes over ``enable`` in a classic session."""

LEAST_ROWS: Final = 200

CONNECT: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"

THRIFT: Final = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"

Ask = Callable[[str], object]
"""Sends a statement, and gives what came of it, as a text."""


@dataclass(frozen=True, slots=True)
class Client:
    """What is needed of a way: ``ask`` sends a statement of SQL, ``answer`` asks a query.

    ``switch`` says whether queries are adapted from now on.
    """

    ask: Ask
    answer: Callable[[Realistic], object]
    switch: Callable[[bool], object]

    @classmethod
    def of_statements(cls, ask: Ask) -> Client:
        """Return a client that sends all as SQL."""
        return cls(
            ask,
            lambda each: ask(f"SELECT count(*) AS n, sum(hash(*)) AS s FROM ({each.sql})"),  # noqa: S608
            lambda on: ask(f"SET spark.eddyline.enabled={str(on).lower()}"),
        )


def functions_file(folder: Path) -> Path:
    """Write the file that gives every session the functions of all queries."""
    path = folder / "functions.py"
    path.write_text(
        "from bench.realistic.queries import QUERIES\n"
        "for each in QUERIES:\n"
        "    for function, returns in each.uses.items():\n"
        "        globals()[function.__name__] = each.as_udf(function, returns)\n"
    )
    return path


def tables(folder: Path, size: float) -> list[str]:
    """Write all tables; return the statements that make views of them."""
    rows: dict[str, int] = {}
    for each in QUERIES:
        for name, number in each.rows.items():
            rows[name] = max(rows.get(name, 0), int(number * size), LEAST_ROWS)
    statements = []
    for name, number in rows.items():
        path = folder / name
        if not path.exists():
            path.mkdir()
            table = made(name, number)
            for part in range(2):
                pq.write_table(table.take(np.arange(part, len(table), 2)), path / f"{part}.parquet")
        statements.append(
            f"CREATE OR REPLACE TEMPORARY VIEW {name} USING parquet OPTIONS (path '{path}')"
        )
    return statements


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def server(folder: Path, functions: Path, *, plugged_in: bool) -> Iterator[tuple[int, int]]:
    """A driver, with the plug-in or not, that clients of JDBC and of Connect reach at two ports."""
    jdbc, connect = free_port(), free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.plugins": f"{PLUGIN},{CONNECT}" if plugged_in else CONNECT,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(connect),
        "spark.eddyline.functions": str(functions),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    pairs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    hive = (f"port={jdbc}", "bind.host=127.0.0.1")
    listening = [word for each in hive for word in ("--hiveconf", f"hive.server2.thrift.{each}")]
    jars = ["--jars", eddyline.jar()] if plugged_in else []
    command = [submit, *pairs, *jars, "--class", THRIFT, "spark-internal"]
    with java_for_launch(), (folder / "server.txt").open("w") as log:
        running = subprocess.Popen(  # noqa: S603 - a program of Spark's
            [*command, *listening], stdout=log, stderr=log, cwd=folder, env=environment()
        )
        try:
            for port in (jdbc, connect):
                wait_for(port)
            yield jdbc, connect
        finally:
            running.terminate()
            running.wait(30)


def wait_for(port: int) -> None:
    """Return when somebody listens there."""
    until = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


@contextlib.contextmanager
def classic(*, plugged_in: bool) -> Iterator[Ask]:
    """A session in this process, under the plug-in or under ``enable``."""
    os.environ |= environment()
    spark = session("clients", {"spark.sql.shuffle.partitions": "2"}, plugged_in=plugged_in)
    for each in QUERIES:
        for function, returns in each.uses.items():
            spark.udf.register(function.__name__, each.as_udf(function, returns))
    if not plugged_in:
        eddyline.enable(spark)
    yield lambda statement: str(spark.sql(statement).collect())
    spark.stop()


@contextlib.contextmanager
def connected(port: int) -> Iterator[Ask]:
    """A client of Spark Connect."""
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - it needs grpc

    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield lambda statement: str(spark.sql(statement).collect())
    spark.stop()


@contextlib.contextmanager
def by_jdbc(port: int) -> Iterator[Ask]:
    """A client of JDBC, in a JVM without a Spark of its own."""
    with java_for_launch():
        SparkContext._ensure_initialized()  # noqa: SLF001 - there is no public way to a JVM
    jvm: Any = SparkContext._jvm  # noqa: SLF001 - likewise
    connection = jvm.java.sql.DriverManager.getConnection(f"jdbc:hive2://127.0.0.1:{port}")

    def ask(statement: str) -> object:
        running = connection.createStatement()
        try:
            rows = []
            if running.execute(statement):
                found = running.getResultSet()
                columns = found.getMetaData().getColumnCount()
                while found.next():
                    rows.append([found.getString(n + 1) for n in range(columns)])
            return str(rows)
        finally:
            running.close()

    yield ask
    connection.close()


@contextlib.contextmanager
def alone(port: int) -> Iterator[Client]:
    """A client of Spark Connect that rewrites by itself what it sends."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - for Connect from here on

    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()

    def answer(each: Realistic) -> object:
        typed = {f.__name__: each.as_udf(f, returns) for f, returns in each.uses.items()}
        asked = FRAMES[each.name](spark.table, SimpleNamespace(**typed))
        hashes = F.sum(F.hash(*asked.columns))
        return str(asked.agg(F.count("*"), hashes).collect())

    def switch(on: bool) -> object:  # noqa: FBT001 - that is what it takes
        return eddyline.enable(spark) if on else eddyline.disable(spark)

    yield Client(lambda statement: str(spark.sql(statement).collect()), answer, switch)
    spark.stop()


def measured(client: Client, views: Sequence[str], turns: int, only: str) -> dict[str, Turns]:
    """Return the turns of each query, with eddies and plainly."""
    for statement in views:
        client.ask(statement)
    found = {}
    for each in QUERIES:
        if only not in each.name:
            continue

        def switched(on: bool, each: Realistic = each) -> object:  # noqa: FBT001 - likewise
            client.switch(on)
            return client.answer(each)

        found[each.name] = take_turns(
            {"eddies": lambda: switched(True), "plain": lambda: switched(False)},  # noqa: FBT003
            turns=turns,
        )
        spread = found[each.name].ratio("eddies", "plain")
        print(f"  {each.name}: {spread} of {found[each.name].median('plain'):.2f} s", flush=True)
    return found


def client_of(way: str, folder: Path, functions: Path, opened: contextlib.ExitStack) -> Client:
    """Return the client of a way, open until all is closed that is ``opened``."""
    if way in {"classic", "plug-in"}:
        return Client.of_statements(opened.enter_context(classic(plugged_in=way == "plug-in")))
    running = server(folder, functions, plugged_in=way != "client")
    jdbc, connect = opened.enter_context(running)
    if way == "client":
        return opened.enter_context(alone(connect))
    asking = by_jdbc(jdbc) if way == "jdbc" else connected(connect)
    return Client.of_statements(opened.enter_context(asking))


def main(arguments: Sequence[str]) -> int:
    """Measure the ways that the command line asks for."""
    parser = argparse.ArgumentParser("bench clients", description=__doc__)
    parser.add_argument("--ways", default=",".join(WAYS), help="some of them, with commas")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--size", type=float, default=1.0, help="of the tables")
    parser.add_argument("--only", default="", help="only queries whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return child(options)
    means = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in options.ways.split(","):
            print(f"{way}:", flush=True)
            told = Path(folder, way)
            subprocess.run(  # noqa: S603 - this program
                [sys.executable, "-m", "bench", "clients", *arguments, "--child", f"{way}:{told}"],
                check=True,
                env=environment(),
            )
            means[way] = json.loads(told.read_text())
            print(f"  geometric mean {means[way]:.3f}, at most {GREATEST_MEAN}", flush=True)
    met = all(mean <= GREATEST_MEAN for mean in means.values())
    if {"classic", "plug-in"} <= means.keys():
        overhead = means["plug-in"] / means["classic"]
        print(f"the plug-in over enable: {overhead:.3f}, at most {GREATEST_OVERHEAD}")
        met = met and overhead <= GREATEST_OVERHEAD
    return int(not met)


def child(options: argparse.Namespace) -> int:
    """Measure one way, and write down its geometric mean."""
    way, _, told = options.child.partition(":")
    folder = Path(tempfile.gettempdir(), f"eddyline-clients-{options.size}")
    folder.mkdir(exist_ok=True)
    views, functions = tables(folder, options.size), functions_file(folder)
    with contextlib.ExitStack() as opened:
        client = client_of(way, folder, functions, opened)
        found = measured(client, views, options.turns, options.only)
    ratios = [turns.ratio("eddies", "plain").median for turns in found.values()]
    Path(told).write_text(json.dumps(statistics.geometric_mean(ratios)))
    return 0
