"""A function, unpickled, is itself, and what has come over TCP is acknowledged at once.

Where Eddyline is missing the error says what to do.
"""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, TracebackType

import pytest
from pyspark import cloudpickle, util
from pyspark.sql.types import LongType

from eddyline.tasks import our_functions as commands
from eddyline.tasks.our_functions import acknowledge, pickled, sent, show_users_tracebacks
from tests.bare_packages import linked_packages


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
    ):
        far, _ = server.accept()
        with far:
            yield near


def raises(error: Exception) -> None:
    raise error


def calls_raises() -> None:
    raises(LookupError())


def trace_of(function: Callable[[], object]) -> TracebackType:
    with pytest.raises(LookupError) as raised:
        function()
    assert raised.tb.tb_next is not None
    return raised.tb.tb_next  # without this frame


def modules(trace: TracebackType | None) -> list[str]:
    return [frame.f_globals["__name__"] for frame, _ in walk_tb(trace)]


def test_tracebacks_are_simplified_of_our_frames_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "try_simplify_traceback", lambda trace: trace)
    plain = util.try_simplify_traceback
    show_users_tracebacks()
    show_users_tracebacks()
    assert util.try_simplify_traceback.by_pyspark is plain  # type: ignore[attr-defined]
    ours = FunctionType(raises.__code__, {"__name__": "eddyline.engine.some"})
    by_us = FunctionType(calls_raises.__code__, {"__name__": "eddyline.some", "raises": raises})
    whole = trace_of(by_us)
    assert modules(whole) == ["eddyline.some", __name__]
    assert modules(util.try_simplify_traceback(whole)) == [__name__]
    # One that has no others is for us to read.
    alone = trace_of(lambda: ours(LookupError())).tb_next
    assert alone is not None
    assert util.try_simplify_traceback(alone) is alone


def unpickled() -> tuple[object, object]:
    function, kind = pickle.loads(pickled(len, LongType()))  # noqa: S301 - our own
    return function, kind


def test_what_is_unpickled_is_the_function_itself() -> None:
    function, kind = unpickled()
    assert function is len
    assert kind == LongType()


def test_what_stands_for_a_function_can_be_called() -> None:
    assert sent(len)([1, 2]) == 2


def test_a_worker_without_the_package_says_what_to_do(tmp_path: Path) -> None:
    command = cloudpickle.dumps(sent(acknowledge))  # type: ignore[no-untyped-call]
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import pickle; pickle.loads({command!r})"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(linked_packages(tmp_path / "packages"))},
    )
    assert "ModuleNotFoundError: There is no module 'eddyline' for " in run.stderr
    assert "addPyFile('eddyline.zip')" in run.stderr
    assert "docs/clusters.md" in run.stderr


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux only")
@pytest.mark.parametrize("how", [acknowledge, unpickled])
def test_acknowledgements_do_not_wait(connection: socket.socket, how: object) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    assert not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
    assert callable(how)
    how()
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
    connection.sendall(b"still open")


def test_other_systems_go_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "TCP_QUICKACK", raising=False)
    acknowledge()


def test_sockets_of_other_kinds_are_left_alone() -> None:
    one, other = socket.socketpair()
    with one, other, socket.socket(type=socket.SOCK_DGRAM):
        acknowledge()
        one.sendall(b"x")
        assert other.recv(1) == b"x"


def test_where_nothing_lists_descriptors_nothing_happens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(commands, "DESCRIPTORS", tmp_path / "none")
    acknowledge()
