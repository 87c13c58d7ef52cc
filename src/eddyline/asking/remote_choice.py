"""Whether a table is looked up or scanned, as a task asks the driver with the keys that it has."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Final

import pyarrow as pa

from eddyline.asking.driver_channel import Address, connected
from eddyline.asking.filling import TaskPlace
from eddyline.asking.remote_method import CONNECT_SECONDS
from eddyline.asking.wire import packed
from eddyline.errors import LookupFailedError, ServerGoneError

KEYS_SENT: Final = 1 << 12
"""Keys that go in one message."""


def why_scanned(
    address: Address,
    job: str,
    method: str,
    scan_seconds: float,
    keys: pa.Table,
    *,
    place: TaskPlace,
    use: int = 0,
) -> str:
    """Have keys asked for; return why the table is to be scanned, "" where all have answers.

    A scan is expected to take ``scan_seconds``. ``place`` is where this task is, ``use`` numbers
    the places of a query where the table is used. ServerGoneError where nobody is there,
    LookupFailedError where nobody knows any more what other tasks were told.
    """
    hello = {
        "job": job,
        "method": method,
        "scan_seconds": scan_seconds,
        "use": use,
        "place": place,
        "keys": keys.num_rows,
    }
    try:
        with closing(connected(address, hello, CONNECT_SECONDS)) as connection:
            connection.settimeout(None)
            for start in range(0, keys.num_rows, KEYS_SENT):
                part = packed(keys.slice(start, KEYS_SENT))
                connection.sendall(json.dumps({"bytes": len(part)}).encode() + b"\n" + part)
            connection.sendall(b'{"rests": true}\n')
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline())
    except (OSError, ValueError) as error:
        raise ServerGoneError(
            f"lookups are made where the driver is, at {address.host}:{address.port}, which "
            f"cannot be reached from here: {error}"
        ) from error
    if "error" in answer:
        raise LookupFailedError(answer["error"])
    return str(answer["scan"])
