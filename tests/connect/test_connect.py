"""Spark Connect, end to end: a server without Eddyline, and clients in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.client_shapes import CLIENT_SHAPES, ClientShape
from tests.connect.connect_server import connect_server, lacking
from tests.planner.shapes import SHAPES

pytestmark = [
    pytest.mark.skipif(bool(lacking()), reason=f"Spark Connect's client lacks {lacking()}"),
    pytest.mark.skipif(
        MINOR < (4, 1), reason="functions over Arrow's columns came with PySpark 4.1"
    ),
    pytest.mark.slow(100),
    pytest.mark.spark,
]

ROOT: Final = Path(__file__).parents[2]

UNREACHABLE: Final = frozenset(
    {
        "common_table_expression",
        "compared_with_a_subquery",
        "exists",
        "exists_or_something_else",
        "functions_of_sql",
        "join_condition",
        "scalar_subquery",
    }
)
"""Shapes that a client cannot see into, or that only a block of joins would do."""

NO_BLOCK: Final = UNREACHABLE | {
    "arguments_that_may_throw_above_a_filter",
    "columns_added_on_the_way",
    "deterministic_beside_not",
    "guarded_division",
    "intervals",
    "timestamps",
}
"""Shapes of which classic Spark's plans have a block, and a client's have none."""

LACKING: Final = frozenset({"accumulator", "broadcast_variable"})
"""Shapes for which Spark Connect lacks something."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


