"""Tasks that bring keys of a table that may be scanned instead, and what they are told."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pytest

from eddyline.asking import asked_jobs
from eddyline.asking.access_method import AccessMethod
from eddyline.asking.driver_channel import DriverChannel, connected
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.filling import TaskPlace
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_server import LookupServer
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.remote_choice import (
    FEW,
    KEYS_SENT,
    AskedOutcome,
    KeysOfWay,
    asked_or_scanned,
)
from eddyline.asking.wire import packed
from eddyline.errors import LookupFailedError
from tests.asked import until
from tests.asking.test_lookup_server import Task, rows, serving


def told(
    server: LookupServer,
    keys: Sequence[int],
    scan_seconds: float = 60.0,
    *,
    job: str = "1",
    place: int = 0,
) -> str:
    way = KeysOfWay("t", pa.table({"k0": pa.array(keys, pa.int64())}))
    where = TaskPlace(0, place)
    return asked_or_scanned(server.address, job, [way], scan_seconds, place=where).scan


def answer(keys: list[int]) -> list[tuple[int, str]]:
    return [(key, f"r{key}") for key in keys]


def test_keys_that_have_answers_need_no_scan_and_are_not_asked_for_again() -> None:
    asked: list[int] = []

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        return answer(keys)

    with serving(function) as server:
        assert told(server, range(50)) == ""
        assert told(server, range(30, 80), place=1) == ""
        task = Task(server.address)
        task.ask(3, 79)
        assert rows(task.answers(2)[79]) == [("r79", 79)]
        task.remote.close()
        assert sorted(asked) == list(range(80))
        assert server.statistics("1")["t"].choice.startswith("looked up: in ")


def test_what_would_take_longer_than_a_scan_is_given_up_and_stays_so() -> None:
    asked: list[int] = []

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        time.sleep(0.01)
        return answer(keys)

    with serving(function, Limits(max_in_flight=2)) as server:
        assert told(server, range(20_000), 2.0).startswith("the keys would take ")
        asked_then = len(asked)
        assert 4 <= asked_then < 100
        assert told(server, [1, 2], 2.0).startswith("the keys would take ")
        assert told(server, [1], job="2") == "", "another job chooses for itself"
        assert len(asked) - asked_then <= 3
        statistics = server.statistics("1")["t"]
        assert statistics.choice.startswith("scanned: the keys would take ")
        assert statistics.choice.endswith("; a scan takes 2 s")


def test_all_tasks_are_told_when_one_has_many_keys() -> None:
    def function(keys: list[int]) -> list[tuple[int, str]]:
        time.sleep(0.01)
        return answer(keys)

    with serving(function, Limits(max_in_flight=1)) as server, ThreadPoolExecutor(2) as threads:
        few = threads.submit(told, server, range(300), 4.0)
        assert until(lambda: "t" in server.statistics("1"))
        many = threads.submit(told, server, range(500, 1_000), 4.0, place=1)
        assert few.result() == many.result() != ""


def test_a_key_without_an_answer_leaves_the_table_to_the_scan() -> None:
    def function(keys: list[int]) -> list[tuple[int, str]]:
        if 7 in keys:
            raise ValueError("no seven")
        return answer(keys)

    with serving(function) as server:
        assert "no seven" in told(server, range(10))
        assert "no seven" in server.statistics("1")["t"].choice


def test_rows_of_few_keys_come_with_the_outcome() -> None:
    with serving(answer) as server:
        for keys in (3, FEW, FEW + 1):
            way = KeysOfWay("t", pa.table({"k0": pa.array(range(keys), pa.int64())}))
            where = TaskPlace(0, 0)
            outcome = asked_or_scanned(server.address, "1", [way], 60.0, place=where)
            if keys > FEW:
                assert outcome == AskedOutcome("")
            else:
                assert outcome.rows is not None
                assert sorted(row["b"] for row in outcome.rows.to_pylist()) == sorted(
                    f"r{key}" for key in range(keys)
                )


def test_what_would_cost_more_than_a_scan_is_not_asked_for_and_the_rest_is_paid() -> None:
    """A call is worth half a second, a scan takes a minute and costs as much again."""
    asked: list[int] = []

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        return answer(keys)

    def outcome(server: LookupServer, keys: Sequence[int], job: str) -> str:
        way = KeysOfWay("t", pa.table({"k0": pa.array(keys, pa.int64())}), 0.5)
        where = TaskPlace(0, 0)
        return asked_or_scanned(server.address, job, [way], 60.0, 60.0, place=where).scan

    with serving(function) as server:
        assert outcome(server, range(300), "1") == "the keys would take money worth 150 s"
        assert not asked
        assert outcome(server, range(20), "2") == ""
        said = server.statistics("2")["t"].choice
        assert said.startswith("looked up: in ")
        assert said.endswith("and money worth 10 s; a scan takes 60 s and money worth 60 s")


def test_keys_that_nobody_waits_for_any_more_are_not_asked_for() -> None:
    asked: list[int] = []
    go_on = threading.Event()

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        go_on.wait(5.0)
        return answer(keys)

    with serving(function, Limits(max_in_flight=1)) as server:
        ways = [("t", 3, 0.0)]
        scan = {"scan_seconds": 60.0, "scan_money": 0.0}
        hello = {"job": "1", **scan, "use": 0, "place": (0, 0), "ways": ways}
        with connected(server.address, hello, 5.0) as connection:
            keys = packed(pa.table({"k0": [1, 2, 3]}))
            header = json.dumps({"bytes": len(keys)}).encode()
            with connection.makefile("rb") as answers:
                assert json.loads(answers.readline()) == {"send": [0, 0, KEYS_SENT]}
            connection.sendall(header + b"\n" + keys)
            assert until(lambda: bool(asked))
        other = Task(server.address)
        other.ask(9)
        time.sleep(0.1)  # for the server to see that the first one has gone
        go_on.set()
        assert rows(other.answers(1)[9]) == [("r9", 9)]
        other.remote.close()
        assert asked == [1, 9]


def test_what_was_told_and_is_forgotten_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tasks go on with what they were told, and it might be otherwise now."""
    monkeypatch.setattr(asked_jobs, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(asked_jobs, "KEPT_SECONDS", 0.01)
    with serving(answer) as server:
        assert told(server, [1]) == ""
        assert until(lambda: not server.answers)
        with pytest.raises(LookupFailedError, match="t is forgotten: run the query again"):
            told(server, [1])
        assert told(server, [1], job="2") == ""


BY = {"by a": 0, "by b": 1}
"""The ways to a table of two columns."""


@contextmanager
def serving_two(
    *functions: Callable[[list[int]], object],
) -> Iterator[LookupServer]:
    """Serve two ways to a table of two numbers, by either."""
    loop, channel = EventLoop(), DriverChannel()
    methods = {}
    for (name, column), function in zip(BY.items(), functions, strict=True):
        table = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.int64()), (column,))
        limits = Limits(max_in_flight=2, retries=0)
        methods[name] = AccessMethod(table, PythonLookup(function), limits)
    server = LookupServer(loop, methods, time.monotonic, channel)
    try:
        yield server
    finally:
        server.close()
        channel.close()
        loop.close()


