"""Tasks of blocks that fail: Spark tries again, and nothing is missing or there twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.planner.joins.failing_tasks import FAILURES, LARGE, SMALL, Failure

pytestmark = pytest.mark.slow(25)

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the blocks; in a session of its own, all of them in one."""
    folder = tmp_path_factory.mktemp("failing")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.planner.joins.failing_tasks", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_a_task_that_fails_once_changes_no_rows(outcomes: dict[str, Any], failure: Failure) -> None:
    outcome = outcomes[failure.name]
    assert (outcome["missing"], outcome["extra"]) == (0, 0)
    assert ("one shuffle" in outcome["layout"]) == failure.shuffled
    # It failed where it was meant to: on the map side, or where rows are joined.
    assert (outcome["failed_in"] < outcome["joined_in"]) == failure.alone


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_what_a_failed_task_did_is_not_counted_twice(
    outcomes: dict[str, Any], failure: Failure
) -> None:
    outcome = outcomes[failure.name]
    assert outcome["read"] == [SMALL, LARGE]
    assert outcome["rows_out"] == outcome["wanted"]


def test_a_worker_that_dies_in_the_middle_of_a_filter_changes_nothing(
    outcomes: dict[str, Any],
) -> None:
    outcome = outcomes["filter"]
    assert outcome["adapted"]
    assert outcome["died"]
    assert outcome["found"] == outcome["wanted"]


def test_a_full_disk_says_what_to_do_and_leaves_nothing(outcomes: dict[str, Any]) -> None:
    outcome = outcomes["full disk"]
    assert "SpillError: a join needs more than its memory of 65,536 bytes" in outcome["error"]
    assert "cannot be spilled to" in outcome["error"]
    assert "memory=" in outcome["error"]
    assert "spark.local.dir" in outcome["error"]
    assert outcome["left"] == []
