"""The durable registry: names, versions, one writer, and files that were cut off."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructType

from eddyline.errors import StateError, UnknownQueryError
from eddyline.expressions import And, Comparison, ComparisonOperator, Literal
from eddyline.standing.engine.selections import split
from eddyline.standing.log.batch_log import KEPT, BatchLog, BatchRun
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.live_queries import LiveQueries
from eddyline.standing.log.query_constants import ConstantError, constants_of, queries_of
from eddyline.standing.markers import markers_in, with_markers
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.query_template import QueryGroup
from tests.standing.groups import SCHEMAS, TEMPLATE, VALUE, group


def names_of(registry: QueryRegistry) -> dict[str, int]:
    return {query.name: query.number for query in registry.running()}


def test_queries_come_and_go_and_are_there_again(tmp_path: Path) -> None:
    registry = QueryRegistry(tmp_path, SCHEMAS)
    registry.add(group("a", "b", "c"))
    registry.drop(["b"])
    registry.add(group("d"), instead=["a"])
    registry.pause(["c"], "it failed")
    assert names_of(registry) == {"d": 3}
    assert [(query.name, why) for query, why in registry.paused()] == [("c", "it failed")]
    registry.resume(["c", "d"])
    assert names_of(registry) == {"d": 3, "c": 4}  # resumed: it has not seen all
    assert registry.version == 5
    assert {query.name for query in registry.at(1)} == {"a", "b", "c"}
    registry.close()
    again = QueryRegistry(tmp_path, SCHEMAS)
    assert names_of(again) == {"d": 3, "c": 4}
    again.add(group("e"))
    assert names_of(again)["e"] == 5
    again.close()


def test_what_failed_is_paused_and_not_what_has_its_name_by_now(tmp_path: Path) -> None:
    registry = QueryRegistry(tmp_path, SCHEMAS)
    registry.add(group("a", "b", "c", "d", "e"))
    registry.add(group("b"), instead=["b"])
    registry.pause(["c"])
    registry.drop(["d"])
    version = registry.version
    told = registry.pause_failed(dict.fromkeys(range(5), "it failed"))
    assert told == {"a": "it failed", "e": "it failed"}
    assert registry.version == version + 1  # all of a micro-batch at once
    assert names_of(registry) == {"b": 5}
    assert {query.name: why for query, why in registry.paused()} == {"c": "", **told}
    registry.resume(["a"])
    assert registry.pause_failed({0: "again"}) == {}  # its micro-batch has run once more
    assert registry.version == version + 2
    registry.close()


def test_who_is_named_twice_is_meant_once(tmp_path: Path) -> None:
    registry = QueryRegistry(tmp_path, SCHEMAS)
    registry.add(group("a", "b"))
    registry.pause(["a", "a"])
    registry.resume(["a", "a"])
    assert names_of(registry) == {"b": 1, "a": 2}
    registry.drop(["a", "a"])
    registry.drop([])
    registry.close()
    again = QueryRegistry(tmp_path, SCHEMAS)
    assert (names_of(again), again.version) == ({"b": 1}, 4)
    again.close()


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    registry = QueryRegistry(tmp_path, SCHEMAS)
    registry.add(group("a", "b"))
    with pytest.raises(ValueError, match="'b' already"):
        registry.add(group("c", "b"))
    with pytest.raises(UnknownQueryError, match="'x', 'y'"):
        registry.drop(["a", "x", "y"])
    with pytest.raises(UnknownQueryError):
        registry.add(group("c"), instead=["x"])
    assert (names_of(registry), registry.version) == ({"a": 0, "b": 1}, 1)
    with pytest.raises(StateError, match="in use"):
        QueryRegistry(tmp_path, SCHEMAS)
    registry.close()
    with pytest.raises(StateError, match="other is new"):
        QueryRegistry(tmp_path, SCHEMAS | {"other": SCHEMAS["events"]})
    with pytest.raises(StateError, match="events has other columns"):
        QueryRegistry(tmp_path, {"events": StructType().add("id", IntegerType()).json()})


def damaged(tmp_path: Path, version: int) -> QueryRegistry:
    """Open a registry of three versions of which one was cut off."""
    registry = QueryRegistry(tmp_path, SCHEMAS)
    for name in "abc":
        registry.add(group(name))
    registry.batches("job").run(0, BatchRun(2))
    registry.close()
    path = next((tmp_path / "queries").glob(f"*{version}.change"))
    path.write_bytes(path.read_bytes()[:-20])
    return QueryRegistry(tmp_path, SCHEMAS)


def test_a_change_that_was_cut_off_never_was(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cut off before any batch ran it"):
        registry = damaged(tmp_path, 3)
    assert names_of(registry) == {"a": 0, "b": 1}
    registry.add(group("d"))
    assert names_of(registry)["d"] == 2
    registry.close()


@pytest.mark.parametrize("version", [1, 2])
def test_what_batches_have_run_cannot_be_left_out(tmp_path: Path, version: int) -> None:
    with pytest.raises(StateError, match=r"damaged.*Restore it"):
        damaged(tmp_path, version)


def test_the_last_change_was_run_by_a_batch(tmp_path: Path) -> None:
    registry = QueryRegistry(tmp_path, SCHEMAS)
    registry.add(group("a"))
    registry.batches("job").run(0, BatchRun(1))
    registry.close()
    (path,) = (tmp_path / "queries").glob("*.change")
    path.write_bytes(b"")
    with pytest.raises(StateError, match="was cut off: batches have run"):
        QueryRegistry(tmp_path, SCHEMAS)
    path.unlink()
    registry = QueryRegistry(tmp_path / "other", SCHEMAS)
    for name in "ab":
        registry.add(group(name))
    registry.close()
    (tmp_path / "other" / "queries" / "0000000001.change").unlink()
    with pytest.raises(StateError, match="is missing"):
        QueryRegistry(tmp_path / "other", SCHEMAS)


def test_a_batch_runs_the_version_that_it_ran_before(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    three, seven = BatchRun(3, 0.5), BatchRun(7)
    assert [log.run(0, three), log.run(1, three), log.run(1, seven)] == [three] * 3
    assert BatchLog(tmp_path).run(2, seven) == seven
    assert (log.known(9), log.newest()) == (None, 7)
    log.run(KEPT, BatchRun(8))
    assert log.known(0) is None
    assert log.known(1) == three


def test_versions_only_go_on(tmp_path: Path) -> None:
    registry = QueryRegistry(tmp_path, SCHEMAS)
    registry.add(group("a", "b"))
    registry.drop(["a"])
    live = LiveQueries()
    assert [query.name for query in live.go_to(1, registry.log).came] == ["a", "b"]
    difference = live.go_to(2, registry.log)
    assert (difference.came, difference.went) == ((), (0,))
    with pytest.raises(ValueError, match="version 1 is before 2"):
        live.go_to(1, registry.log)
    registry.close()


def test_constants_are_put_in() -> None:
    three = group("a", "b", "c")
    found = list(queries_of(three, TEMPLATE.query, [0, 2]))
    alone = [
        And((Comparison(ComparisonOperator.GREATER_OR_EQUAL, VALUE, Literal(n, pa.int64())),))
        for n in (0, 4)
    ]
    assert [query.selections[0] for query in found] == [split(predicate) for predicate in alone]
    huge = QueryGroup(0, ("a", "b"), TEMPLATE, pa.table({"least": [1, 1 << 62]}))
    with pytest.raises(ConstantError) as raised:
        constants_of(huge)
    assert raised.value.position == 1


def test_markers() -> None:
    sql = """SELECT ':no', `:no`, a::INT, ":no" -- :no
             /* :no */ FROM t WHERE a = :one AND b > :two1 AND c[:one] = ':no\\':no'"""
    assert markers_in(sql) == ("one", "two1")
    assert with_markers(":a+:b", lambda name: f"<{name}>") == "<a>+<b>"


def test_a_log_that_is_made_anew_is_another_one(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "queries # 1")
    log.create()
    label = log.label
    log.create()
    assert log.label == label
    assert ChangeLog.labelled(label).directory == log.directory
    shutil.rmtree(log.directory)
    log.create()  # workers that knew the former know nothing of this one
    assert log.label != label
