"""The event log keeps the report of each action, and sinks show counters, in a real application."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import eddyline
from eddyline.app.cli import main
from eddyline.app.event_log import EventLog, read_event_log
from eddyline.counters import COUNTERS
from eddyline.planner.block_registry import registry_of
from tests.planner import logged_application
from tests.planner.logged_application import ROWS, THREADS

pytestmark = pytest.mark.slow(14)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the applications were."""
    folder = tmp_path_factory.mktemp("events")
    command = [sys.executable, logged_application.__file__, str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


def application(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the log of one, and what it has said itself."""
    (log,) = (path for path in folder.iterdir() if path.suffix not in {".json", ".crc"})
    return log, json.loads((folder / "said.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def logged(folder: Path) -> tuple[Path, dict[str, Any]]:
    return application(folder / "many")


@pytest.fixture(scope="module")
def log(logged: tuple[Path, dict[str, Any]]) -> EventLog:
    return read_event_log(logged[0])


@pytest.fixture(scope="module")
def said(logged: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return logged[1]


def test_a_report_from_the_log_is_the_report(log: EventLog, said: dict[str, Any]) -> None:
    first, both, several, own, derived, *_, last = said["reports"]
    found = [action.report.to_dict() for action in log.actions]
    assert found[:4] == [first, both, several, own]
    assert [len(report["blocks"]) for report in found[:4]] == [1, 2, 3, 1]
    assert found[-1] == last  # the application was stopped at once
    assert not log.cut
    # Of an action that adds a step to what `adapt` returned, nobody knows what Spark would call.
    assert found[4]["blocks"][0]["run"]["calls"] == derived["blocks"][0]["run"]["calls"]
    assert (found[4]["compared"]["estimated"], derived["compared"]["estimated"]) == (True, False)


def test_each_action_has_its_own_of_equal_ones_at_once(log: EventLog) -> None:
    at_once = log.actions[6 : 6 + 2 * THREADS]
    assert len({action.number for action in at_once}) == 2 * THREADS
    for action in at_once:
        (block,) = action.report.blocks
        assert block.record is not None
        assert block.record.rows_in == ROWS


def test_what_spark_says_of_an_action_stands_beside_it(log: EventLog, said: dict[str, Any]) -> None:
    failed = log.actions[5]
    assert "not this one" in said["error"]
    assert "not this one" in failed.error
    first = log.actions[0]
    assert (log.application, first.number, first.error) == ("logged", 0, "")
    assert first.description.startswith("count at ")
    assert first.seconds is not None
    assert 0 < first.seconds < 600
    assert len(log.actions) == 5 + 1 + 2 * THREADS + 1


@pytest.mark.usefixtures("spark")
def test_the_plans_in_the_log_name_eddies(logged: tuple[Path, dict[str, Any]]) -> None:
    assert replayed(logged[0]).count("eddy[") >= 4


def replayed(folder: Path) -> str:
    """Return the texts of plans that Spark itself finds in a log, without our class for events."""
    jvm: Any = SparkContext._jvm
    context = cast("Any", SparkContext._active_spark_context)
    reader = jvm.org.apache.spark.deploy.history.EventLogFileReader
    (file,) = folder.glob("events_*")
    path = jvm.org.apache.hadoop.fs.Path(file.as_uri())
    system = path.getFileSystem(context._jsc.hadoopConfiguration())
    bus = jvm.org.apache.spark.scheduler.ReplayListenerBus()
    tracker = jvm.org.apache.spark.status.ElementTrackingStore(
        jvm.org.apache.spark.util.kvstore.InMemoryStore(), context._jsc.sc().conf()
    )
    listener = jvm.org.apache.spark.sql.execution.ui.SQLAppStatusListener(
        context._jsc.sc().conf(),
        tracker,
        False,  # noqa: FBT003 - Java has no names
    )
    bus.addListener(listener)
    stream = reader.openEventLog(path, system)
    everything = jvm.org.apache.spark.scheduler.ReplayListenerBus.SELECT_ALL_FILTER()
    assert bus.replay(stream, str(file), False, everything)  # noqa: FBT003 - likewise
    stream.close()
    store = jvm.org.apache.spark.sql.execution.ui.SQLAppStatusStore(
        tracker, jvm.scala.Option.empty()
    )
    plans = store.executionsList()
    return "\n".join(
        str(plans.apply(place).physicalPlanDescription()) for place in range(plans.size())
    )


def test_sinks_show_the_counters_while_a_session_is_enabled(said: dict[str, Any]) -> None:
    assert said["prometheus before"] == said["prometheus after"] == {}
    counts = said["prometheus"]
    assert set(counts) == {counter.name.replace(".", "_") for counter in COUNTERS}
    (block,) = said["reports"][0]["blocks"]
    run = block["run"]
    assert counts["blocks"] == 1
    assert counts["rows"] == run["rows_in"] == ROWS
    assert counts["calls_made"] == run["calls"]
    assert counts["calls_avoided"] == run["calls_avoided"]
    assert counts["calls_remembered"] == counts["lookup_requests"] == counts["quota_refused"] == 0
    assert counts["spilled"] == counts["callbacks_failed"] == 0


def test_opentelemetry_reads_them_too(said: dict[str, Any]) -> None:
    if said["telemetry"] is None:
        pytest.skip("there is no SDK of OpenTelemetry")
    first, second, again, stopped = said["telemetry"]
    assert first == second == again
    assert set(first) == {f"eddyline.{counter.name}" for counter in COUNTERS}
    assert {counter.unit for counter in COUNTERS} == {told["unit"] for told in first.values()}
    ((attributes, rows),) = first["eddyline.rows"]["values"]
    assert attributes["spark.app.id"].startswith("local-")
    blocks = [block for report in said["reports"][:3] for block in report["blocks"]]
    assert rows == sum(block["run"]["rows_in"] for block in blocks)
    assert not any(told["values"] for told in stopped.values())


def test_the_command_prints_it(
    logged: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["report", "--event-log", str(logged[0]), "--action", "0"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Action 0: count\n")
    assert "Block 1: even, third" in printed
    html, data = tmp_path / "reports.html", tmp_path / "reports.json"
    arguments = ["report", "--event-log", str(logged[0]), "--html", str(html), "--json", str(data)]
    assert main(arguments) == 0
    assert html.read_text(encoding="utf-8").count("<h1>Action ") == 5 + 1 + 2 * THREADS + 1
    written = json.loads(data.read_text(encoding="utf-8"))
    assert written["application"] == "logged"
    assert written["actions"][0]["report"] == logged[1]["reports"][0]


def test_neither_reports_nor_counters_where_settings_say_so(folder: Path) -> None:
    log, said = application(folder / "off")
    assert said["prometheus"] == {}
    assert len(said["reports"]) == 2
    assert main(["report", "--event-log", str(log)]) == 2


def test_a_later_context_begins_anew_and_may_always_show_counters(folder: Path) -> None:
    log, said = application(folder / "always")
    actions = read_event_log(log).actions
    assert [action.report.to_dict() for action in actions] == said["reports"]
    (table,) = said["reports"][1]["asked"]
    assert table["choice"].startswith("looked up: in ")
    assert not said["reports"][1]["blocks"]
    assert said["prometheus"]["rows"] == ROWS
    assert said["prometheus"]["blocks"] == 1


def test_without_an_event_log_nothing_is_listened_to(spark: SparkSession) -> None:
    eddyline.adapt(logged_application.asked(spark)).collect()
    assert registry_of(spark.sparkContext).actions is None
