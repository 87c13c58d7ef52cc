"""Answers to the lookups of a task, on their way to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from eddyline.asking.way import Found
from eddyline.asking.wire import packed

GATHERED_SECONDS: Final = 0.005
"""Seconds between two messages to a task at the least: what comes meanwhile goes together."""


class TaskAnswers:
    """Answers on their way to a task: what has come meanwhile goes in one message."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._ready: list[_Ready] = []
        self._any = asyncio.Event()

    def expect(self, call: int, answer: asyncio.Future[Found]) -> None:
        """Have the answer to a call sent when it is there."""
        known = answer.done()  # what is known already takes no time

        def put(done: asyncio.Future[Found]) -> None:
            self._ready.append(_Ready(call, done, known))
            self._any.set()

        answer.add_done_callback(put)

    async def send(self) -> None:
        """Send what comes, until this is cancelled."""
        while True:
            await self._any.wait()
            self._any.clear()
            ready, self._ready = self._ready, []
            for header, payload in _messages(ready):
                header["bytes"] = len(payload)
                self._writer.write(json.dumps(header).encode() + b"\n" + payload)
            await self._writer.drain()
            await asyncio.sleep(GATHERED_SECONDS)


class _Ready(NamedTuple):
    call: int
    answer: asyncio.Future[Found]
    known: bool


def _messages(ready: Sequence[_Ready]) -> list[tuple[dict[str, Any], bytes]]:
    """Return answers as messages: one for all that have rows, one for each failure."""
    found: list[tuple[dict[str, Any], bytes]] = []
    calls: list[int] = []
    sizes: list[int] = []
    seconds: list[float] = []
    batches: list[pa.RecordBatch] = []
    for call, answer, known in ready:
        if answer.cancelled():
            found.append(({"calls": [call], "error": "the lookup was closed"}, b""))
        elif (error := answer.exception()) is not None:
            found.append(({"calls": [call], "error": str(error)}, b""))
        else:
            rows, took, _ = answer.result()
            calls.append(call)
            sizes.append(rows.num_rows)
            seconds.append(0.0 if known else took)
            batches.append(rows)
    if batches:
        header = {"calls": calls, "rows": sizes, "seconds": seconds}
        found.append((header, packed(pa.Table.from_batches(batches))))
    return found
