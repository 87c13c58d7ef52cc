"""A script that never heard of Eddyline is adapted by one line of configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from eddyline.app.event_log import read_event_log
from tests.plugin.applications import PLUGIN, is_gone, is_json, ran

pytestmark = [pytest.mark.spark, pytest.mark.slow(60)]

SCRIPT: Final = Path(__file__).with_name("unaware.py")

Said = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """What the script has said, by name, and under "" what was said on standard error."""
    folder = tmp_path_factory.mktemp("unaware")
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri()}
    run = ran(folder, "spark-submit", str(SCRIPT), settings=PLUGIN | logged)
    assert run.returncode == 0, run.stderr
    lines = map(json.loads, filter(is_json, run.stdout.splitlines()))
    found = {line.pop("name"): line for line in lines}
    (log,) = (path for path in folder.iterdir() if path.name.startswith("eventlog"))
    return found | {"": {"stderr": run.stderr, "log": log}}


@pytest.mark.parametrize("name", ["filter", "join", "nested", "sql", "other", "nonsense"])
def test_its_queries_run_in_eddies_and_give_the_same_rows(said: Said, name: str) -> None:
    assert said[name]["equal"]
    assert said[name]["count"] > 10
    assert said[name]["eddy"] == [True, False]


def test_a_function_that_remembers_gives_the_same_rows(said: Said) -> None:
    assert said["select"]["equal"]
    assert said["select"]["count"] == 300


def test_what_adds_to_an_accumulator_of_the_script_is_left_to_spark(said: Said) -> None:
    assert said["accumulator"]["equal"]
    assert said["accumulator"]["eddy"] == [False, False]
    assert said["accumulated"]["count"] == 600
    assert "adds to an accumulator" in said[""]["stderr"]


def test_any_client_can_ask_what_happened(said: Said) -> None:
    assert said["report"]["rows"] == [2_000]
    assert "2,000 rows in" in said["report"]["text"]
    assert "even" in said["explain"]["text"]
    assert said["explain"]["found"] == {"blocks": 1, "claimable": 0, "left": 0, "dropped": 0}
    assert said["live"]["same"]
    assert said["live"]["page"] > 1_000
    assert "neither a view nor a query, but a command" in said["command"]["text"]
    assert said["still there"]["count"] == 200


def test_what_is_no_choice_is_said(said: Said) -> None:
    assert said[""]["stderr"].count("spark.eddyline.policy is not heeded") == 1


def test_sessions_and_threads_share_one_process(said: Said) -> None:
    assert said["threads"]["wrong"] == []
    assert said["threads"]["process"]["threads"] < 20
    assert said["threads"]["process"]["unanswered"] == 0
    assert said["default"]["own"]


def test_the_event_log_has_its_reports(said: Said) -> None:
    log = read_event_log(said[""]["log"])
    assert len(log.actions) > 30
    assert all(action.report.blocks for action in log.actions)
    assert "even" in str(log.actions[0].report)


def test_nothing_is_left_when_it_has_ended(said: Said) -> None:
    assert is_gone(said["threads"]["process"]["pid"])
