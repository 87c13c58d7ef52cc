"""Tasks are led to who listens, and nobody else gets in."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from eddyline.asking import driver_channel
from eddyline.asking.driver_channel import Address, DriverChannel, Hello, connected
from tests.asked import until


def echo(hello: Hello, connection: socket.socket) -> None:
    """Send back what is sent, in front of it what the hello says."""
    while data := connection.recv(100):
        connection.sendall(hello["mark"].encode() + data)


@pytest.fixture
def channel() -> Iterator[DriverChannel]:
    made = DriverChannel()
    yield made
    made.close()


def rest(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""


def test_each_comes_to_the_listener_that_it_names(channel: DriverChannel) -> None:
    one, two = channel.listen("echo", echo), channel.listen("echo", echo)
    assert (one.port, one.token) == (two.port, two.token)
    assert one.listener != two.listener
    with connected(one, {"mark": "1"}, 5) as first, connected(two, {"mark": "2"}, 5) as second:
        for connection, expected in ((first, b"1a"), (second, b"2a")):
            connection.sendall(b"a")
            assert connection.recv(100) == expected
        channel.hang_up(one)
        assert rest(first) == b""
        second.sendall(b"b")
        assert second.recv(100) == b"2b"
        with connected(one, {"mark": "1"}, 5) as late:
            assert rest(late) == b""


def test_what_follows_a_hello_is_left_to_the_listener(channel: DriverChannel) -> None:
    address = channel.listen("echo", echo)
    hello = {"token": address.token, "listener": address.listener, "mark": "+"}
    line = json.dumps(hello).encode() + b"\n"
    with socket.create_connection((address.host, address.port), timeout=5) as connection:
        connection.sendall(line[:9])
        time.sleep(0.05)
        connection.sendall(line[9:] + b"at once\n")
        assert connection.recv(100) == b"+at once\n"


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"\xff\xfe\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"[" * 60_000 + b"\n",
        b"x" * (2 * driver_channel.HELLO),
        b'{"token": null, "listener": "echo/1"}\n',
        b'{"token": "\\ud800", "listener": "echo/1"}\n',
        b'{"token": "guessed", "listener": "echo/1"}\n',
    ],
)
def test_strangers_are_sent_away(channel: DriverChannel, said: bytes) -> None:
    address = channel.listen("echo", lambda *_: pytest.fail("nobody is to be heard"))
    with socket.create_connection((address.host, address.port), timeout=5) as stranger:
        with suppress(OSError):  # who talks much is hung up on before the end
            stranger.sendall(said)
        assert rest(stranger) == b""


@pytest.mark.parametrize("listener", ["", "echo/9", 3, ["echo/1"]])
def test_who_wants_nobody_that_is_there_is_sent_away(
    channel: DriverChannel, listener: object
) -> None:
    address = channel.listen("echo", echo)
    with connected(replace(address, listener=listener), {}, 5) as connection:  # type: ignore[arg-type]
        assert rest(connection) == b""


def test_who_says_nothing_is_not_waited_for_for_ever(
    channel: DriverChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_channel, "HELLO_SECONDS", 0.05)
    address = channel.listen("echo", echo)
    with socket.create_connection((address.host, address.port), timeout=5) as silent:
        assert rest(silent) == b""


def test_a_hello_has_its_time_however_slowly_it_is_said(
    channel: DriverChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_channel, "HELLO_SECONDS", 0.2)
    address = channel.listen("echo", echo)
    with socket.create_connection((address.host, address.port), timeout=5) as slow:

        def is_let_go() -> bool:
            try:
                slow.sendall(b" ")
            except OSError:
                return True
            return False

        assert until(is_let_go)


def test_a_channel_that_closes_ends_all_connections() -> None:
    before = set(threading.enumerate())
    channel = DriverChannel()
    address = channel.listen("echo", echo)
    silent = socket.create_connection((address.host, address.port), timeout=5)
    with silent, connected(address, {"mark": "1"}, 5) as connection:
        connection.sendall(b"a")
        assert connection.recv(100) == b"1a"
        channel.close()
        assert rest(connection) == rest(silent) == b""
    with pytest.raises(OSError, match="refused"):
        connected(address, {}, 5)

    def begun() -> set[str]:
        return {thread.name for thread in set(threading.enumerate()) - before}

    assert until(lambda: "eddyline-channel" not in begun())


def test_no_accident_of_accepting_ends_it(
    channel: DriverChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_channel, "RESTING_SECONDS", 0.01)
    address = channel.listen("echo", echo)
    refuse = [True]

    class Refusing:
        def start(self, _: object) -> None:
            refuse.clear()
            raise RuntimeError("can't start new thread")

    real = driver_channel._CONNECTIONS
    monkeypatch.setattr(driver_channel, "_CONNECTIONS", Refusing())
    with connected(address, {"mark": "1"}, 5) as connection:
        assert rest(connection) == b""
    assert not refuse
    monkeypatch.setattr(driver_channel, "_CONNECTIONS", real)
    with connected(address, {"mark": "1"}, 5) as connection:
        connection.sendall(b"a")
        assert connection.recv(100) == b"1a"


def test_a_token_is_shown_to_nobody(channel: DriverChannel) -> None:
    address = channel.listen("echo", echo)
    assert address.token not in repr(address)
    assert Address("h", 1, "t", "l") == Address("h", 1, "t", "l")
