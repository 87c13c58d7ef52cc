"""An HTTP service on loopback that does as it is told, and writes down what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

ROUNDS: Final = 2
"""Rounds of an event loop from accepting a connection to saying so: in the first it gets its
transport, which it cannot where the server is closed, and in the second its reader and writer."""


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server. Whom it has accepted it has also been told of, before this returns.

    ``Server.close`` alone forgets who came in this very moment: the socket is never closed. Over
    TLS one is told of after the two sides have agreed, which may take longer.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    server.close()


@dataclass
class Request:
    """A request as it came; ``began`` and ``ended`` are seconds."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    began: float
    target: str = ""
    ended: float = 0.0


@dataclass
class Reply:
    """What is answered, after ``delay`` seconds. Without a status the connection is cut.

    Where there are ``parts``, these bytes are sent as they are instead, with ``delay`` seconds
    after them, and then it is cut.
    """

    body: object = None
    status: int | None = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    parts: Iterable[bytes] = ()

    def encoded(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        lines = [f"HTTP/1.1 {self.status} Status", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class HttpService:
    """Answers each request as ``answer`` says; a context manager."""

    def __init__(
        self, answer: Callable[[Request], Reply], tls: ssl.SSLContext | None = None
    ) -> None:
        self._answer = answer
        self.log: list[Request] = []
        self.most = 0
        """Requests that were under way at a time, at the most."""
        self.connections = 0
        """Connections that are open now."""
        self.opened = 0
        """Connections that were ever opened."""
        self.sent = 0
        """Bytes of parts that the other side has taken, or the network for it."""
        self._now = 0
        self._loop = asyncio.new_event_loop()
        self._writers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=tls)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = (
            f"http://127.0.0.1:{self.port}" if tls is None else f"https://localhost:{self.port}"
        )
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def paths(self) -> list[str]:
        """The paths asked for, in the order in which they came."""
        return [request.path for request in self.log]

    async def _close(self) -> None:
        await stop_listening(self._server)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:  # some over TLS come later
            for task in others:
                if task in self._writers:
                    self._writers[task].transport.abort()
                task.cancel()
            await asyncio.wait(others)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection. It is counted, and will be closed, before its task begins."""
        self.connections += 1
        self.opened += 1
        task = self._loop.create_task(self._serve(reader, writer))
        self._writers[task] = writer
        task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self.connections -= 1
        self._writers.pop(task).close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass

    @staticmethod
    async def _pause(reader: asyncio.StreamReader, seconds: float) -> None:
        """Wait; no longer than somebody is there."""
        with contextlib.suppress(TimeoutError):
            if not await asyncio.wait_for(reader.read(1), seconds):
                raise ConnectionError("nobody waits any more")

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tell whether the connection goes on."""
        first = await reader.readline()
        if not first:
            return False
        method, target, _ = first.decode().split()
        headers: dict[str, str] = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        request = Request(
            method, unquote(parts.path), query, headers, body, time.monotonic(), target
        )
        self.log.append(request)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            reply = self._answer(request)
            for part in reply.parts:
                writer.write(part)
                await writer.drain()
                self.sent += len(part)
                reply.status = None
            if reply.delay:
                await self._pause(reader, reply.delay)
        finally:
            self._now -= 1
            request.ended = time.monotonic()
        if reply.status is None:
            return False
        writer.write(reply.encoded())
        await writer.drain()
        return True
