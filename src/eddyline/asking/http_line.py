"""Lines to HTTP servers: each carries one request at a time."""

from __future__ import annotations

import base64
import ssl
import urllib.request
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, Protocol, cast
from urllib.parse import unquote, urlsplit

import httpcore

from eddyline.asking.http_network import AsyncioNetwork
from eddyline.asking.http_request import Headers, Origin, RequestTarget
from eddyline.asking.no_answer import NoAnswerError

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
        """Speak to no one yet; ``tls`` is asked how to speak in secret, where one must."""
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
    found = proxies.get(origin.scheme) or proxies.get("all")
    if not found or urllib.request.proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return found if "://" in found else f"http://{found}"


def header(answer: httpcore.Response, name: bytes) -> str | None:
    """Return the value of a header, whose name is given in small letters."""
    for each, value in answer.headers:
        if each.lower() == name:
            return value.decode("latin-1")
    return None


async def body(answer: httpcore.Response, most: int) -> bytes:
    """Return an answer's body, decompressed; NoAnswerError where it has more than ``most`` bytes.

    No more than that is ever in memory, and a piece of what has come.
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
