"""Tasks that bring keys of a table that may be scanned instead, and what they are told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from eddyline.asking import lookup_server
from eddyline.asking.driver_channel import connected
from eddyline.asking.filling import TaskPlace
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_server import LookupServer
from eddyline.asking.remote_choice import why_scanned
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
    columns = pa.table({"k0": pa.array(keys, pa.int64())})
    where = TaskPlace(0, place)
    return why_scanned(server.address, job, "t", scan_seconds, columns, place=where)


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


def test_keys_that_nobody_waits_for_any_more_are_not_asked_for() -> None:
    asked: list[int] = []
    go_on = threading.Event()

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        go_on.wait(5.0)
        return answer(keys)

    with serving(function, Limits(max_in_flight=1)) as server:
        hello = {"job": "1", "method": "t", "scan_seconds": 60.0, "use": 0, "place": (0, 0)}
        with connected(server.address, {**hello, "keys": 3}, 5.0) as connection:
            keys = packed(pa.table({"k0": [1, 2, 3]}))
            header = json.dumps({"bytes": len(keys)}).encode()
            connection.sendall(header + b"\n" + keys + b'{"rests": true}\n')
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
    monkeypatch.setattr(lookup_server, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(lookup_server, "KEPT_SECONDS", 0.01)
    with serving(answer) as server:
        assert told(server, [1]) == ""
        assert until(lambda: not server.answers)
        with pytest.raises(LookupFailedError, match="t is forgotten: run the query again"):
            told(server, [1])
        assert told(server, [1], job="2") == ""
