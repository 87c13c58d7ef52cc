"""What tasks tell, and what becomes of it where nobody listens or the wrong one talks."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eddyline.asking.driver_channel import Address, DriverChannel, connected
from eddyline.reports.records import TaskRecord
from eddyline.tasks import live_news
from eddyline.tasks.live_news import (
    LONGEST,
    LiveNews,
    News,
    NewsTask,
    address_of,
    setting_of,
)
from eddyline.tasks.live_news import (
    hearing as hearing_of,
)

PLACE = NewsTask(1, 2, 3, 4)


class Hearing:
    """A receiver, and what it has heard."""

    def __init__(self) -> None:
        self.heard: list[News] = []
        self._come = threading.Condition()
        self.channel = DriverChannel()
        self.address = self.channel.listen("news", hearing_of(self.take))

    def take(self, news: News) -> None:
        with self._come:
            self.heard.append(news)
            self._come.notify_all()

    def wait(self, count: int) -> list[News]:
        with self._come:
            assert self._come.wait_for(lambda: len(self.heard) >= count, 60)
            return self.heard


@pytest.fixture
def hearing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hearing]:
    monkeypatch.setattr(live_news, "_line", live_news._Line("", None))
    made = Hearing()
    yield made
    made.channel.close()
    if live_news._line.socket is not None:
        live_news._line.socket.close()


def record(rows: int) -> TaskRecord:
    return TaskRecord(block="b", rows_in=rows)


def test_a_task_tells_now_and_then_and_at_its_end(
    hearing: Hearing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_news, "EVERY", 0.0)
    monkeypatch.setattr(live_news, "SHARE", 0)
    news = LiveNews("key", PLACE, setting_of(hearing.address))
    news.glance(lambda: record(1))
    news.glance(lambda: record(2))
    news.end(record(3))
    assert hearing.wait(3) == [
        News("key", PLACE, record(rows), ended)
        for rows, ended in ((1, False), (2, False), (3, True))
    ]


def test_no_record_is_made_before_its_time(hearing: Hearing) -> None:
    news = LiveNews("key", PLACE, setting_of(hearing.address))
    news.glance(lambda: pytest.fail("too early"))
    news.end(record(3))
    assert [each.record.rows_in for each in hearing.wait(1)] == [3]


def test_parts_are_added_up_and_told_at_the_end(hearing: Hearing) -> None:
    news = LiveNews("key", PLACE, setting_of(hearing.address))
    for _ in range(3):
        news.add(record(10))
    del news
    heard = hearing.wait(2)
    assert [(each.record.rows_in, each.ended) for each in heard] == [(10, False), (30, True)]


def test_nothing_is_told_where_nobody_looks(hearing: Hearing) -> None:
    news = LiveNews("key", PLACE, "")
    news.glance(lambda: pytest.fail("nobody looks"))
    news.add(record(1))
    news.end(record(1))
    assert not news.wanted
    assert live_news._line.socket is None
    assert hearing.heard == []


@pytest.mark.parametrize(
    "message", [b"cnowhere_at_all\nNews\n.", b"ceddyline\nNoSuchNews\n.", b"no pickle", b""]
)
def test_what_cannot_be_read_ends_its_connection_alone(hearing: Hearing, message: bytes) -> None:
    with connected(hearing.address, {}, 5) as connection:
        connection.sendall(b"%d\n%b" % (len(message), message))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    LiveNews("key", PLACE, setting_of(hearing.address)).end(record(1))
    assert len(hearing.wait(1)) == 1


def test_a_task_goes_on_where_nobody_listens_any_more(hearing: Hearing) -> None:
    where = setting_of(hearing.address)
    LiveNews("key", PLACE, where).end(record(1))
    hearing.wait(1)
    hearing.channel.hang_up(hearing.address)
    for _ in range(3):
        LiveNews("key", PLACE, where).end(record(2))
    assert live_news._line.socket is None
    LiveNews("key", PLACE, "nowhere").end(record(3))  # no address at all
    again = Hearing()
    LiveNews("key", PLACE, setting_of(again.address)).end(record(4))
    assert [each.record.rows_in for each in again.wait(1)] == [4]
    again.channel.close()


class Harm:
    """What does harm where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._path,)


def test_who_looks_again_is_told_of_over_the_same_channel(hearing: Hearing) -> None:
    LiveNews("key", PLACE, setting_of(hearing.address)).end(record(1))
    hearing.wait(1)
    hearing.channel.hang_up(hearing.address)
    LiveNews("key", PLACE, setting_of(hearing.address)).end(record(2))
    address = hearing.channel.listen("news", hearing_of(hearing.take))
    LiveNews("key", PLACE, setting_of(address)).end(record(3))
    assert [each.record.rows_in for each in hearing.wait(2)] == [1, 3]


@pytest.mark.parametrize(
    "hello",
    [
        b'{"token": "guessed", "listener": "news/1"}',
        b'{"listener": "news/1"}',
        b"[]",
        b"GET / HTTP/1.1",
        b"x" * 5000,
    ],
)
def test_nothing_is_read_of_who_does_not_know_the_token(
    hello: bytes, hearing: Hearing, tmp_path: Path
) -> None:
    address = hearing.address
    harm = pickle.dumps(Harm(tmp_path / "harm"))
    with socket.create_connection((address.host, address.port), timeout=60) as connection:
        with contextlib.suppress(OSError):  # it may have hung up already
            connection.sendall(hello + b"\n" + b"%d\n" % len(harm) + harm)
            connection.shutdown(socket.SHUT_WR)
        assert _rest(connection) == b""
    assert not (tmp_path / "harm").exists()


def test_a_message_that_is_too_long_ends_the_connection(hearing: Hearing) -> None:
    with connected(hearing.address, {}, 60) as connection:
        connection.sendall(b"%d\n" % (LONGEST + 1))
        assert _rest(connection) == b""


def _rest(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("host", ["127.0.0.1", "driver.example"])
def test_an_address_survives_the_setting(host: str) -> None:
    address = Address(host, 4040, "secret", "news/3")
    assert address_of(setting_of(address)) == address
