"""Threads that everybody shares: as many as there are calls, none when there are none."""

from __future__ import annotations

import threading
import time

import pytest

from eddyline.asking.shared_threads import SharedThreads, ThreadShare
from tests.asked import until


def running(threads: SharedThreads) -> int:
    return sum(each.name == threads.name for each in threading.enumerate())


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> SharedThreads:
    return SharedThreads(request.node.name, idle_seconds=0.2)


def test_a_share_makes_no_more_calls_at_a_time_than_it_may(threads: SharedThreads) -> None:
    lock, at_a_time = threading.Lock(), [0, 0]

    def call(number: int) -> int:
        with lock:
            at_a_time[0] += 1
            at_a_time[1] = max(at_a_time)
        time.sleep(0.01)
        with lock:
            at_a_time[0] -= 1
        return number

    share = ThreadShare(threads, most=3)
    assert list(share.map(call, range(20))) == list(range(20))
    assert at_a_time == [0, 3]
    assert running(threads) == 3
    assert until(lambda: not running(threads))
    assert share.submit(call, 4).result() == 4  # another thread comes


def test_shares_use_the_same_threads(threads: SharedThreads) -> None:
    for _ in range(10):
        share = ThreadShare(threads, most=4)
        assert list(share.map(abs, range(4))) == list(range(4))
        share.shutdown()
    assert running(threads) <= 8  # a thread that has just ended its call is not free yet


def test_what_is_raised_ends_the_call_and_not_the_thread(threads: SharedThreads) -> None:
    share = ThreadShare(threads, most=1)
    for end in (SystemExit, ValueError):

        def fails(end: type[BaseException] = end) -> None:
            raise end

        with pytest.raises(RuntimeError if end is SystemExit else ValueError):
            share.submit(fails).result()
    assert share.submit(abs, -1).result() == 1
    assert running(threads) <= 2


def test_the_end_waits_for_calls_or_cancels_those_that_wait(threads: SharedThreads) -> None:
    may_end = threading.Event()
    share = ThreadShare(threads, most=1)
    first, second = share.submit(may_end.wait, 10), share.submit(abs, 1)
    share.shutdown(wait=False, cancel_futures=True)
    assert (first.done(), second.cancelled()) == (False, True)
    with pytest.raises(RuntimeError):
        share.submit(abs, 1)
    threading.Timer(0.1, may_end.set).start()
    share.shutdown()
    assert first.result() is True


def test_without_another_thread_calls_wait_or_fail(
    threads: SharedThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    share, other = ThreadShare(threads, most=2), ThreadShare(threads, most=2)
    first = share.submit(may_end.wait, 10)

    def no_thread(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start", no_thread)
    second = share.submit(abs, -2)
    with pytest.raises(RuntimeError, match="new thread"):
        other.submit(abs, 1)
    may_end.set()
    assert (first.result(), second.result()) == (True, 2)
