"""A cell that loses its worker, and whose log is compacted, puts out what one does that stays."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from eddyline.blocks.filter_block import SessionSettings
from eddyline.exchange.blobs import decoded, encoded
from eddyline.expressions import Argument, Comparison, ComparisonOperator, Expression, Literal
from eddyline.standing.engine.shared_query import SharedQuery, TimeBound, edge
from eddyline.standing.log.jobs import Job, job_of
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.query_template import QueryGroup, QueryTemplate
from eddyline.standing.tasks import cell as cell_module
from eddyline.standing.tasks.cell import Cell
from eddyline.standing.tasks.cell_state import CellState
from eddyline.standing.tasks.counts import Counts
from eddyline.standing.tasks.joining import JoiningQueries
from eddyline.standing.tasks.micro_batch import MicroBatch
from tests.properties import examples

KEY, VALUE, TIME = range(3)
TYPES = (pa.int64(), pa.int64(), pa.timestamp("us"))
JOB = Job(("r", "s"), joins=True, columns=(0, 0))
SCHEMAS = {"r": "{}", "s": "{}"}
LABEL = 7


class Store:
    """A state store of Spark's, as a cell sees it: what it does counts when it is committed."""

    def __init__(self) -> None:
        self.values: dict[str, dict[Any, Any]] = {}

    def copy(self) -> Store:
        copied = Store()
        copied.values = {name: dict(of_name) for name, of_name in self.values.items()}
        return copied

    def getMapState(self, name: str, *_: StructType) -> Any:  # noqa: ANN401, N802 - Spark's name
        held = self.values.setdefault(name, {})
        return SimpleNamespace(
            getValue=held.get,
            keys=lambda: list(held),
            updateValue=held.__setitem__,
            removeKey=lambda key: held.pop(key, None),
        )


class Watermark(int):
    """A time in microseconds where Spark gives milliseconds."""

    def __mul__(self, thousand: int) -> int:
        return int(self)


def above(least: int | None) -> Expression | None:
    if least is None:
        return None
    value = Argument(VALUE, pa.int64())
    return Comparison(ComparisonOperator.GREATER_OR_EQUAL, value, Literal(least, pa.int64()))


def template(inputs: tuple[str, ...], least: tuple[int | None, ...], width: int) -> QueryTemplate:
    """Return a query that joins streams by key, each with a window to the first."""
    return QueryTemplate(
        sql=f"{inputs} {least} {width}",
        inputs=inputs,
        query=SharedQuery(
            {number: above(one) for number, one in zip(range(len(inputs)), least, strict=False)},
            frozenset(edge((0, KEY), (n, KEY)) for n in range(1, len(inputs))),
            tuple(TimeBound(0, n, -width, width) for n in range(1, len(inputs))),
        ),
        constants=(),
        parameters=(),
        outputs=(),
        tables=frozenset(),
        functions=(),
        settings=SessionSettings("UTC"),
        used=frozenset((n, VALUE) for n in range(len(inputs))),
    )


least = st.none() | st.integers(0, 9)
templates = st.builds(
    template,
    st.sampled_from([("r", "s"), ("r", "r", "s"), ("s", "r", "s")]),
    st.tuples(least, least, least),
    st.sampled_from([5, 1000]),
)
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.none() | st.integers(0, 30)), max_size=5
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), templates, st.none() | st.integers(0, 30), st.integers(1, 3)),
        st.tuples(st.sampled_from(["drop", "pause", "resume"]), st.integers(0, 50)),
        st.tuples(st.just("batch"), rows, rows, st.sampled_from("abn"), st.booleans()),
        st.tuples(st.just("batch"), rows, rows, st.sampled_from("abn"), st.just(value=False)),
    ),
    min_size=8,
    max_size=30,
)


