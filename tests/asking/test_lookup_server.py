"""Tasks and the server of lookups: who is let in, what is shared, what happens when one goes."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from eddyline.asking import asked_jobs
from eddyline.asking.access_method import AccessMethod
from eddyline.asking.driver_channel import Address, DriverChannel
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.filling import GATHERED, StageSize, TaskPlace
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_server import LookupServer
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.remote_method import RemoteLookup
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.engine.callers import CallDone, PlannedCall
from eddyline.engine.signature import ENTERING
from eddyline.errors import LookupFailedError, ServerGoneError
from tests.asked import until

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))
WANTED = [(1, pa.string()), (0, pa.int64())]


@contextmanager
def serving(
    function: Callable[[list[Any]], object],
    limits: Limits | None = None,
    keys_per_call: int = 1,
    size_of: Callable[[int], StageSize | None] | None = None,
    is_over: Callable[[str], bool] | None = None,
) -> Iterator[LookupServer]:
    loop = EventLoop()
    source = PythonLookup(function, keys_per_call)
    methods = {"t": AccessMethod(TABLE, source, limits or Limits(retries=0))}
    channel = DriverChannel()
    server = LookupServer(loop, methods, time.monotonic, channel, size_of=size_of, is_over=is_over)
    try:
        yield server
    finally:
        server.close()
        channel.close()
        loop.close()


class Task:
    """One task's connection, with what it gets."""

    def __init__(
        self,
        address: Address,
        job: str = "1",
        method: str = "t",
        place: TaskPlace | None = None,
    ) -> None:
        self.agenda = SharedAgenda()
        self.remote = RemoteLookup(address, job, method, self.agenda, WANTED, width=4, task=place)
        self.remote.attend(0)

    def ask(self, *keys: int) -> None:
        bindings = [PlannedCall((ENTERING, key), ((pa.array([key]),),)) for key in keys]
        self.remote.submit(bindings)

    def answers(self, count: int) -> dict[int, CallDone]:
        found: dict[int, CallDone] = {}
        while len(found) < count:
            self.agenda.wait()
            found.update((done.key[1], done) for done in self.remote.collect())
        return found


def rows(done: CallDone) -> list[tuple[Any, ...]]:
    assert done.error is None
    assert isinstance(done.value, list)
    return list(zip(*(column.to_pylist() for column in done.value), strict=True))


def test_all_tasks_of_a_job_ask_for_a_key_once() -> None:
    asked: list[int] = []

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        time.sleep(0.01)
        return [(key, f"r{key}") for key in keys if key != 3]

    with serving(function) as server:
        one, two = Task(server.address), Task(server.address)
        one.ask(1, 2, 3)
        two.ask(2, 3, 4)
        first, second = one.answers(3), two.answers(3)
        assert rows(first[1]) == [("r1", 1)]
        assert rows(first[3]) == rows(second[3]) == []
        assert rows(second[2]) == [("r2", 2)]
        assert sorted(asked) == [1, 2, 3, 4]
        two.ask(1)
        again = two.answers(1)[1]
        assert (rows(again), again.seconds) == ([("r1", 1)], 0.0)
        other = Task(server.address, job="2")
        other.ask(1)
        assert rows(other.answers(1)[1]) == [("r1", 1)]
        assert sorted(asked) == [1, 1, 2, 3, 4]
        assert server.statistics("1")["t"].keys == 4
        assert server.statistics("2")["t"].keys == 1
        for task in (one, two, other):
            task.remote.close()


def test_what_a_task_that_has_gone_waited_for_is_not_asked_for_unless_another_wants_it() -> None:
    asked: list[int] = []
    may_answer = threading.Event()

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        may_answer.wait(10)
        return [(key, "x") for key in keys]

    with serving(function, Limits(max_in_flight=2)) as server:
        gone, stays = Task(server.address), Task(server.address)
        gone.ask(*range(100))
        assert until(lambda: len(asked) == 2)
        stays.ask(50, 51)
        time.sleep(0.2)
        gone.remote.close()
        time.sleep(0.2)
        may_answer.set()
        assert [rows(done) for _, done in sorted(stays.answers(2).items())] == [
            [("x", 50)],
            [("x", 51)],
        ]
        stays.ask(0, 99)
        assert rows(stays.answers(2)[99]) == [("x", 99)]
        assert sorted(asked) == [0, 1, 50, 51, 99]
        assert server.statistics("1")["t"].keys == 5
        stays.remote.close()


def asked_by_two(sizes: dict[int, StageSize | None], *, empty: bool = False) -> list[int]:
    """Return how many keys each call had: of two tasks, one begins when the other waits."""
    calls: list[int] = []

    def function(keys: list[int]) -> list[tuple[int, str]]:
        calls.append(len(keys))
        return [(key, "x") for key in keys]

    with serving(function, keys_per_call=10, size_of=sizes.get) as server:
        one = Task(server.address, place=TaskPlace(7, 0))
        one.ask(1, 2, 3)
        one.remote.rest()
        time.sleep(3 * GATHERED)
        two = Task(server.address, place=TaskPlace(7, 1))
        if not empty:
            two.ask(3, 4, 5)
            two.remote.rest()
            two.answers(3)
        two.remote.close()
        assert sorted(one.answers(3)) == [1, 2, 3]
        one.remote.close()
    return calls


