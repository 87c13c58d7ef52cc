"""Whether a table is looked up or scanned, as a task asks the driver with the keys that it has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from eddyline.asking.driver_channel import Address, connected
from eddyline.asking.filling import TaskPlace
from eddyline.asking.remote_method import CONNECT_SECONDS
from eddyline.asking.wire import packed
from eddyline.errors import LookupFailedError, ServerGoneError

KEYS_SENT: Final = 1 << 12
"""Keys that go in one message."""

FEW: Final = 128
"""Keys of a task whose rows come with the outcome, so that nobody has to connect for them again."""


@dataclass(frozen=True, slots=True)
class KeysOfWay:
    """Distinct keys, as columns, that the server may ask for by a ``method``.

    A call costs ``money``, as the seconds that this is worth.
    """

    method: str
    keys: pa.Table
    money: float = 0.0


class AskedOutcome(NamedTuple):
    """Why a table is to be scanned; "" where it is not: then by a ``way`` all keys have answers.

    Where these were few there are the ``rows`` of all of them, as Arrow has the table's columns.
    """

    scan: str
    way: int = 0
    rows: pa.Table | None = None


def asked_or_scanned(
    address: Address,
    job: str,
    ways: Sequence[KeysOfWay],
    scan_seconds: float,
    scan_money: float = 0.0,
    *,
    place: TaskPlace,
    use: int = 0,
) -> AskedOutcome:
    """Have keys asked for, by one of the ways to a table; return what came of it.

    A scan is expected to take ``scan_seconds``, and money worth ``scan_money`` more. ``place`` is
    where this task is, ``use`` numbers the places of a query where the table is used.
    ServerGoneError where nobody is there, LookupFailedError where nobody knows any more what other
    tasks were told.
    """
    hello = {
        "job": job,
        "scan_seconds": scan_seconds,
        "scan_money": scan_money,
        "use": use,
        "place": place,
        "ways": [(way.method, way.keys.num_rows, way.money) for way in ways],
    }
    try:
        with closing(connected(address, hello, CONNECT_SECONDS)) as connection:
            connection.settimeout(None)
            with connection.makefile("rb") as answers:
                while "send" in (answer := json.loads(answers.readline())):
                    way, start, count = answer["send"]
                    part = packed(ways[way].keys.slice(start, count))
                    connection.sendall(json.dumps({"bytes": len(part)}).encode() + b"\n" + part)
                payload = answers.read(answer.get("bytes", 0))
    except (OSError, ValueError) as error:
        raise ServerGoneError(
            f"lookups are made where the driver is, at {address.host}:{address.port}, which "
            f"cannot be reached from here: {error}"
        ) from error
    if "error" in answer:
        raise LookupFailedError(answer["error"])
    rows = pa.ipc.open_stream(payload).read_all() if payload else None
    return AskedOutcome(str(answer["scan"]), int(answer["way"]), rows)