class World:
    """A cell that stays in one worker, and the same one that does not."""

    def __init__(
        self, registry: QueryRegistry, monkeypatch: pytest.MonkeyPatch, delay: int | None
    ) -> None:
        self.registry = registry
        self.delay = delay
        self.monkeypatch = monkeypatch
        self.streams = JoinedStreams(
            str(registry.log.directory), JOB, (TYPES, TYPES), (TIME, TIME), (), (LABEL,)
        )
        self.stores = {"stays": Store(), "moves": Store()}
        self.workers: dict[str, dict[Any, Any]] = {"stays": {}, "a": {}, "b": {}}
        self.batch = 0
        self.latest = 0
        self.results = 0

    def ran(self, whose: str, worker: str, blobs: pd.DataFrame, version: int, commit: bool) -> Any:  # noqa: ANN401, FBT001 - what it put out, and what it holds
        store = self.stores[whose].copy()
        counted: list[Any] = []
        accumulator: Any = SimpleNamespace(add=counted.append)
        cell = Cell(self.streams, accumulator, watermark=self.delay is not None)
        cell.begin(CellState(store))  # type: ignore[arg-type]  # enough of one
        micro = MicroBatch(self.batch, version, 1.0)
        self.monkeypatch.setattr(cell_module, "micro_batch", lambda: micro)
        self.monkeypatch.setattr(cell_module, "_LIVE", self.workers[worker])
        watermark = 0 if self.delay is None else max(self.latest - self.delay, 0)
        timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: Watermark(watermark))
        found: Counter[tuple[object, ...]] = Counter()
        for frame in cell.run(LABEL, iter([blobs]), timers):
            for packed in frame["results"]:
                for part in decoded(pa.py_buffer(packed)):
                    # Blobs may have their columns in different orders.
                    found.update(tuple(sorted(row.items())) for row in part.to_pylist())
        if commit:
            self.stores[whose] = store
        (counts,) = counted[0].values()
        # What the watermark has passed goes blob by blob, sooner where a blob was thinned: one
        # whose rows left have no time, at once.
        return found, counts.stored if self.delay is None else None

    def run(self, r: list[Any], s: list[Any], worker: str, *, fails: bool) -> None:
        blobs = [
            (number, encoded([batch_of(some)]).to_pybytes())
            for number, some in enumerate((r, s))
            if some
        ]
        frame = pd.DataFrame(blobs, columns=["relation", "batch"])
        version = self.registry.begin(JOB.name, self.batch, 1.0).version
        wanted = self.ran("stays", "stays", frame, version, commit=True)
        if worker == "n":
            worker = "a"
            self.workers["a"] = {}
        if fails:
            self.ran("moves", worker, frame, version, commit=False)
            worker = "ab".replace(worker, "")
        assert self.ran("moves", worker, frame, version, commit=True) == wanted
        self.results += wanted[0].total()
        self.batch += 1
        self.latest = max(self.latest, *(row[TIME] or 0 for row in [*r, *s, (0, 0, 0)]))


def batch_of(some: list[Any]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.int64()) for column in zip(*some, strict=True)]
    return pa.record_batch(
        [column.cast(kind) for column, kind in zip(columns, TYPES, strict=True)], names=list("012")
    )


def play(directory: Path, some: list[tuple[Any, ...]], every: int, delay: int | None) -> int:
    """Compare the two, batch by batch; return how many results there were."""
    registry = QueryRegistry(directory, SCHEMAS, every=every)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda _: None)
        world = World(registry, monkeypatch, delay)
        for count, step in enumerate(some):
            names = sorted(registry._numbers)
            match step:
                case "add", of, look_back, many:
                    assert job_of(of) == JOB
                    group_names = tuple(f"q{count}-{n}" for n in range(many))
                    registry.add(QueryGroup(0, group_names, of, pa.table({}), look_back))
                case "batch", r, s, worker, fails:
                    world.run(r, s, worker, fails=fails)
                case what, number if names:
                    getattr(registry, what)([names[number % len(names)]])
            assert registry._compaction is not None
            registry._compaction.close()
    registry.close()
    return world.results


