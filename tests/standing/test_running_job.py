"""A job begins and ends with nothing left half-way, and says nothing that nobody asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.standing import running_job
from eddyline.standing.log.jobs import Job
from eddyline.standing.running_job import RunningJob
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered
from tests.standing.test_standing_queries import JOINS, SCHEMA, events

LATE = "terminated with exception: Python worker failed to connect back."


class Query:
    """A query of Spark's that has ended, or ends when it is told to."""

    def __init__(self, error: str | None) -> None:
        self.error = error
        self.ended = threading.Event()
        if error is not None:
            self.ended.set()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return not self.ended.is_set()

    def exception(self) -> str | None:
        return self.error

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - Spark's name
        ended = self.ended.wait(timeout)
        if ended and self.error is not None:
            raise StreamingQueryException(self.error)
        return ended if timeout is not None else None

    def stop(self) -> None:
        self.ended.set()


class Stream:
    """A stream whose queries end with these errors, one after the other."""

    def __init__(self, *errors: str | None) -> None:
        self.queries = [Query(error) for error in errors]
        self.started = 0

    @property
    def writeStream(self) -> Stream:  # noqa: N802 - Spark's name
        return self

    def foreachBatch(self, _: object) -> Stream:  # noqa: N802 - Spark's name
        return self

    def queryName(self, _: object) -> Stream:  # noqa: N802 - Spark's name
        return self

    def option(self, *_: object) -> Stream:
        return self

    def start(self) -> Query:
        self.started += 1
        return self.queries[self.started - 1]


@contextmanager
def job_over(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, *, begun: bool = False
) -> Iterator[RunningJob]:
    monkeypatch.setattr(catalyst, "leave_out_planning_steps", lambda: None)
    monkeypatch.setattr(catalyst, "write_local_files_directly", lambda: False)
    monkeypatch.setattr(running_job, "_LOOK", 0.01)
    monkeypatch.setattr(running_job, "_PAUSE", 1e-3)
    conf = SimpleNamespace(get=lambda *_: None, set=lambda *_: None, unset=lambda *_: None)
    registry = SimpleNamespace(job_directory=lambda _: Path("nowhere"))
    some: Any = None
    spark: Any = SimpleNamespace(conf=conf)
    job = Job(("r",), aggregates=True)
    running = RunningJob(spark, registry, some, job, some, some, some, some)  # type: ignore[arg-type]  # enough of one
    if begun:
        running._begun.set()
    running.start(lambda: stream, 1, {})  # type: ignore[arg-type,return-value]  # likewise
    yield running
    for query in stream.queries:
        query.ended.set()


def test_a_job_that_could_not_be_planned_in_time_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(LATE, LATE, None)
    with job_over(stream, monkeypatch) as job:
        assert job.await_termination(0.2) is False
        assert stream.started == 3
        stream.queries[2].ended.set()
        assert job.await_termination(None) is True


@pytest.mark.parametrize(
    ("errors", "begun"),
    [
        ((LATE,) * 6, False),  # enough is enough
        (("something else",), False),
        ((LATE,), True),  # of a later batch
    ],
)
def test_what_ends_a_job_is_raised(
    errors: tuple[str, ...],
    begun: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(*errors)
    with (
        job_over(stream, monkeypatch, begun=begun) as running,
        pytest.raises(StreamingQueryException, match=errors[0][:9]),
    ):
        running.await_termination(None)
    assert stream.started == len(errors)


def test_nobody_has_to_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(LATE, None)
    with job_over(stream, monkeypatch) as job:
        for _ in range(1000):
            if stream.started == len(stream.queries):
                break
            threading.Event().wait(0.01)
        assert job.query.isActive


def test_a_job_is_planned_before_it_stops_and_says_nothing_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    feeds = {name: Feed(spark, tmp_path / name, SCHEMA, ("time", "1 minute")) for name in "tq"}
    for seed, each in enumerate(feeds.values()):
        each.give(events(seed, 20, 0))
    java: Any = spark.sparkContext._jvm
    before, told = java.java.lang.System.err, java.java.io.ByteArrayOutputStream()
    java.java.lang.System.setErr(java.java.io.PrintStream(told, True))  # noqa: FBT003 - Java has no names
    streams = {"trades": feeds["t"].stream(), "quotes": feeds["q"].stream()}
    try:
        with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
            queries.add(JOINS["both"], name="both")
            queries.start(Gathered())
            (job,) = queries._jobs.values()
        assert job._begun.is_set()
        assert job.query.exception() is None  # else Spark logs it
        quiet = java.java.lang.System.err
        step = "Streaming TransformWithStateInPandas Python worker Starting execution of UDF\n\n"
        text = f"{'x' * 980}\nStarting {step}\none\n{step}Starting again\n\nhalf"
        for whose in ("stdout", "stderr"):
            reader = java.org.apache.spark.util.RedirectThread(
                java.java.io.ByteArrayInputStream(bytearray(text.encode())),
                quiet,
                f"{whose} reader for python3",
                False,  # noqa: FBT003 - Java has no names
            )
            reader.start()
            reader.join()
    finally:
        java.java.lang.System.setErr(before)
    # Of what processes print the steps go; what they write to standard error goes on.
    assert told.toString() == f"{'x' * 980}\n\none\nStarting again\n\nhalf{text}"
