"""A session that lasts: nothing is left behind, whatever asks for plans, and nobody waits."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from bench.soak.held import Handles, can_be_told, handles, held
from bench.soak.shapes import (
    SHAPES,
    collected,
    in_arrow,
    in_fresh_thread,
    in_pandas,
    in_pool,
    place,
    run,
    streamed,
)
from eddyline.asking.shared_threads import IDLE_SECONDS
from eddyline.catalyst.pipeline import Pipeline, new_alone, pipeline
from eddyline.latest import Latest
from eddyline.monitor.status import Kept
from eddyline.planner.block_registry import registry_of
from tests.fresh_process import printed_lines

pytestmark = pytest.mark.slow(30)

WHOLE_ROUNDS = 2
"""Rounds of all shapes; the rest of the queries are those that take a tenth of a second."""

QUERIES = 100

RARELY = 20
"""Queries after which there is a stream."""

QUICK = (collected, in_pandas, in_arrow, in_fresh_thread, in_pool)


def settled(most: Handles | None = None) -> Handles:
    """Return what there is when what is idle has ended, or when there is no more than this."""
    deadline = time.monotonic() + (IDLE_SECONDS + 0.5) * (1 if most is None else 4)
    found = handles()
    while time.monotonic() < deadline:
        found = handles()
        if most and found.threads <= most.threads and found.descriptors <= most.descriptors:
            break
        time.sleep(0.1)
    return found


@pytest.mark.skipif(not can_be_told(), reason="it is counted as Linux tells")
def test_a_hundred_queries_of_twelve_shapes_leave_nothing(spark: SparkSession) -> None:
    with place(spark, "enable") as where:
        first = WHOLE_ROUNDS * len(SHAPES)
        for turn in range(first):
            run(where, turn)
        held()  # who frees what Python has let go of has its connection from the first time on
        before = settled()
        for turn in range(first, QUERIES):
            QUICK[turn % len(QUICK)](where, turn)
            if turn % RARELY == 0:
                streamed(where, turn)
        held()
        after = settled(before)
    assert after.threads <= before.threads
    assert after.descriptors <= before.descriptors


PROGRAM = dedent(
    """
    import ctypes, gc, itertools, resource, threading, time
    from py4j.clientserver import ClientServerConnection
    import eddyline
    from eddyline.planner import enabling
    from pyspark.sql import functions as F

    spark = eddyline.session("lasting", master="local[2]")
    f, g = F.udf(lambda n: n % 2 == 0, "boolean"), F.udf(lambda n: n % 3 == 0, "boolean")

    sizes = itertools.count(51)

    def adapted():  # a query that is new: of others it is known what becomes of them
        query = spark.range(next(sizes)).filter(f("id") & g("id"))
        return "eddy[" in query._jdf.queryExecution().optimizedPlan().toString()

    def in_a_row(wanted):
        row, deadline = 0, time.monotonic() + 60
        while row < wanted and time.monotonic() < deadline:
            row = row + 1 if adapted() else 0
            time.sleep(0 if row else 0.2)
        return row

    def shown(what):
        query = spark.range(50).filter(f("id") & g("id"))
        began = time.monotonic()
        rows = len(query.toPandas())
        soon = time.monotonic() - began < 60
        print(what, rows, "adapted" if adapted() else "as Spark planned it", soon)

    eddyline.enable(spark)
    shown("before")

    spark.sparkContext._gateway.shutdown_callback_server()
    shown("without a callback server")

    spark.conf.set("spark.eddyline.rewriteTimeout", "300ms")
    rule, stuck = enabling.adapted_plan, threading.Event()
    enabling.adapted_plan = lambda *arguments: stuck.wait() and None
    for attempt in range(4):
        shown(f"stuck {attempt}")
    slow = eddyline.concurrent(lambda n: n, returns="long")
    try:
        spark.range(2).select(slow("id")).collect()
    except Exception as error:
        print("NotAdaptedError: <lambda> is" in str(error), "eddyline.status()" in str(error))
    while not eddyline.status().not_asked:
        adapted()
    said = eddyline.status()
    print(said.unanswered >= 3, said.why)
    stuck.set()
    enabling.adapted_plan = rule
    spark.conf.set("spark.eddyline.rewriteTimeout", "nonsense")
    print("after that", in_a_row(4))

    own = spark.sparkContext._gateway._gateway_client.get_thread_connection()
    for each in gc.get_objects():
        if isinstance(each, ClientServerConnection) and each.socket and each is not own:
            each.socket.shutdown(2)
    before = eddyline.status().unanswered
    print("after lost connections", in_a_row(12), eddyline.status().unanswered - before <= 4)

    def answering():
        return [t for t in threading.enumerate() if t.name.startswith("eddyline-rewriting")]

    spark.conf.set("spark.eddyline.rewriteTimeout", "-1s")  # no limit: the usual one holds
    # One after the other: where several answers in a row fail, nobody asks for a while.
    for thread in answering():  # as somebody who stops threads in a debugger
        ended = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(*ended)
        while thread.is_alive():
            adapted()
    print("ended", len(answering()))
    eddyline.enable(spark)
    print("after ended threads", in_a_row(2), len(answering()))

    files = []
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limit[1]))
    try:
        while True:
            files.append(open("/dev/null"))
    except OSError:
        pass
    print("no files", adapted())
    """
)


def test_no_query_waits_for_a_python_that_does_not_answer() -> None:
    assert printed_lines(PROGRAM, seconds=300) == [
        "before 9 adapted True",
        "without a callback server 9 adapted True",
        *(f"stuck {attempt} 9 as Spark planned it True" for attempt in range(4)),
        "True True",
        "True Python has not answered within 300 ms",
        "after that 4",
        "after lost connections 12 True",
        "ended 0",
        "after ended threads 2 4",
        "no files True",
    ]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("300ms", 0.3), ("2", 2.0), (" 5m ", 300.0), ("0", 30.0), ("-1s", 30.0), ("nonsense", 30.0)],
)
def test_what_is_no_time_above_zero_is_no_limit(limit: str, seconds: float) -> None:
    assert new_alone("AdaptingRule").milliseconds(limit) == 1000 * seconds


TOLD = r"ValueError: a\\ud800b"


@pytest.mark.parametrize("arrow", [True, False])
def test_an_error_is_told_though_its_text_is_no_valid_utf8(
    spark: SparkSession, *, arrow: bool
) -> None:
    def fails(number: int) -> bool:
        raise ValueError(f"a\ud800b of {number}")

    failing = F.udf(fails, "boolean", useArrow=arrow)
    even = F.udf(lambda number: number % 2 == 0, "boolean", useArrow=arrow)
    given = spark.range(10).where(even("id") & failing("id")).select(failing("id"))
    for df in (given, eddyline.adapt(given)):
        with ThreadPoolExecutor(1) as alone, pytest.raises(PythonException, match=TOLD):
            alone.submit(df.collect).result(timeout=120)


CELL = """
LIMIT = 4