def told(server: str, client: str, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what a client has told."""
    file = folder / "told.jsonl"
    environment = {**os.environ, "SPARK_REMOTE": server, "TOLD": str(file)}
    command = [sys.executable, "-m", f"tests.connect.{client}", *arguments]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def shapes(server: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    found = told(server, "shapes_client", tmp_path_factory.mktemp("shapes"))
    return {entry["shape"]: entry for entry in found}


@pytest.mark.parametrize("name", [shape.name for shape in SHAPES])
def test_shapes(name: str, shapes: Mapping[str, Any]) -> None:
    entry = shapes[name]
    assert ("lacking" in entry) == (name in LACKING)
    if name in LACKING:
        return
    assert entry["same"]
    expected = next(shape for shape in SHAPES if shape.name == name).blocks
    assert bool(entry["blocks"]) == (bool(expected) and name not in NO_BLOCK)
    if entry["blocks"] and entry["rows"]:
        assert entry["planned"]
        assert all(entry["reported"])
    if name in UNREACHABLE:
        assert any("the plug-in on the server would" in left for left in entry["left"])


@pytest.mark.parametrize("shape", CLIENT_SHAPES, ids=lambda shape: shape.name)
def test_shapes_of_a_client(shape: ClientShape, shapes: Mapping[str, Any]) -> None:
    entry = shapes[shape.name]
    plain, adapted = entry["rows"]
    if shape.raises:
        assert shape.raises in plain
        assert shape.raises in adapted
    else:
        assert adapted == plain
        assert len(plain) > 0
        assert isinstance(plain, list)
    assert entry["schemas"][0] == entry["schemas"][1]
    for text in shape.told:
        assert text in entry["explained"]
    for text in shape.untold:
        assert text not in entry["explained"]


@pytest.fixture(scope="module")
def verbs(server: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    found = told(server, "verbs_client", tmp_path_factory.mktemp("verbs"))
    for entry in found:
        assert "failed" not in entry, entry["failed"]
    return {entry.pop("scenario"): entry for entry in found}


def test_a_report_covers_actions(verbs: Mapping[str, Any]) -> None:
    entry = verbs["report"]
    assert entry["before"]
    assert entry["rows"] == [1000, 100, 100]
    assert entry["twice"] == 2000
    assert sum(entry["seen"]) < 2000
    assert entry["text"]


def test_metrics_of_ours_do_not_reach_the_user(verbs: Mapping[str, Any]) -> None:
    assert "observed_metrics" not in verbs["report"]["attributes"]


def test_what_is_derived_from_an_adapted_frame_is_known(verbs: Mapping[str, Any]) -> None:
    known = {"explained": True, "left": False, "reported": True, "again": True}
    assert verbs["derived"] == {"rows": 49, **known}


def test_an_error_counts_where_all_others_accept_the_row(verbs: Mapping[str, Any]) -> None:
    assert verbs["errors"] == {"guarded": 500, "raised": True, "frames": False}


def test_spark_filters_between_kinds_of_functions(verbs: Mapping[str, Any]) -> None:
    assert verbs["kinds"] == {"same": True, "calls": [3000, 1000]}


def test_what_is_left_keeps_its_place_among_kinds(verbs: Mapping[str, Any]) -> None:
    expected = [["pickled_third(id)", "even(id)"]]
    assert verbs["left_in_order"] == {"same": True, "first": expected, "last": []}


def test_all_queries_of_a_session(verbs: Mapping[str, Any]) -> None:
    entry = verbs["enabled"]
    assert entry["same"]
    assert entry["adapted"] == [True, 1]  # in the block of before, and in no other
    assert entry["rows"] == 1000
    assert entry["shown"] == 8
    assert entry["written"] == 100
    assert entry["every"] >= 2000
    assert entry["hooks"] == [0, 1, True, 0]


def test_what_has_ended_does_not_come_back(verbs: Mapping[str, Any]) -> None:
    entry = verbs["ended_out_of_order"]
    assert entry == {"at_work": [[1, 1], [0, 0]], "inside": 1, "after": 0}


def test_what_is_cached_is_read_from_there(verbs: Mapping[str, Any]) -> None:
    above = [["pickled_third(id)", "fails_on_odd(id)"]]
    assert verbs["cached"] == {"left": True, "above": above, "again": True}


def test_workers_get_the_package_from_the_client(verbs: Mapping[str, Any]) -> None:
    assert ".zip/eddyline/" in verbs["sent"]["where"]
    assert not any("eddyline" in place for place in verbs["sent"]["path"])


def test_workers_freeze_their_modules_between_tasks(
    verbs: Mapping[str, Any],
) -> None:
    assert verbs["sent"]["frozen"]


def test_functions_of_select_lists_remember(verbs: Mapping[str, Any]) -> None:
    entry = verbs["remembering"]
    assert entry["same"] == [True, True]
    assert entry["schemas"] == [True, True]
    assert entry["told"] == [[600, True]] * 3
    assert entry["forgetful"]


def test_filters_on_added_columns_are_decided_where_these_are_made(
    verbs: Mapping[str, Any],
) -> None:
    entry = verbs["added_columns"]
    assert entry["same"]
    assert entry["rows"] == 100
    assert entry["predicates"][0] == 3
    assert entry["reported"]
    plain, adapted, limited = entry["calls"]
    assert adapted < plain  # which calls the function once more for the column
    assert limited < 500  # Spark pushes a filter from above below the block


def test_functions_are_called_less_often_than_by_plain_spark(verbs: Mapping[str, Any]) -> None:
    entry = verbs["fewer_calls"]
    assert entry["handed"] == [True, 3000, 2000, 2000]
    assert entry["late"] == [True, 2000, 10, 10]
    assert entry["first"]  # the rows are found before a function is called
    same, plain, remembering, forgetting = entry["alone"]
    assert same
    assert plain == forgetting == 2000
    assert remembering < 2000


def test_concurrent_functions_are_called_by_the_tasks(verbs: Mapping[str, Any]) -> None:
    entry = verbs["concurrent"]
    assert all(entry["same"]), entry["same"]
    filtering, selecting, adding = entry["calls"]
    assert filtering <= 20 * 2  # once in each of two processes, which keep answers for the job
    assert selecting <= 20 * 4
    assert adding <= 20 * 4
    assert entry["blocks"] == 1
    assert entry["limits"] == [3, 3]
    assert entry["explained"]
    assert entry["misplaced"].startswith("FunctionPlaceError")
    assert "eddyline" in entry["alone"]
    assert entry["rate"].startswith("ConnectNotSupportedError: rate cannot be kept")
    assert "FunctionFailedError" in entry["raised"]
    assert "no " in entry["raised"]


def test_later_blocks_begin_with_what_was_learned(verbs: Mapping[str, Any]) -> None:
    assert verbs["learning"] == {"kept": True, "known": True, "priors": [0.1, 0.3]}


def test_defaults_are_those_of_the_server(verbs: Mapping[str, Any]) -> None:
    assert verbs["settings"] == {"bytes": [500, 500], "blocks": 1, "overflow": [True, True]}


def test_progress_is_shown_while_actions_run(verbs: Mapping[str, Any]) -> None:
    entry = verbs["progress"]
    assert "tasks" in entry["shown"]
    assert entry["handlers"] == 0


def test_what_cannot_be_done_is_said(verbs: Mapping[str, Any]) -> None:
    entry = verbs["refused"]
    assert entry["policy"].startswith("UnknownPolicyError")
    assert entry["seed"].startswith("ValueError")
    assert entry["learned"].startswith("TypeError")
    for verb in ("stage", "keep", "watch"):
        assert entry[verb].startswith("ConnectNotSupportedError")
    assert entry["pinned"] == "True"
    assert entry["joins"].startswith("ValueError: joins is one of")
    assert entry["memory"].startswith("ValueError: memory is a size")
    wanted = "TypeError: A {} of Spark Connect is expected, not pyspark.sql.connect.{}"
    assert entry["no frame"] == wanted.format("DataFrame", "group.GroupedData.")
    assert entry["no column"] == wanted.format("DataFrame", "column.Column.")
    for verb in ("no session", "no progress"):
        assert entry[verb] == wanted.format("SparkSession", "dataframe.DataFrame.")
    for what in ("stopped frame", "stopped session"):
        assert entry[what].startswith("RuntimeError: This Spark session has been stopped")
    assert [entry["report"], entry["disable"]] == ["", ""]  # neither needs a server
