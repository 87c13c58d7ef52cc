"""Rows of scans count once, whatever becomes of the tasks that send them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from eddyline.asking.driver_channel import Address, DriverChannel, connected
from eddyline.errors import ScanBrokenError
from eddyline.tasks.send_rows import CUT_OFF, END, THERE_ALREADY, WANTED, SendRows
from eddyline.watching.arriving import HELD_ROWS, Arriving
from eddyline.watching.scanning import RowReceiver

BATCH = pa.record_batch({"a": pa.array([1, 2, 3])})


class Receiving:
    """A receiver for one scan, and an event for each time that the reader would be woken."""

    def __init__(self, *, whole: bool) -> None:
        self.woken = threading.Semaphore(0)
        self.scan = Arriving(self.woken.release, lambda: None, whole=whole)
        self.channel = DriverChannel()
        self.receiver = RowReceiver([self.scan], self.channel)

    def call(self, partition: int = 0, token: str | None = None) -> socket.socket:
        """Connect as a task does, and say hello."""
        address = self.receiver.address
        hello = {"scan": 0, "partition": partition}
        return connected(replace(address, token=token or address.token), hello, 10)

    def close(self) -> None:
        self.receiver.close()
        self.channel.close()

    def wait(self) -> None:
        assert self.woken.acquire(timeout=10)


@pytest.fixture(params=[False, True], ids=["as it comes", "whole partitions"])
def receiving(request: pytest.FixtureRequest) -> Iterator[Receiving]:
    made = Receiving(whole=request.param)
    yield made
    made.close()


def written(connection: socket.socket, *, end: bool) -> None:
    """Send a batch; the end mark too, or hang up after the rows."""
    with connection.makefile("wb") as stream:
        with pa.ipc.new_stream(stream, BATCH.schema) as writer:
            writer.write_batch(BATCH)
        if end:
            stream.write(END)


def test_a_partition_counts_once(receiving: Receiving) -> None:
    with receiving.call() as first:
        assert first.recv(1) == WANTED
        written(first, end=True)
        assert first.recv(1) == WANTED
    receiving.wait()
    with receiving.call() as second:
        assert second.recv(1) == THERE_ALREADY
    with receiving.call(partition=1) as other:
        assert other.recv(1) == WANTED
    arrival = receiving.scan.poll()
    assert arrival is not None
    assert arrival.rows == 3
    assert receiving.scan.poll() is None


def test_a_second_attempt_waits_for_the_first(receiving: Receiving) -> None:
    with receiving.call() as first:
        assert first.recv(1) == WANTED
        with receiving.call() as second:
            second.settimeout(0.1)
            with pytest.raises(TimeoutError):
                second.recv(1)
            second.settimeout(10)
            written(first, end=True)
            assert second.recv(1) == THERE_ALREADY


def test_rows_that_were_cut_off_do_not_count_if_nobody_has_seen_them() -> None:
    receiving = Receiving(whole=True)
    with receiving.call() as first:
        assert first.recv(1) == WANTED
        written(first, end=False)
    with receiving.call() as second:
        assert second.recv(1) == WANTED
        written(second, end=True)
        assert second.recv(1) == WANTED
    receiving.wait()
    arrival = receiving.scan.poll()
    assert arrival is not None
    assert arrival.rows == 3
    receiving.close()


def test_rows_that_were_cut_off_after_they_were_seen_end_the_scan() -> None:
    receiving = Receiving(whole=False)
    with receiving.call() as first:
        assert first.recv(1) == WANTED
        written(first, end=False)
    receiving.wait()
    receiving.wait()
    with pytest.raises(ScanBrokenError, match="watch again"):
        receiving.scan.poll()
    receiving.close()


def test_whoever_has_no_token_is_not_listened_to(receiving: Receiving) -> None:
    with receiving.call(token="guessed") as stranger:  # noqa: S106 - no secret
        assert stranger.recv(1) == b""


def test_a_task_sends_its_rows_and_knows_when_nobody_takes_them(receiving: Receiving) -> None:
    send = SendRows(receiving.receiver.address, 0)
    (sent,) = send(iter([BATCH, BATCH]))
    assert sent.column("sent").to_pylist() == [6]
    (sent,) = SendRows(Address("127.0.0.1", 1, "nobody"), 0)(iter([BATCH]))
    assert sent.column("sent").to_pylist() == [CUT_OFF]


def test_who_sends_more_than_is_read_has_to_wait() -> None:
    scan = Arriving(lambda: None, lambda: None, whole=False)
    large = pa.record_batch({"a": pa.nulls(HELD_ROWS)})
    scan.put(0, large)
    waiting = threading.Thread(target=scan.put, args=(0, BATCH))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    assert scan.poll() is not None
    waiting.join(10)
    assert not waiting.is_alive()
    scan.end()
    assert not scan.ended
    assert scan.poll() is not None
    assert scan.ended
