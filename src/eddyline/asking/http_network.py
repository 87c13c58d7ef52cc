"""Connections of httpcore on asyncio alone.

Its own go through AnyIO, which suits other event loops too and takes a fifth of a request's time.
"""
# ruff: noqa: ARG002, ASYNC109 - httpcore's parameters; a request's time is watched by the gate

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import httpcore

BUFFERED: Final = 1 << 18
"""Bytes that may wait to be read before the other side has to."""


class AsyncioNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections in the running event loop; how long that takes others watch."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection; ConnectError where there is none."""
        loop = asyncio.get_running_loop()
        try:
            # One address after the other: asyncio's race between them (happy_eyeballs_delay)
            # leaves a socket open when it is cancelled at the wrong moment (Python 3.11).
            _, stream = await loop.create_connection(NetworkStream, host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return stream

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """No URL leads to one."""
        raise NotImplementedError(path)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class NetworkStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """A connection: bytes in both directions."""

    def __init__(self) -> None:
        """Wait to be connected."""
        self._transport: asyncio.Transport
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._over = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of the connection."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what create_connection makes
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep what has come."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > BUFFERED:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Take note that no more will come."""
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note that the connection has ended."""
        self._over = True
        self._error = exc
        self._wake()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come, nothing at the end; ReadError where the connection broke."""
        while not self._pieces:
            if self._error is not None:
                raise httpcore.ReadError(str(self._error)) from self._error
            if self._over:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        piece = self._pieces.popleft()
        if len(piece) > max_bytes:
            self._pieces.appendleft(piece[max_bytes:])
            piece = piece[:max_bytes]
        full = self._size > BUFFERED
        self._size -= len(piece)
        if full and self._size <= BUFFERED:
            self._transport.resume_reading()
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send; WriteError where the connection has ended.

        What cannot be sent at once waits in memory: a request is in memory anyway.
        """
        if self._transport.is_closing():
            raise httpcore.WriteError("the connection has ended")
        self._transport.write(buffer)

    async def aclose(self) -> None:
        """End the connection at once; nothing is left to be sent."""
        self._transport.abort()
        await asyncio.sleep(0)  # it ends with the loop's next round

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Agree on a cipher; ConnectError where the other side is not whom it should be."""
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(
                self._transport, self, ssl_context, server_hostname=server_hostname
            )
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        if transport is None:
            raise httpcore.ConnectError("the connection has ended")
        self._transport = transport
        return self

    def get_extra_info(self, info: str) -> object:
        """Return what httpcore wants to know: whether an idle connection has ended, above all."""
        if info == "is_readable":
            return self._over or bool(self._pieces)
        return self._transport.get_extra_info(info)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