def told_by_two(
    server: LookupServer, a: Sequence[int], b: Sequence[int], scan_seconds: float = 60.0
) -> AskedOutcome:
    columns = zip(BY, (a, b), strict=True)
    ways = [KeysOfWay(name, pa.table({"k": pa.array(keys, pa.int64())})) for name, keys in columns]
    outcome = asked_or_scanned(server.address, "1", ways, scan_seconds, place=TaskPlace(0, 0))
    return outcome._replace(rows=None)


def test_of_two_ways_the_one_with_fewer_keys_is_asked_alone() -> None:
    asked: list[int] = []

    def by_a(keys: list[int]) -> list[tuple[int, int]]:
        asked.extend(keys)
        return [(key, 0) for key in keys]

    def by_b(keys: list[int]) -> list[tuple[int, int]]:
        return [(0, key) for key in keys]

    with serving_two(by_a, by_b) as server:
        assert told_by_two(server, range(30), range(3)) == AskedOutcome("", 1)
        assert not asked
        statistics = server.statistics("1")
        assert statistics["by b"].choice.startswith("looked up: in ")
        assert not statistics["by a"].choice


def test_a_quicker_way_takes_over_and_what_waits_for_the_other_is_dropped() -> None:
    counts = Counter[str]()

    def by_a(keys: list[int]) -> list[tuple[int, int]]:
        counts["a"] += len(keys)
        time.sleep(0.1)
        return [(key, 0) for key in keys]

    def by_b(keys: list[int]) -> list[tuple[int, int]]:
        counts["b"] += len(keys)
        time.sleep(0.001)
        return [(0, key) for key in keys]

    with serving_two(by_a, by_b) as server:
        assert told_by_two(server, range(100), range(300)) == AskedOutcome("", 1)
        assert counts["b"] == 300
        assert counts["a"] < 30


def test_a_way_that_fails_leaves_the_keys_to_the_other_and_both_to_the_scan() -> None:
    fails = {"by a"}

    def by_a(keys: list[int]) -> list[tuple[int, int]]:
        if "by a" in fails:
            raise ValueError("not by a")
        return [(key, 0) for key in keys]

    def by_b(keys: list[int]) -> list[tuple[int, int]]:
        if "by b" in fails:
            raise ValueError("not by b")
        return [(0, key) for key in keys]

    with serving_two(by_a, by_b) as server:
        assert told_by_two(server, range(3), range(30)) == AskedOutcome("", 1)
        assert server.scans_begun() == []
    fails.add("by b")
    with serving_two(by_a, by_b) as server:
        assert "not by b" in told_by_two(server, range(3), range(30)).scan
        (begun,) = server.scans_begun()
        assert (begun.job, begun.methods) == ("1", ("by a", "by b"))
