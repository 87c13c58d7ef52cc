"""Snapshots of the log of queries: the same queries, within reach, and nothing of others."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from eddyline.errors import StateError
from eddyline.standing.derivation import DerivedColumns, DerivedPart, DerivedSource
from eddyline.standing.derived_column import DerivedColumn
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.changes import Added
from eddyline.standing.log.files import DamagedFileError, write_new
from eddyline.standing.log.live_queries import LiveQueries, StandingQuery
from eddyline.standing.log.snapshots import Snapshot
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.query_template import QueryGroup
from tests.properties import examples
from tests.standing.groups import SCHEMAS, TEMPLATE, group


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def described(live: LiveQueries) -> object:
    """Return all that is to be known of queries."""

    def one(query: StandingQuery) -> tuple[Any, ...]:
        constants = query.group.parameters["least"][query.position].as_py()
        first, template = query.group.first, query.template.sql
        return query.number, query.name, first, template, constants, query.look_back

    running = [one(query) for query in live.running.values()]
    paused = [(one(query), reason) for query, reason in live.paused.values()]
    assert list(live.running) == [number for number, *_ in running]
    assert list(live.paused) == [query[0] for query, _ in paused]
    return live.version, live.next_number, running, paused


def settled(registry: QueryRegistry) -> None:
    """Wait until a registry has compacted what there was to compact."""
    assert registry._compaction is not None
    registry._compaction.close()


changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 4), st.none() | st.integers(0, 9)),
        st.tuples(st.sampled_from(["drop", "pause", "resume", "replace", "run"]), st.integers(0)),
        st.tuples(st.just("fail"), st.integers(0)),
    ),
    min_size=5,
    max_size=40,
)


def change(registry: QueryRegistry, step: tuple[Any, ...], count: int) -> None:
    """Do one thing to a registry."""
    names = sorted(registry._numbers)
    match step:
        case "add", many, look_back:
            registry.add(group(*(f"q{count}-{n}" for n in range(many)), look_back=look_back))
        case "run", _:
            registry.begin("job", count, 1.0)
        case _, _ if not names:
            return
        case "replace", number:
            name = names[number % len(names)]
            registry.add(group(name), instead=[name])
        case "fail", number:
            registry.pause([names[number % len(names)]], "it failed")
        case what, number:
            some = [names[number % len(names)], names[number // 7 % len(names)]]
            getattr(registry, what)(some)


@examples(150)
@given(changes, st.integers(1, 6))
def test_a_history_by_way_of_snapshots_is_the_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]], every: int
) -> None:
    directory = tmp_path_factory.mktemp("state")
    registry = QueryRegistry(directory, SCHEMAS, every=every)
    known = {0: described(registry._live)}
    follower = LiveQueries()  # as in a worker that has every third batch
    for count, step in enumerate(steps):
        change(registry, step, count)
        settled(registry)
        known[registry.version] = described(registry._live)
        if count % 3 == 0:
            before = set(follower.running)
            difference = follower.go_to(registry.version, registry.log)
            assert described(follower) == known[registry.version]
            assert {query.number for query in difference.came} == set(follower.running) - before
            assert set(difference.went) == before - set(follower.running)
    last = registry.version
    needed = sorted({*registry.batches("job").versions(), last})
    registry.close()
    steady = LiveQueries()
    for version in needed:
        steady.go_to(version, registry.log)
        anew = LiveQueries()
        anew.go_to(version, registry.log)
        assert described(anew) == described(steady) == known[version]
    assert len(registry.log.snapshots()) <= len(needed) + 2
    assert len(registry.log.changes()) <= every * (len(needed) + 2)
    again = QueryRegistry(directory, SCHEMAS, every=every)
    assert described(again._live) == known[last]
    again.close()
    shutil.rmtree(directory)


def filled(directory: Path, versions: int, every: int) -> QueryRegistry:
    """Return a registry in which a query comes and goes, beside one that stays."""
    registry = QueryRegistry(directory, SCHEMAS, every=every)
    registry.add(group("stays"))
    for number in range(1, versions, 2):
        registry.add(group(f"secret-{number}"))
        registry.drop([f"secret-{number}"])
        settled(registry)
    return registry


def more(registry: QueryRegistry, queries: int, name: str = "more") -> None:
    """Add queries, one by one."""
    for number in range(queries):
        registry.add(group(f"{name}-{number}"))
        settled(registry)


def test_what_was_dropped_is_gone_from_the_disk(tmp_path: Path) -> None:
    registry = filled(tmp_path, 201, every=10)
    files = list((tmp_path / "queries").iterdir())
    assert len(files) <= 2 + 2 * 10 + 2
    content = b"".join(path.read_bytes() for path in files)
    assert b"secret-101" not in content
    assert b"stays" in content
    registry.close()


def test_a_group_keeps_those_of_its_queries_that_stand() -> None:
    live = LiveQueries()
    many = group(*(f"query-{n}" for n in range(100)))
    live.take((Added(many),))
    for number in range(100):
        if number != 70:
            del live.running[number]
    snapshot = live.snapshot()
    assert b"query-71" not in snapshot.packed()
    (kept,) = Snapshot.unpacked(snapshot.packed()).groups
    assert kept.parameters.to_pydict() == {"least": [70]}
    assert (kept.names, kept.first) == (("query-70",), many.first)


def test_a_single_query_has_no_parameters() -> None:
    live = LiveQueries()
    live.take((Added(QueryGroup(0, ("one",), TEMPLATE, pa.table({}))),))
    assert live.snapshot().groups[0].names == ("one",)


def test_what_batches_have_run_stays_within_reach(tmp_path: Path) -> None:
    registry = filled(tmp_path, 24, every=3)
    assert registry.begin("job", 0, 1.0).version == 25
    more(registry, 40)
    assert registry.begin("job", 0, 1.0).version == 25
    assert [query.name for query in registry.at(25)] == ["stays"]
    assert len(registry.log.changes()) <= 12
    with pytest.raises(StateError, match="version 40 cannot be read"):
        registry.at(40)  # which no batch has run
    registry.close()


class Racing(ChangeLog):
    """A log that is compacted whenever a file of it is about to be read."""

    def __init__(self, registry: QueryRegistry, version: int, left: int) -> None:
        super().__init__(registry.log.directory)
        self._registry, self._version, self._left = registry, version, left

    def _compact(self) -> None:
        if not self._left or max(self.snapshots()) >= self._version:
            return
        self._left -= 1
        live = LiveQueries()
        live.go_to(max(self.snapshots()) + 3, self._registry.log)
        self.write_snapshot(live.snapshot())
        for version in self.snapshots()[:-1]:
            self.remove_snapshot(version)
        for version in range(live.version + 1):
            self.remove(version)

    def read(self, version: int) -> Any:  # noqa: ANN401 - as the log
        self._compact()
        return super().read(version)

    def read_snapshot(self, version: int) -> Snapshot:
        self._compact()
        return super().read_snapshot(version)


@pytest.mark.parametrize("left", range(1, 8))
@pytest.mark.parametrize("start", [0, 40])
def test_a_log_is_compacted_while_it_is_read(tmp_path: Path, left: int, start: int) -> None:
    registry = filled(tmp_path, 61, every=1000)
    before = LiveQueries()
    before.go_to(5, registry.log)
    registry.log.write_snapshot(before.snapshot())
    live = LiveQueries()
    live.go_to(start, registry.log)
    wanted = described(registry._live)
    live.go_to(registry.version, Racing(registry, registry.version - 3, left))
    assert described(live) == wanted
    registry.close()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def snapshots_in(directory: Path) -> list[Path]:
    return sorted((directory / "queries").glob("*.snapshot"))


def test_a_snapshot_that_was_cut_off(tmp_path: Path) -> None:
    registry = filled(tmp_path, 50, every=10)
    wanted = described(registry._live)
    registry.close()
    cut(snapshots_in(tmp_path)[-1])
    with pytest.warns(UserWarning, match="read from what was there before"):
        registry = QueryRegistry(tmp_path, SCHEMAS, every=10)
    assert described(registry._live) == wanted
    registry.close()
    for path in snapshots_in(tmp_path):
        cut(path)
    for _ in range(2):  # it is an error again, not a directory without queries
        with pytest.raises(StateError, match=r"was cut off.*what it replaced is gone. Restore it"):
            QueryRegistry(tmp_path, SCHEMAS)


def test_what_a_damaged_snapshot_replaces_is_not_removed(tmp_path: Path) -> None:
    registry = filled(tmp_path, 40, every=10)
    cut(snapshots_in(tmp_path)[-1])
    with pytest.warns(UserWarning, match="is damaged.*is not used"):
        more(registry, 10)
    wanted = described(registry._live)
    registry.close()
    cut(snapshots_in(tmp_path)[-1])
    with pytest.warns(UserWarning, match="before it"):
        registry = QueryRegistry(tmp_path, SCHEMAS)
    assert described(registry._live) == wanted
    registry.close()


def test_a_disk_that_is_full_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_log: ChangeLog, _snapshot: Snapshot) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ChangeLog, "write_snapshot", full)
    with pytest.warns(UserWarning, match="could not be compacted.*No space left"):
        registry = filled(tmp_path, 20, every=10)
    assert len(registry.log.changes()) == registry.version
    registry.close()


def test_no_batch_begins_while_files_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = filled(tmp_path, 10, every=1000)
    ran: list[int] = []
    real = QueryRegistry.version.fget  # type: ignore[attr-defined]  # a property

    def overtaken(self: QueryRegistry) -> int:
        """Read the version, and only then let others come and be compacted."""
        found: int = real(self)
        if not ran:
            ran.append(found)
            for number in range(8):
                self.add(group(f"more-{number}"))
        return found

    registry.close()
    registry = QueryRegistry(tmp_path, SCHEMAS, every=1)
    settled(registry)
    monkeypatch.setattr(QueryRegistry, "version", property(overtaken))
    run = registry.begin("job", 0, 1.0)
    settled(registry)
    more(registry, 8, "still")
    assert [query.name for query in registry.at(run.version)] == ["stays"]
    registry.close()


def test_what_a_killed_writer_had_begun_is_removed(tmp_path: Path) -> None:
    filled(tmp_path, 3, every=1000).close()
    begun = tmp_path / "queries" / ".0000000004.change.123"
    begun.write_bytes(b"eddy")
    registry = QueryRegistry(tmp_path, SCHEMAS)
    assert not begun.exists()
    assert registry.version == 3
    registry.close()


def test_a_batch_whose_version_is_not_known_any_more(tmp_path: Path) -> None:
    registry = filled(tmp_path, 4, every=2)
    registry.begin("job", 0, 1.0)
    registry.close()
    cut(tmp_path / "jobs" / "job" / "batches" / "0000000000")
    registry = QueryRegistry(tmp_path, SCHEMAS, every=2)
    with pytest.raises(StateError, match=r"queries batch 0 of the job job has run\. Restore"):
        registry.begin("job", 0, 1.0)
    with pytest.warns(UserWarning, match="could not be compacted"):
        more(registry, 6)
    registry.close()
    kept = registry.log.changes()
    assert kept == list(range(kept[0], 12))  # nothing was removed since
    for path in snapshots_in(tmp_path)[1:]:
        path.unlink()
    cut(tmp_path / "queries" / "0000000011.change")
    with pytest.raises(StateError, match=r"batches.0000000000 is damaged.*Restore it"):
        QueryRegistry(tmp_path, SCHEMAS)  # a batch may have run it


def test_streams_that_were_changed_by_hand(tmp_path: Path) -> None:
    QueryRegistry(tmp_path, SCHEMAS).close()
    path = tmp_path / "streams.json"
    path.write_bytes(path.read_bytes().replace(b"struct", b"strict"))
    with pytest.raises(StateError, match=r"streams.json is damaged"):
        QueryRegistry(tmp_path, SCHEMAS)
    cut(path)
    with pytest.raises(StateError, match=r"streams.json is damaged"):
        QueryRegistry(tmp_path, SCHEMAS)


def test_files_written_by_another_version(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    of_others = [b"no pickle", b"cnowhere\nNothing\n.", pickle.dumps([pickle.dumps("a text")])]
    for number, content in enumerate(of_others, 1):
        write_new(tmp_path / f"{number:010}.snapshot", content)
        with pytest.raises(DamagedFileError, match="another version of Eddyline"):
            log.read_snapshot(number)


def test_what_was_written_before_there_were_derived_columns_is_read(tmp_path: Path) -> None:
    snapshot = LiveQueries().snapshot()
    state: Any = snapshot.__getstate__()  # a list, as dataclasses have it
    *before, following = state
    assert following == {}
    read = object.__new__(Snapshot)
    read.__setstate__(list(before))
    assert read == snapshot
    template = copy.copy(TEMPLATE)
    del template.__dict__["derived"]  # as it was pickled
    log = ChangeLog(tmp_path)
    log.create()
    log.append(1, (Added(replace(group("q"), template=template)),))
    live = LiveQueries()
    live.go_to(1, log)
    assert [query.template.derived for query in live.running.values()] == [()]
    assert live.next_columns == {}


def test_the_numbers_of_derived_columns_are_not_given_again(tmp_path: Path) -> None:
    def asking(name: str, number: int) -> QueryGroup:
        column = DerivedColumn("events", number, f"key {number}", '"string"', "lower(text)")
        return replace(group(name), template=replace(TEMPLATE, derived=(column,)))

    schemas = {"events": StructType.fromJson(json.loads(SCHEMAS["events"]))}
    registry = QueryRegistry(tmp_path, SCHEMAS, every=2)
    registry.add(asking("one", 5))
    registry.add(asking("two", 7))
    registry.drop(["two"])
    for number in range(4):
        registry.add(group(f"q{number}"))
    settled(registry)
    registry.close()
    registry = QueryRegistry(tmp_path, SCHEMAS, every=2)
    assert registry.log.snapshots()
    columns = DerivedColumns(schemas)
    queries = registry.running()
    columns.take((query.template for query in queries), registry.next_columns())
    source = DerivedSource(cast("Any", None), (), DerivedPart.VALUE, "key")
    numbers = [
        columns.column("events", key, '"string"', "lower(text)", source).number
        for key in ("key 5", "key 7", "key 9", "key 9")
    ]
    registry.close()
    assert numbers == [5, 8, 9, 10]  # what nobody asks for is forgotten at once
