"""Event logs are read without Spark: however compressed, rolled, cut off, or none at all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.app.cli import main
from eddyline.app.endings import UsageError
from eddyline.app.event_log import REPORT, read_event_log
from tests.reports.samples import drifting, joined

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"

REPORTS = {3: joined().to_dict(), 7: drifting().to_dict()}


def event(name: str, **fields: object) -> bytes:
    return json.dumps({"Event": name, **fields}, separators=(",", ":")).encode() + b"\n"


BEGINNING = event("SparkListenerLogStart", **{"Spark Version": "4.3.0"}) + event(
    "SparkListenerApplicationStart", **{"App Name": "nightly", "App ID": "local-1"}
)
FIRST = (
    event(f"{SQL}Start", executionId=3, description="count at job.py:7", time=1_000)
    + event("SparkListenerTaskEnd", **{"Stage ID": 1})
    + event(f"{SQL}End", executionId=3, time=3_500, errorMessage="")
    + event(REPORT, action=3, report=REPORTS[3])
)
SECOND = (
    event(f"{SQL}Start", executionId=7, description="save", time=9_000)
    + event(REPORT, action=7, report=REPORTS[7])  # Spark may post it before the end
    + event(f"{SQL}End", executionId=7, time=9_250, errorMessage="it broke\nin two")
)
CONTENT = BEGINNING + FIRST + SECOND


def numbers(path: Path) -> list[int]:
    return [action.number for action in read_event_log(path).actions]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[bytes, str], Path]:
    def write(content: bytes, name: str = "local-1") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    return write


Written = Callable[..., Path]


def test_actions_with_what_spark_says_of_them(written: Written) -> None:
    log = read_event_log(written(CONTENT))
    assert (log.application, log.identity, log.cut, log.unread) == ("nightly", "local-1", False, 0)
    first, second = log.actions
    assert (first.number, first.description, first.seconds, first.error) == (
        *(3, "count at job.py:7", 2.5),
        "",
    )
    assert (second.number, second.seconds, second.error) == (7, 0.25, "it broke\nin two")
    assert {action.number: action.report.to_dict() for action in log.actions} == REPORTS


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
def test_as_spark_compresses_it(codec: str, tmp_path: Path) -> None:
    """In several frames, as Spark flushes after each job; and cut off in the last one."""
    jvm: Any = SparkContext._jvm
    context = cast("Any", SparkContext._active_spark_context)
    path = tmp_path / f"local-1.{codec}"
    file = jvm.java.io.FileOutputStream(str(path))
    codecs = jvm.org.apache.spark.io.CompressionCodec
    stream = codecs.createCodec(context._jsc.sc().conf(), codec).compressedContinuousOutputStream(
        file
    )
    for part in (BEGINNING, FIRST, SECOND):
        stream.write(part)
        stream.flush()
    running = path.read_bytes()
    stream.close()
    assert numbers(path) == [3, 7]
    assert not read_event_log(path).cut
    if codec == "zstd":  # only its frames end with each flush
        path.write_bytes(running)
        assert numbers(path) == [3, 7]
        path.write_bytes(running[:-1_000])
        assert numbers(path) == [3]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 4])
    log = read_event_log(path)
    assert log.cut
    assert [action.number for action in log.actions] in ([], [3])


def test_a_killed_application_leaves_half_a_line(written: Written) -> None:
    for length in (len(CONTENT) - 20, len(BEGINNING + FIRST) + 300):
        log = read_event_log(written(CONTENT[:length], "local-1.inprogress"))
        assert log.cut
        assert [action.number for action in log.actions][:1] == [3]


def test_a_rolled_log_in_order_and_compacted(tmp_path: Path, written: Written) -> None:
    folder = "eventlog_v2_local-1"
    written(b"", f"{folder}/appstatus_local-1")
    written(FIRST, f"{folder}/events_10_local-1")
    written(SECOND, f"{folder}/events_9_local-1")
    written(BEGINNING, f"{folder}/events_2_local-1")
    assert numbers(tmp_path / folder) == [7, 3]
    written(BEGINNING, f"{folder}/events_9_local-1.compact")
    assert numbers(tmp_path / folder) == [3]


def test_reports_of_a_later_version_are_left_out(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    later = event(REPORT, action=9, report={"format": 99})
    path = written(CONTENT + later)
    assert read_event_log(path).unread == 1
    assert main(["report", "--event-log", str(path), "--action", "7"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Action 7: save\n1970-01-01 00:00:09 UTC, 250 ms, failed: it br")
    assert "1 report of another version of Eddyline left out." in printed.err


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("notes.txt", b"not a log\n", "is no event log of Spark"),
        ("notes.txt", b"no end of a line", "is no event log of Spark"),
        ("rows.json", b'{"id": 1}\n', "is no event log of Spark"),
        ("rows.json", b'[{"id": 1}]', "is no event log of Spark"),
        ("rows.bin", b"\xff\xfe\x00\x01" * 10, "is no event log of Spark"),
        ("local-1", b"", "is empty"),
        ("local-1.lzf", b"ZV\x01\x00\x04", "compressed by lzf"),
        ("folder/notes.txt", b"", "name one of those in it"),
    ],
)
def test_what_is_no_log(name: str, content: bytes, says: str, written: Written) -> None:
    path = written(content, name)
    with pytest.raises(UsageError, match=says):
        read_event_log(path if "/" not in name else path.parent)


def test_other_mistakes_are_one_line(
    tmp_path: Path, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = str(written(BEGINNING))
    for arguments, says in (
        (["--event-log", str(tmp_path / "none")], "cannot be read: No such file"),
        (["--event-log", "hdfs://logs/local-1"], "is not on this machine"),
        (["--event-log", plain], "no reports: no query of nightly ran in an eddy"),
        (["--event-log", plain, "--json", str(tmp_path)], "is a folder"),
        (["--event-log", str(written(CONTENT, "b")), "--action", "4"], "action 4, only of 3, 7"),
    ):
        assert main(["report", *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert says in line


def test_neither_spark_nor_pyspark_is_needed(written: Written) -> None:
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None\n"
        "from eddyline.app.cli import main\n"
        f"raise SystemExit(main(['report', '--event-log', {str(written(CONTENT))!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Action 3: count at job.py:7\n")


def test_the_session_of_the_tests_has_no_log(spark: SparkSession) -> None:
    assert spark.conf.get("spark.eventLog.enabled", "false") == "false"
