"""Lines to HTTP servers: each carries one request at a time, on asyncio alone.

httpcore's own connections go through AnyIO, which suits other event loops too and takes a fifth of
a request's time.
"""
# ruff: noqa: ARG002, ASYNC109 - httpcore's parameters; a request's time is watched by the gate

from __future__ import annotations

import asyncio
import base64
import ssl
import urllib.request
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

import httpcore

from eddyline.asking.http_request import Headers, Origin, RequestTarget
from eddyline.asking.lookup_source import NoAnswerError

BUFFERED: Final = 1 << 18
"""Bytes that may wait to be read before the other side has to."""


class AsyncioNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections in the running event loop; others watch how long that takes."""

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
        """Agree on a cipher; ConnectError where the other side is not who it should be."""
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
        """Return what httpcore wants to know, above all whether an idle connection has ended."""
        if info == "is_readable":
            return self._over or bool(self._pieces)
        return self._transport.get_extra_info(info)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


IDLE_SECONDS: Final = 5.0
"""Seconds after which a connection is not used again: the other side may be about to close it."""

DRAINED: Final = 1 << 16
"""Bytes that are read of an answer which nobody wants, so that its connection stays."""


_NETWORK: Final = AsyncioNetwork()


class _Way(Protocol):
    """A connection to a server, or a proxy's to it."""

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response: ...

    async def aclose(self) -> None: ...


class Line:
    """Connections to servers for one request at a time, each opened when it is needed.

    httpcore's and httpx's pools look through all of their connections whenever a request begins
    or ends: with a pool of 32 a request took 6 ms of a core, with 32 pools of one 0.8 ms, and
    without any 0.3.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        """Speak to no one yet; ``tls`` gives the context of encrypted connections, when needed."""
        self._tls = tls
        self._ways: dict[Origin, _Way] = {}

    async def send(
        self, method: bytes, place: RequestTarget, headers: Headers, body: bytes | None
    ) -> httpcore.Response:
        """Send a request, return the answer's beginning; errors of httpcore."""
        origin, target = place
        url = httpcore.URL(
            scheme=origin.scheme.encode(),
            host=origin.host.encode(),
            port=origin.port,
            target=target.encode("ascii"),
        )
        if body is not None:
            headers = [*headers, (b"Content-Length", str(len(body)).encode())]
        request = httpcore.Request(method, url, headers=headers, content=body)
        return await (await self._way(origin)).handle_async_request(request)

    async def close(self) -> None:
        """Close the connections."""
        while self._ways:
            _, way = self._ways.popitem()
            await way.aclose()

    async def _way(self, origin: Origin) -> _Way:
        way = self._ways.get(origin)
        if isinstance(way, httpcore.AsyncHTTPConnection) and (way.is_closed() or way.has_expired()):
            del self._ways[origin]
            await way.aclose()
            way = None
        if way is None:
            way = self._ways[origin] = self._opened(origin)
        return way

    def _opened(self, origin: Origin) -> _Way:
        proxy = _proxy_for(origin)
        if proxy is None:
            return httpcore.AsyncHTTPConnection(
                httpcore.Origin(origin.scheme.encode(), origin.host.encode(), origin.port),
                ssl_context=self._tls() if origin.scheme == "https" else None,
                keepalive_expiry=IDLE_SECONDS,
                network_backend=_NETWORK,
            )
        parts = urlsplit(proxy)
        headers = []
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers.append(
                ("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
            )
        return httpcore.AsyncHTTPProxy(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            proxy_headers=headers,
            ssl_context=self._tls(),
            max_connections=1,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_NETWORK,
        )


def _proxy_for(origin: Origin) -> str | None:
    """Return the URL of the proxy that the environment names for an origin."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(origin.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def header(answer: httpcore.Response, name: bytes) -> str | None:
    """Return the value of a header, whose name is given in small letters."""
    for field, value in answer.headers:
        if field.lower() == name:
            return value.decode("latin-1")
    return None


async def body(answer: httpcore.Response, most: int) -> bytes:
    """Return an answer's body, decompressed; NoAnswerError where it has more than ``most`` bytes.

    Never more than that is in memory, besides a piece of what has come.
    """
    length = header(answer, b"content-length") or ""
    if length.isdecimal() and int(length) > most:
        raise _too_long(most)
    decode = _decoder(header(answer, b"content-encoding") or "")
    parts, size = [], 0
    stream = cast("AsyncGenerator[bytes, None]", aiter(answer.stream))  # type: ignore[arg-type]  # an answer's can be read asynchronously
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            part = piece if decode is None else decode.decompress(piece, most + 1 - size)
            size += len(part)
            if size > most:
                raise _too_long(most)
            parts.append(part)
    if decode is not None and not decode.eof:
        raise NoAnswerError("the compressed answer breaks off")
    return b"".join(parts)


async def drained(answer: httpcore.Response) -> None:
    """Read a short body that nobody wants; then the connection may be used again."""
    length = header(answer, b"content-length") or ""
    if length.isdecimal() and int(length) <= DRAINED:
        async for _ in answer.stream:  # type: ignore[union-attr]  # an answer's can be read asynchronously
            pass


def _too_long(most: int) -> NoAnswerError:
    return NoAnswerError(f"the answer has more than max_bytes={most:,} bytes")


def _decoder(encoding: str) -> _Decoder | None:
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return None
    if encoding in {"gzip", "x-gzip", "deflate"}:
        return _Decoder(bare=encoding == "deflate")
    raise NoAnswerError(f"the answer is compressed as {encoding}, which nobody asked for")


class _Decoder:
    """Decompresses piece by piece, and never more than is asked for."""

    def __init__(self, *, bare: bool) -> None:
        self._inner = zlib.decompressobj(32 + zlib.MAX_WBITS)  # gzip's or zlib's header
        self._may_be_bare = bare  # some send it without a header
        self._begun = False

    @property
    def eof(self) -> bool:
        return self._inner.eof or not self._begun

    def decompress(self, piece: bytes, most: int) -> bytes:
        """Return what a piece holds, ``most`` bytes of it at the most."""
        begun, self._begun = self._begun, True
        try:
            return self._inner.decompress(piece, most)
        except zlib.error as error:
            if begun or not self._may_be_bare:
                raise NoAnswerError(f"the compressed answer is broken: {error}") from None
        self._inner, self._may_be_bare = zlib.decompressobj(-zlib.MAX_WBITS), False
        return self.decompress(piece, most)
