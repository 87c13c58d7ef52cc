"""``python -m bench.lookups.service``: the service that is asked, in a process of its own.

It answers ``GET /income/<key>`` after a fixed time, and ``GET /log`` with what it has seen since
the last time: requests, distinct keys, refused ones, and how busy it was. More requests at a time
than its limit it refuses, with 429.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence

from eddyline_demos.lookups.service import LOG, serve_json


class Service:
    """The service, and what it has seen."""

    def __init__(self, latency: float, limit: int) -> None:
        """Answer after ``latency`` seconds, ``limit`` requests at a time."""
        self._latency = latency
        self._limit = limit
        self._forget()

    def _forget(self) -> None:
        self._keys: list[str] = []
        self._refused = 0
        self._now = 0
        self._most = 0
        self._began = self._ended = self._changed = 0.0
        self._busy = self._alone = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        await serve_json(self._answer, reader, writer)

    async def _answer(self, target: str) -> tuple[int, object]:
        if target == LOG:
            seen = {
                "requests": len(self._keys),
                "keys": len(set(self._keys)),
                "refused": self._refused,
                "most": self._most,
                "seconds": self._ended - self._began,
                "busy": self._busy / self._limit,
                "alone": self._alone,
            }
            self._forget()
            return 200, seen
        if self._now >= self._limit:
            self._refused += 1
            return 429, None
        key = target.rpartition("/")[2]
        self._began = self._began or time.monotonic()
        self._keys.append(key)
        self._change(1)
        await asyncio.sleep(self._latency)
        self._change(-1)
        self._ended = self._changed
        return 200, [{"zip": int(key), "income": int(key) * 1.5}]

    def _change(self, requests: int) -> None:
        """Count how many requests there are at a time, and for how long."""
        now = time.monotonic()
        self._busy += self._now * (now - self._changed)
        if not self._now and self._changed:
            self._alone += now - self._changed
        self._now += requests
        self._most = max(self._most, self._now)
        self._changed = now


async def _main(arguments: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds of an answer")
    parser.add_argument("--limit", type=int, default=32, help="requests at a time")
    given = parser.parse_args(arguments)
    service = Service(given.latency, given.limit)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(None))