# Not shrunk, which takes minutes; 25 examples find each rule that is taken out of the code.
@pytest.mark.slow(8)
@examples(25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(steps, st.integers(1, 4), st.none() | st.just(20))
def test_a_cell_that_moves(
    tmp_path_factory: pytest.TempPathFactory,
    some: list[tuple[Any, ...]],
    every: int,
    delay: int | None,
) -> None:
    directory = tmp_path_factory.mktemp("state")
    play(directory, some, every, delay)
    shutil.rmtree(directory)


def test_rows_without_a_time_go_when_they_are_left_alone(tmp_path: Path) -> None:
    """In a window they meet nothing, and what had a time has gone from their blob."""
    steps = [
        ("add", template(("s", "r", "s"), (6, 1, 9), 1000), None, 1),
        ("batch", [], [(1, 0, 21), (1, 9, None), (0, 9, 22)], "a", False),
        ("batch", [], [], "n", False),
        ("batch", [(0, 5, 25), (1, 5, 25)], [], "a", True),
        ("batch", [], [(0, 9, 26)], "b", False),
    ]
    for delay in (None, 20):
        assert play(tmp_path / str(delay), steps, 2, delay) == 1 + 3


def test_a_worker_whose_attempt_failed_thins_a_blob_that_another_has_let_go(
    tmp_path: Path,
) -> None:
    steps = [
        ("add", template(("s", "r", "s"), (6, 1, 9), 1000), None, 1),
        ("batch", [], [(1, 0, 21), (1, 9, None)], "a", False),
        ("batch", [], [(0, 9, 15)], "n", False),  # thins it: no row with a time is left
        ("batch", [], [], "a", True),  # after it has failed in a, b lets it go
        ("add", template(("s", "r", "s"), (None, None, 0), 5), 18, 3),
        ("batch", [], [], "a", False),
        ("batch", [(0, 5, 16)], [], "a", False),
    ]
    assert play(tmp_path, steps, 2, 20) == 1 + 3


def test_rows_are_looked_back_at_where_others_wanted_them(tmp_path: Path) -> None:
    pairs = template(("r", "r", "s"), (9, None, None), 1000)
    plain = template(("r", "s"), (None, None), 1000)
    steps = [
        ("add", pairs, None, 1),
        ("batch", [(0, 5, 10), (0, 9, 10)], [], "a", False),
        ("add", plain, 30, 2),  # 5 is stored for the second part of pairs only
        ("batch", [(1, 1, 10)], [], "a", False),
        ("batch", [], [(0, 0, 10)], "n", False),
    ]
    assert play(tmp_path, steps, 1, None) == 2 * 1 + 1 * 2


def test_what_looks_back_sees_what_only_queries_wanted_that_are_gone(tmp_path: Path) -> None:
    steps = [
        ("add", template(("r", "s"), (5, None), 1000), None, 1),
        ("batch", [(0, 5, 10), (0, 6, 20), (0, 1, 20)], [], "a", False),
        ("add", template(("r", "s"), (None, None), 1000), 5, 1),  # sees 6, and 5 is too early
        ("batch", [(1, 1, 10)], [], "a", False),
        ("drop", 0),
        ("batch", [(1, 1, 10)], [], "a", False),
        ("add", template(("r", "s"), (None, None), 1000), None, 1),  # sees none of them
        ("batch", [], [(0, 0, 10)], "n", False),
        ("batch", [], [(0, 0, 10)], "b", True),
    ]
    assert play(tmp_path, steps, 1, None) == 2


@pytest.mark.parametrize("moves", [False, True])
def test_what_looks_back_does_not_see_rows_that_lack_a_column(
    tmp_path: Path,
    moves: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Rows are stored without the columns that nobody needed: these are unknown, and not NULL."""
    registry = QueryRegistry(tmp_path, SCHEMAS)
    plain = replace(template(("r", "s"), (None, None), 1000), used=frozenset({(0, KEY)}))
    asking = template(("r", "s"), (None, None), 1000)  # for values of both
    streams = JoinedStreams(
        str(registry.log.directory), JOB, (TYPES, TYPES), (TIME, TIME), (), (LABEL,)
    )
    registry.add(QueryGroup(0, ("plain",), plain, pa.table({})))
    queries = JoiningQueries(streams, 0)
    assert queries.go_to(1, 0)
    lacking = batch_of([(0, 7, 10)]).select(["0", "2"])
    whole = batch_of([(0, 8, 10)])
    for number, rows in enumerate((lacking, whole)):
        queries.take((0, number), 0, rows)
    registry.add(QueryGroup(0, ("asking",), asking, pa.table({}), 100))
    if moves:
        assert queries.go_to(2, 1)
        queries.look_back()
        bounds = dict(queries.bounds)
        queries = JoiningQueries(streams, 0)
        queries.bounds |= bounds
        assert queries.go_to(2, 2)
        for number, rows in enumerate((lacking, whole)):
            queries.take((0, number), 0, rows, before=1)
    else:
        assert queries.go_to(2, 1)
        queries.look_back()
    queries.take((1, 0), 1, batch_of([(0, 1, 10)]))
    found = [row for part in queries.results(Counts()) for row in part.to_pylist()]
    registry.close()
    assert Counter(row["eddyline_query"] for row in found) == {"plain": 2, "asking": 1}
    assert [row["0_1"] for row in found if row["eddyline_query"] == "asking"] == [8]
