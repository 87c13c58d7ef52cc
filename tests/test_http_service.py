"""The HTTP service of the tests closes what it has opened, or a test is blamed for it."""

from __future__ import annotations

import gc
import socket

import pytest

from tests.http_service import HttpService, Reply


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_service_that_ends_closes_whoever_just_came(begun: bytes) -> None:
    for _ in range(10):
        with HttpService(lambda _: Reply(delay=30.0)) as service:
            clients = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
            for client in clients:
                client.sendall(begun)
        for client in clients:
            client.close()
        assert service.connections == 0
    gc.collect()  # a socket that nobody has closed says so
