"""A server of asyncio that stops listening without losing whoever has just come."""

from __future__ import annotations

import asyncio
from typing import Final

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