def near(number, other={"more": 1}):
    return number + other["more"] < LIMIT

near, even = F.udf(near, "boolean"), F.udf(lambda number: number % 2 == 0, "boolean")
"""


def test_a_function_made_anew_is_the_one_that_is_known(spark: SparkSession) -> None:
    eddyline.forget()

    def ran(cell: str) -> None:
        names = {"F": F, "__name__": "__main__"}
        exec(compile(cell, "/tmp/cell.py", "exec"), names)  # noqa: S102, S108 - as a notebook does
        # Too few rows to be learned from: what is learned would be in the next plan.
        query = spark.range(7).filter(names["near"]("id") & names["even"]("id"))  # type: ignore[operator]
        assert query.count() == 2

    with eddyline.enable(spark):
        for _ in range(3):
            ran(CELL)
        once = eddyline.status().kept
        ran(CELL.replace("1", "1.0"))
    assert (once.blocks, once.reports) == (1, 1)
    assert eddyline.status().kept.blocks == 2


def test_what_is_kept_of_queries_has_a_bound(spark: SparkSession) -> None:
    registry = registry_of(spark.sparkContext)
    df = spark.range(50)
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    kept = eddyline.adapt(df.filter(even("id") & F.udf(lambda n: n > 3, "boolean")("id")))
    derived = kept.limit(3)
    assert derived.count() == 3
    for _ in range(2):
        eddyline.forget()
        assert eddyline.status().kept == Kept()
        assert len(eddyline.explain(kept).blocks) == len(eddyline.explain(derived).blocks) == 1
    before = registry._latest
    try:
        registry._latest = Latest(2, lambda fused: fused.size, 1 << 20)
        large = bytes(1 << 19)
        for number in range(4):
            some = F.udf(lambda n, own=large, number=number: n > number and own, "boolean")
            eddyline.adapt(df.filter(even("id") & some("id")))
        assert 0 < registry._latest.size < 1 << 21
        assert len(registry._latest) == 1
    finally:
        registry._latest = before


def test_what_a_thread_has_in_the_jvm_goes_with_it(spark: SparkSession) -> None:
    kept: list[weakref.ref[Pipeline]] = []
    even, some = (F.udf(lambda n, k=k: n % k == 0, "boolean") for k in (2, 3))
    df = spark.range(10).filter(even("id") & some("id"))

    def adapted() -> None:
        assert eddyline.adapt(df).count() == 2
        own = pipeline()
        assert own is not None
        kept.append(weakref.ref(own))

    for _ in range(3):
        thread = threading.Thread(target=adapted)
        thread.start()
        thread.join()
    del thread
    gc.collect()
    assert [reference() for reference in kept] == [None] * 3
