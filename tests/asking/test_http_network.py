"""Connections on asyncio: the other side waits where nobody reads."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import httpcore
import pytest

from eddyline.asking.http_line import BUFFERED, AsyncioNetwork, NetworkStream
from tests.http_service import HttpService, Reply

PIECES = [bytes([n]) * 1_000_000 for n in range(20)]
RECEIVED = 256 * 1024
"""Bytes that an event loop of asyncio takes at once, at the most."""


async def rounds_until(holds: Callable[[], bool]) -> None:
    """Let the event loop go round until something holds."""
    for _ in itertools.takewhile(lambda _: not holds(), itertools.count()):
        await asyncio.sleep(0)


async def connected(service: HttpService) -> NetworkStream:
    stream = await AsyncioNetwork().connect_tcp("127.0.0.1", service.port)
    assert isinstance(stream, NetworkStream)
    return stream


def test_what_nobody_reads_stays_with_the_other_side() -> None:
    async def work(service: HttpService) -> None:
        stream = await connected(service)
        await stream.write(b"GET / HTTP/1.1\r\n\r\n")
        await rounds_until(lambda: stream._size > BUFFERED)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert stream._size <= BUFFERED + RECEIVED
        found = bytearray()
        while piece := await stream.read(100_000):
            assert len(piece) <= 100_000
            found += piece
        assert bytes(found) == b"".join(PIECES)
        assert stream.get_extra_info("is_readable")
        await stream.aclose()
        with pytest.raises(httpcore.WriteError):
            await stream.write(b"x")

    with HttpService(lambda _: Reply(parts=PIECES)) as service:
        asyncio.run(work(service))


def test_a_connection_that_is_idle_knows_when_it_has_ended() -> None:
    async def work(service: HttpService) -> None:
        stream = await connected(service)
        assert not stream.get_extra_info("is_readable")
        await stream.write(b"GET / HTTP/1.1\r\n\r\n")
        await rounds_until(lambda: stream._over)
        assert stream.get_extra_info("is_readable")
        await stream.aclose()

    with HttpService(lambda _: Reply(status=None)) as service:
        asyncio.run(work(service))