@pytest.mark.parametrize("empty", [False, True])
def test_keys_wait_for_tasks_of_the_stage_that_have_not_begun(empty: bool) -> None:  # noqa: FBT001 - a parameter
    assert asked_by_two({7: StageSize(2, 2)}, empty=empty) == [3 if empty else 5]


@pytest.mark.parametrize(
    "size", [StageSize(2, 1), StageSize(1, 2), None], ids=["no core", "no task", "unknown"]
)
def test_keys_wait_for_no_task_that_cannot_begin(size: StageSize | None) -> None:
    assert asked_by_two({7: size}) == [3, 2]


def test_a_failure_comes_as_it_was_said() -> None:
    def function(keys: list[int]) -> object:
        raise ValueError(f"no {keys[0]}")

    with serving(function) as server:
        task = Task(server.address)
        task.ask(7)
        error = task.answers(1)[7].error
        assert isinstance(error, LookupFailedError)
        assert str(error).endswith("asked for t a=7: ValueError: no 7")
        task.remote.close()


def test_what_is_not_known_any_more_is_said() -> None:
    with serving(lambda keys: [(key, "x") for key in keys]) as server:
        task = Task(server.address, method="gone")
        task.ask(1, 2)
        for done in task.answers(2).values():
            assert isinstance(done.error, LookupFailedError)
            assert str(done.error).startswith("gone is not known any more")
        task.remote.close()


def test_nobody_gets_in_without_the_token() -> None:
    with serving(lambda keys: [(key, "x") for key in keys]) as server:
        address = replace(server.address, token="guessed")  # noqa: S106 - no secret
        task = Task(address)
        task.ask(1)
        assert isinstance(task.answers(1)[1].error, ServerGoneError)
        task.remote.close()
        assert server.address.token not in repr(server.address)


def test_a_server_that_goes_answers_nothing_for_ever() -> None:
    begun, free = threading.Event(), threading.Event()

    def function(keys: list[int]) -> list[tuple[int, str]]:
        begun.set()
        free.wait(10)
        return [(key, "x") for key in keys]

    with serving(function) as server:
        task = Task(server.address)
        task.ask(1, 2)
        begun.wait(10)
        free.set()
    answers = task.answers(2)
    assert all(
        done.error is None or isinstance(done.error, (ServerGoneError, LookupFailedError))
        for done in answers.values()
    )
    time.sleep(0.05)
    task.ask(9)
    assert isinstance(task.answers(1)[9].error, ServerGoneError)
    task.remote.close()


@pytest.mark.parametrize("said", [b"", b"{}", b"{}\n"])
def test_a_server_that_goes_hangs_up_on_whoever_just_came(said: bytes) -> None:
    for _ in range(10):
        with serving(lambda keys: [(key, "x") for key in keys]) as server:
            address = (server.address.host, server.address.port)
            tasks = [socket.create_connection(address, timeout=5) for _ in range(20)]
            for task in tasks:
                task.sendall(said)
        for task in tasks:
            task.close()
    gc.collect()  # a socket that nobody has closed says so


def test_nobody_is_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ServerGoneError, match=f"127.0.0.1:{port}, which cannot be reached"):
        Task(Address("127.0.0.1", port, "x"))


def numbers(keys: list[int]) -> list[tuple[int, str]]:
    return [(key, "x") for key in keys]


def ask_once(server: LookupServer, job: str, *keys: int) -> None:
    task = Task(server.address, job=job)
    task.ask(*keys)
    task.answers(len(keys))
    task.remote.close()


def test_answers_are_forgotten_when_the_job_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_jobs, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(asked_jobs, "LOOKING_SECONDS", 0.05)
    over: set[str] = set()
    with serving(numbers, is_over=over.__contains__) as server:
        ask_once(server, "1", 1, 2)
        ask_once(server, "2", 3)
        time.sleep(0.3)
        assert server.answers == 3  # both may go on
        over.add("1")
        assert until(lambda: server.answers == 1)
        assert server.statistics("1") == {}
        assert server.totals("1")["t"].keys == 2  # what was asked is known
        ask_once(server, "2", 3, 4)
        assert server.statistics("2")["t"].keys == 2
        server.forget()
        assert (server.answers, server.totals("")) == (0, {})


def test_of_jobs_that_may_go_on_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_jobs, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(asked_jobs, "RESTING_JOBS", 3)
    monkeypatch.setattr(asked_jobs, "RESTING_KEYS", 10)
    with serving(numbers) as server:

        def kept() -> list[str]:
            time.sleep(0.1)
            return [job for job in "abcdefg" if server.statistics(job)]

        for job in "abcd":
            ask_once(server, job, 1)
            assert kept()[-1] == job
        assert kept() == ["b", "c", "d"]
        ask_once(server, "e", *range(9))
        assert kept() == ["d", "e"]
        ask_once(server, "f", *range(20))
        assert kept() == ["f"]


def test_a_job_that_goes_on_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_jobs, "IDLE_SECONDS", 0.01)
    asked: list[int] = []

    def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        return numbers(keys)

    looking, may_say = threading.Event(), threading.Event()

    def is_over(_: str) -> bool:
        looking.set()
        return may_say.wait(10)

    with serving(function, is_over=is_over) as server:
        ask_once(server, "1", 1)
        assert looking.wait(10)
        task = Task(server.address)
        task.ask(1)
        task.answers(1)
        may_say.set()  # an answer from before it went on
        time.sleep(0.1)
        task.ask(1)
        task.answers(1)
        task.remote.close()
    assert asked == [1]
