"""Spark's event logs, read without Spark: the reports that Eddyline has put there.

A log is a file, or a folder with the files of one that was rolled. What has compressed it is seen
from its first bytes. The log of an application that runs, or that was killed, ends anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from eddyline.app.endings import UsageError
from eddyline.app.file_errors import file_errors_explained
from eddyline.reports.kept_report import kept_report
from eddyline.reports.routing_report import RoutingReport

REPORT: Final = "eddyline.catalyst.RoutingReportEvent"
"""The event with a report; logs that were written keep this name for good."""

_SQL: Final = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
_START, _END = f"{_SQL}Start", f"{_SQL}End"
_APPLICATION: Final = "SparkListenerApplicationStart"
_WANTED: Final = tuple(
    f'{{"Event":"{name}"'.encode() for name in (REPORT, _START, _END, _APPLICATION)
)

_CHUNK: Final = 1 << 16  # bytes that are read at a time
_ROLLED: Final = re.compile(r"events_(\d+)_")
_COMPACTED: Final = ".compact"

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_LZ4: Final = b"LZ4Block"
_SNAPPY: Final = b"\x82SNAPPY\0"
_LZF: Final = b"ZV"

_LZ4_HEADER: Final = 21  # magic, a byte of method and level, two lengths, a checksum
_LZ4_RAW: Final = 0x10  # the method of blocks that are not compressed
_SNAPPY_HEADER: Final = 16  # magic, two versions


@dataclass(slots=True)
class LoggedAction:
    """An action with a report; times are in seconds since the epoch, None where nothing tells."""

    number: int
    report: RoutingReport
    description: str = ""
    started: float | None = None
    ended: float | None = None
    error: str = ""

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.started is None or self.ended is None else self.ended - self.started


@dataclass(slots=True)
class EventLog:
    """What stands in a log: the application, and its actions with reports as they ended.

    It is ``cut`` where it ends within an event: the application still runs, or was killed.
    ``unread`` are reports that this version of Eddyline does not know.
    """

    application: str = ""
    identity: str = ""
    actions: list[LoggedAction] = field(default_factory=list)
    cut: bool = False
    unread: int = 0


def read_event_log(path: Path) -> EventLog:
    """Return the reports in an event log.

    UsageError where there is none, where it cannot be read, and for another kind of file.
    """
    log = EventLog()
    known: dict[int, LoggedAction] = {}
    beginnings: dict[int, dict[str, Any]] = {}
    for event in _events(_files(path), log):
        match event["Event"]:
            case "SparkListenerApplicationStart":
                log.application = str(event.get("App Name", ""))
                log.identity = str(event.get("App ID", ""))
            case name if name == _START:
                beginnings[event["executionId"]] = event
            case name if name == _END:
                began = beginnings.pop(event["executionId"], {})
                action = known.setdefault(
                    event["executionId"], LoggedAction(event["executionId"], RoutingReport(()))
                )
                action.description = str(began.get("description", ""))
                action.started = began["time"] / 1000 if "time" in began else None
                action.ended = event["time"] / 1000
                action.error = str(event.get("errorMessage") or "")
            case _:
                try:
                    report = kept_report(event["report"])
                except (KeyError, TypeError, ValueError):
                    log.unread += 1
                    continue
                action = known.setdefault(event["action"], LoggedAction(event["action"], report))
                action.report = report
                log.actions.append(action)
    return log


def _files(path: Path) -> list[Path]:
    """Return the files of a log, in their order."""
    if "://" in str(path) or re.match(r"\w{2,}:/", str(path)):
        raise UsageError(f"{path} is not on this machine; copy the event log here first")
    with file_errors_explained(path, "read"):
        if not path.is_dir():
            path.stat()
            return [path]
        rolled = {
            file: int(number[1])
            for file in path.iterdir()
            if (number := _ROLLED.match(file.name)) is not None
        }
        if not rolled:
            raise UsageError(_no_log(path))
    compacted = [number for file, number in rolled.items() if file.suffix == _COMPACTED]
    # One that was compacted stands for all before it, which may still be there.
    first = max(compacted, default=0)
    files = [
        file
        for file, number in rolled.items()
        if number > first or (number == first and (not compacted or file.suffix == _COMPACTED))
    ]
    return sorted(files, key=lambda file: rolled[file])


def _no_log(folder: Path) -> str:
    """Return what to do with a folder that is no log itself."""
    inside = sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))
    if not inside:
        return f"{folder} is empty; name an event log"
    return f"{folder} is no event log; name one of those in it, as {folder / inside[-1]}"


def _events(files: Iterable[Path], log: EventLog) -> Iterator[dict[str, Any]]:
    first = True
    for file in files:
        log.cut = False  # each file is written to its end before the next begins
        for line in _lines(file, log):
            if first:
                _require_event(line, file)
                first = False
            if not line.startswith(_WANTED):
                continue
            try:
                yield json.loads(line)
            except ValueError:
                log.cut = True  # the last line, half-written
    if first and not log.cut:
        raise UsageError(f"{next(iter(files))} is empty: its application has logged nothing yet")


def _require_event(line: bytes, file: Path) -> None:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
        raise UsageError(f"{file} is no event log of Spark")


def _lines(file: Path, log: EventLog) -> Iterator[bytes]:
    """Yield the lines of a file, without the last one if that has no end."""
    parts: list[bytes] = []  # of the line that has not ended yet
    with file_errors_explained(file, "read"), file.open("rb") as opened:
        start = opened.read(_SNAPPY_HEADER)
        opened.seek(0)
        for chunk in _plain(start, opened, file, log):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                yield b"".join((*parts, end))
                parts.clear()
            parts.append(rest)
    rest = b"".join(parts)
    if rest:
        if rest.startswith(b"{") and rest.endswith(b"}"):
            yield rest
        else:
            log.cut = True
            if not rest.startswith(b'{"'):  # else it is no log at all
                yield rest


def _plain(start: bytes, opened: BinaryIO, file: Path, log: EventLog) -> Iterator[bytes]:
    """Yield what a file holds, as far as it can be decompressed."""
    if start.startswith(_LZF) and not start.startswith(b"{"):
        raise UsageError(
            f"{file} is compressed by lzf, which cannot be read here; Spark writes another codec "
            f"with spark.eventLog.compression.codec=zstd"
        )
    try:
        if start.startswith(_ZSTD):
            yield from _zstd(file)
        elif start.startswith(_LZ4):
            yield from _lz4(opened)
        elif start.startswith(_SNAPPY):
            yield from _snappy(opened)
        else:
            yield from _chunks(opened)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, not of a codec
        log.cut = True


def _zstd(file: Path) -> Iterator[bytes]:
    """Yield what frames hold, up to the last byte that is there."""
    given = 0
    try:
        for chunk in _chunks(_frames(file)):
            given += len(chunk)
            yield chunk
    except (pa.ArrowException, OSError):
        # Arrow gives nothing of a read that it cannot complete: it is asked again, byte by byte.
        stream = _frames(file)
        for start in range(0, given, _CHUNK):
            stream.read(min(_CHUNK, given - start))
        while byte := stream.read(1):
            yield byte


def _frames(file: Path) -> pa.NativeFile:
    return pa.CompressedInputStream(pa.OSFile(str(file)), "zstd")


def _chunks(opened: Any) -> Iterator[bytes]:  # noqa: ANN401 - Python's files and Arrow's
    while chunk := opened.read(_CHUNK):
        yield chunk


def _lz4(opened: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks that lz4-java has written, which is a format of its own."""
    while header := _read(opened, _LZ4_HEADER):
        token = header[8]
        compressed = int.from_bytes(header[9:13], "little")
        plain = int.from_bytes(header[13:17], "little")
        if not plain:
            continue  # the end of a stream; another may follow
        block = _read(opened, compressed)
        if token & 0xF0 == _LZ4_RAW:
            yield block
        else:
            yield pa.decompress(block, plain, codec="lz4_raw", asbytes=True)


def _snappy(opened: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks that snappy-java has written, which is a format of its own."""
    while head := _read(opened, 4):
        if head == _SNAPPY[:4]:
            _read(opened, _SNAPPY_HEADER - 4)
            continue
        block = _read(opened, int.from_bytes(head, "big"))
        plain = place = 0
        while True:  # the length comes first, in groups of seven bits
            plain |= (block[place] & 0x7F) << 7 * place
            place += 1
            if block[place - 1] < 0x80:  # noqa: PLR2004 - no further group
                break
        yield pa.decompress(block, plain, codec="snappy", asbytes=True)


def _read(opened: BinaryIO, size: int) -> bytes:
    """Read so many bytes, or none at the end; ArrowException where it comes too early."""
    found = opened.read(size)
    if found and len(found) < size:
        raise pa.ArrowInvalid("the file ends within a block")
    return found
