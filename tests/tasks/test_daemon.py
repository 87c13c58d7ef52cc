"""What the daemon of the workers says, and does not."""

from __future__ import annotations

import socket

import pytest

from eddyline.tasks.daemon import unless_spark_hangs_up


def test_a_worker_that_nobody_listens_to_ends_without_a_word() -> None:
    def worker(connection: socket.socket, *content: bytes) -> int:
        for each in content:
            connection.sendall(each)
        return 7

    near, far = socket.socketpair()
    with near:
        far.close()
        assert unless_spark_hangs_up(worker)(near, b"rows") == 1
        assert unless_spark_hangs_up(worker)(near) == 7


def test_other_errors_are_told() -> None:
    def worker(_: socket.socket) -> int:
        raise LookupError

    with socket.socket() as connection, pytest.raises(LookupError):
        unless_spark_hangs_up(worker)(connection)
