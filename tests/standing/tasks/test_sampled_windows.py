"""Windows that have lost events, from the tasks that drop them to the results: without Spark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

from eddyline.blocks.filter_block import SessionSettings
from eddyline.engine.join_graph import Place
from eddyline.exchange.blobs import unpacked
from eddyline.expressions import Argument, Case, Comparison, ComparisonOperator, Expression, Literal
from eddyline.standing.engine.aggregation.aggregate_functions import Aggregate, AggregateFunction
from eddyline.standing.engine.aggregation.grouping import Aggregation, Grouping
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.engine.shared_query import SharedQuery, TimeBound, edge
from eddyline.standing.log.engine_inputs import (
    aggregated_column,
    aggregation_of,
    aggregations_in,
)
from eddyline.standing.log.jobs import Job, job_of
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.query_template import (
    AggregatedRows,
    QueryGroup,
    QueryTemplate,
    argument_number,
)
from eddyline.standing.tasks import cell as cell_module
from eddyline.standing.tasks import dealing as dealing_module
from eddyline.standing.tasks import dropped_groups
from eddyline.standing.tasks import putting_out as putting_out_module
from eddyline.standing.tasks.cell import Cell
from eddyline.standing.tasks.cell_state import CellState
from eddyline.standing.tasks.counts import Counts
from eddyline.standing.tasks.dealing import Dealing
from eddyline.standing.tasks.micro_batch import MicroBatch
from eddyline.standing.tasks.putting_out import PuttingOut
from eddyline.standing.tasks.sampled_rows import SAMPLE, SAMPLE_TYPE
from eddyline.standing.tasks.selecting import LAYOUT, QUERY
from tests.standing.tasks.test_standing_cells import Store, Watermark

SYMBOL, VOLUME, PRICE, TIME = range(4)
TYPES = (pa.string(), pa.int64(), pa.float64(), pa.timestamp("us"))
LABELS = (7, 8)

LONG, DOUBLE = pa.int64(), pa.float64()
_TIMESTAMP = {"name": "", "type": "timestamp_ntz", "nullable": True, "metadata": {}}
WINDOW_TYPE = json.dumps(
    {"type": "struct", "fields": [_TIMESTAMP | {"name": name} for name in ("start", "end")]}
)

SECOND = 1_000_000
MINUTE = 60 * SECOND
A_WINDOW = 10_000
"""Events a minute."""

Found = dict[tuple[Any, ...], dict[str, Any]]
"""What there is of each window, by its start and its group: aggregates by name, and ``sample``."""


def column(number: int, stream: int = 0) -> Argument:
    return Argument(argument_number(Place(stream, number)), TYPES[number])


def above(number: int, least: float) -> Expression:
    kind = TYPES[number]
    return Comparison(
        ComparisonOperator.GREATER, Argument(number, kind), Literal(kind_of(kind)(least), kind)
    )


def kind_of(kind: pa.DataType) -> Callable[[float], Any]:
    return int if kind == LONG else float


def aggregate(function: str, argument: Expression | None, kind: pa.DataType) -> Aggregate:
    return Aggregate(AggregateFunction(function), argument, kind)


COUNT = aggregate("count", None, LONG)
SUM = aggregate("sum", column(VOLUME), LONG)
MEAN = aggregate("avg", column(PRICE), DOUBLE)
LEAST = aggregate("min", column(PRICE), DOUBLE)
MOST = aggregate("max", column(SYMBOL), pa.string())

_JSON = {LONG: '"long"', DOUBLE: '"double"', pa.string(): '"string"'}


def template(
    aggregates: dict[str, Aggregate],
    *,
    window: TimeWindow = TimeWindow(MINUTE, MINUTE),  # noqa: B008 - frozen
    keys: Sequence[int] = (),
    where: Expression | None = None,
    having: Expression | None = None,
    joined: int | None = None,
) -> QueryTemplate:
    """A query over one stream, or over two that are ``joined`` within so many microseconds."""
    grouping = Grouping(window, Place(0, TIME), tuple(map(column, keys)), joined or 0)
    kinds = [TYPES[key] for key in keys] + [each.type for each in aggregates.values()]
    inputs = ("trades",) if joined is None else ("trades", "quotes")
    query = SharedQuery(
        {number: where if number == 0 else None for number in range(len(inputs))},
        frozenset() if joined is None else frozenset([edge((0, SYMBOL), (1, SYMBOL))]),
        () if joined is None else (TimeBound(0, 1, 0, joined),),
    )
    return QueryTemplate(
        sql=f"{aggregates} {window} {keys} {where} {having} {joined}",
        inputs=inputs,
        query=query,
        constants=(),
        parameters=(),
        outputs=(),
        tables=frozenset(),
        functions=(),
        settings=SessionSettings("UTC"),
        used=frozenset((0, number) for number in range(len(TYPES))),
        aggregated=AggregatedRows(
            Aggregation(grouping, tuple(aggregates.values())),
            having,
            (WINDOW_TYPE, *(_JSON[kind] for kind in kinds)),
            tuple((name,) for name in aggregates),
        ),
    )


@dataclass
class World:
    """A job of standing queries, batch by batch, and what it has put out."""

    registry: QueryRegistry
    monkeypatch: pytest.MonkeyPatch
    job: Job
    batch: int = 0
    latest: int = 0
    stores: list[Store] = field(default_factory=lambda: [Store() for _ in LABELS])
    rows: list[dict[str, Any]] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        streams = len(self.job.streams)
        self.streams = JoinedStreams(
            str(self.registry.log.directory),
            self.job,
            (TYPES,) * streams,
            (TIME,) * streams,
            (),
            LABELS,
            samples=True,
        )
        for module, names in (
            (dealing_module, ("_WANTED",)),
            (cell_module, ("_LIVE",)),
            (putting_out_module, ("_LIVE",)),
        ):
            for name in names:
                self.monkeypatch.setattr(module, name, {})

    def add(self, name: str, of: QueryTemplate) -> None:
        assert job_of(of) == self.job
        self.registry.add(QueryGroup(0, (name,), of, pa.table({})))

    def run(self, kept: float, *frames: pd.DataFrame, moves: bool = False) -> None:
        """Run a batch: the events of each stream, of which a part is taken."""
        run = self.registry.begin(self.job.name, self.batch, kept)
        micro = MicroBatch(self.batch, run.version, run.kept)
        for module in (dealing_module, cell_module, putting_out_module):
            self.monkeypatch.setattr(module, "micro_batch", lambda: micro)
        if moves:
            self.monkeypatch.setattr(cell_module, "_LIVE", {})
        accumulator: Any = SimpleNamespace(add=self._count)
        blobs = self._dealt(frames, accumulator)
        put_out = self._worked(blobs, accumulator)
        for of_part in put_out.values():
            kinds, results = zip(*of_part, strict=True)
            arrived = pa.record_batch(
                {"kind": pa.array(kinds, pa.int32()), "results": pa.array(results, pa.binary())}
            )
            for rows in PuttingOut(self.streams, self.schema(), accumulator)(iter([arrived])):
                self.rows += rows.to_pylist()
        self.batch += 1
        self.latest = max([self.latest, *(_micros(frame).max() for frame in frames)])

    def _count(self, by_batch: dict[Any, Counts]) -> None:
        for counts in by_batch.values():
            self.counts.add(counts)

    def _dealt(
        self,
        frames: Sequence[pd.DataFrame],
        accumulator: Any,  # noqa: ANN401 - enough of one
    ) -> list[list[tuple[int, bytes]]]:
        """The blobs of each cell."""
        blobs: list[list[tuple[int, bytes]]] = [[] for _ in LABELS]
        for stream, frame in enumerate(frames):
            rows = pa.RecordBatch.from_pandas(frame, SCHEMA, preserve_index=False)
            columns = tuple(range(len(TYPES)))
            dealing = Dealing(self.streams, stream, columns, len(LABELS), accumulator)
            for packed in dealing(rows.slice(n, 1000) for n in range(0, len(rows), 1000)):
                for blob in unpacked(packed):
                    blobs[blob.cell].append((blob.relation, blob.batch.to_pybytes()))
        return blobs

    def _worked(
        self,
        blobs: list[list[tuple[int, bytes]]],
        accumulator: Any,  # noqa: ANN401 - enough of one
    ) -> dict[int, list[tuple[int, bytes]]]:
        """What the cells put out, by part."""
        put_out: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: Watermark(self.latest))
        for label, store, of_cell in zip(LABELS, self.stores, blobs, strict=True):
            cell = Cell(self.streams, accumulator, watermark=True)
            store.registerTimer = lambda _: None  # type: ignore[attr-defined]
            cell.begin(CellState(store))  # type: ignore[arg-type]  # enough of one
            frame = pd.DataFrame(of_cell, columns=["relation", "batch"])
            for found in cell.run(label, iter([frame]), timers):
                for part, kind, results in found.itertuples(index=False):
                    put_out[part].append((kind, results))
        return put_out

    def end(self) -> None:
        """Let all windows close."""
        for _ in range(2):
            self.run(1.0, *[THE_END for _ in self.job.streams])

    def schema(self) -> pa.Schema:
        queries = self.registry.running()
        fields = [pa.field(QUERY, pa.string()), pa.field(LAYOUT, pa.int32())]
        for aggregation, number in aggregations_in(self.job.inputs, queries).items():
            window = pa.struct({"start": TYPES[TIME], "end": TYPES[TIME]})
            kinds = [window, *(TYPES[SYMBOL] for _ in aggregation.grouping.keys)]
            kinds += [each.type for each in aggregation.aggregates]
            names = [aggregated_column(number, n) for n in range(len(kinds))]
            fields += map(pa.field, names, kinds)
        return pa.schema([*fields, pa.field(SAMPLE, SAMPLE_TYPE)])

    def found(self, name: str) -> Found:
        """What a query has put out."""
        (query,) = [query for query in self.registry.running() if query.name == name]
        aggregated = query.template.aggregated
        assert aggregated is not None
        aggregation = aggregation_of(self.job.inputs, query.template)
        assert aggregation is not None
        number = aggregations_in(self.job.inputs, self.registry.running())[aggregation]
        keys = len(aggregated.aggregation.grouping.keys)
        found: Found = {}
        for row in self.rows:
            if row[QUERY] == name:
                window, *others = (
                    row[aggregated_column(number, n)]
                    for n in range(1 + keys + len(aggregated.names))
                )
                start = int(np.datetime64(window["start"], "us").astype(np.int64))
                key = start, *others[:keys]
                assert key not in found
                values = zip(aggregated.names, others[keys:], strict=True)
                found[key] = {each: value for (each,), value in values} | {"sample": row[SAMPLE]}
        return found


SCHEMA = pa.schema(list(zip(("symbol", "volume", "price", "time"), TYPES, strict=True)))


def events(seed: int, first: int, last: int, many: int = A_WINDOW) -> pd.DataFrame:
    """Events of some seconds, as many in each: of four symbols, of which one is rare."""
    generator = np.random.default_rng(seed)
    count = many * (last - first) // 60
    at = first * SECOND + np.arange(count) * MINUTE // many
    return pd.DataFrame(
        {
            "symbol": generator.choice(list("ABCD"), count, p=[0.5, 0.3, 0.197, 0.003]),
            "volume": generator.integers(1, 1000, count),
            "price": generator.uniform(0, 100, count),
            "time": pd.to_datetime(at, unit="us"),
        }
    )


def _micros(frame: pd.DataFrame) -> npt.NDArray[np.int64]:
    return frame["time"].to_numpy().astype("datetime64[us]").astype(np.int64)


def in_windows(
    batches: Sequence[tuple[pd.DataFrame, int]], window: TimeWindow
) -> Iterator[tuple[int, pd.DataFrame]]:
    """The windows of events, with those of each that came while it was open.

    Events come in batches, each with the watermark when it came.
    """
    times = [_micros(frame) for frame, _ in batches]
    for start in range(-window.size, int(max(map(np.max, times))) + 1, window.slide):
        end = start + window.size
        own = pd.concat(
            [
                frame[(of >= start) & (of < end) & (end > watermark)]
                for (frame, watermark), of in zip(batches, times, strict=True)
            ]
        )
        if len(own):
            yield start, own


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Job], World]]:
    monkeypatch.setattr("os.fsync", lambda _: None)
    registry = QueryRegistry(tmp_path, {"trades": "{}", "quotes": "{}"})
    yield lambda job: World(registry, monkeypatch, job)
    registry.close()


TRADES = Job(("trades",), aggregates=True)
THE_END = pd.DataFrame(
    {
        "symbol": ["Z"],
        "volume": [1],
        "price": [1.0],
        "time": pd.to_datetime([MINUTE * 60], unit="us"),
    }
)


DEAR = above(PRICE, 30)


def test_the_windows_of_the_report(opened: Callable[[Job], World]) -> None:
    """Windows of 10,000 events each are windows of 10,000 events, however few were taken."""
    world = opened(TRADES)
    world.add("all", template({"n": COUNT}))
    world.add("groups", template({"n": COUNT, "v": SUM}, keys=(SYMBOL,)))
    world.add("dear", template({"n": COUNT}, keys=(SYMBOL,), where=DEAR))
    shares = [1.0, 0.0495, 0.0531, 0.0135, 0.0029, 0.0016, 0.001, 0.001]
    frames = [events(n, 60 * n, 60 * n + 60) for n in range(len(shares))]
    for number, (share, frame) in enumerate(zip(shares, frames, strict=True)):
        world.run(share, frame, moves=number % 3 == 0)
    world.end()
    found = world.found("all")
    assert [row["n"] for row in found.values()] == [A_WINDOW] * 8
    for number, row in enumerate(found.values()):
        sample = row["sample"]
        assert sample["events"] == A_WINDOW
        assert sample["exact"] == (number == 0)
        if number:
            assert sample["seen"] == pytest.approx(A_WINDOW * shares[number], rel=0.7)
            assert sample["intervals"] == [("n", {"low": A_WINDOW, "high": A_WINDOW})]
        else:
            assert sample == {
                "exact": True,
                "kept": 1.0,
                "seen": A_WINDOW,
                "events": A_WINDOW,
                "intervals": None,
            }
    within: dict[str, Counter[bool]] = defaultdict(Counter)
    found = world.found("groups") | {(*key, 0): row for key, row in world.found("dear").items()}
    for start, own in in_windows([(frame, 0) for frame in frames], TimeWindow(MINUTE, MINUTE)):
        for symbol, group in own.groupby("symbol"):
            # No group vanishes where what is dropped is counted by group.
            row = found[start, symbol]
            assert row["n"] == len(group)
            sums = dict(row["sample"]["intervals"] or {}).get("v")
            if sums is not None:
                within["v"][sums["low"] <= group["volume"].sum() <= sums["high"]] += 1
            dear = found.get((start, symbol, 0))
            if dear is not None and start:
                interval = dict(dear["sample"]["intervals"])["n"]
                many = (group["price"] > 30).sum()
                within["n"][interval["low"] <= many <= interval["high"]] += 1
                assert interval["low"] <= dear["n"] + 0.5
                assert dear["n"] - 0.5 <= interval["high"]
    assert all(counted[False] <= 2 and counted[True] >= 15 for counted in within.values())
    assert sum(world.counts.window_events.values()) == 2 * 8 * A_WINDOW  # of two groupings
    assert world.counts.window_dropped.total() == 2 * world.counts.dropped.total()


LARGE = Case(((above(VOLUME, 500), column(VOLUME)),), Literal(None, LONG), LONG)
"""FILTER (WHERE volume > 500), as it is read."""

SLIDING = TimeWindow(MINUTE, 20 * SECOND)
MANY = 2000

SEVERAL = {
    "groups": template(
        {"n": COUNT, "v": SUM, "a": MEAN, "least": LEAST, "most": MOST}, keys=(SYMBOL,), where=DEAR
    ),
    "sliding": template(
        {"n": aggregate("count", LARGE, LONG), "v": aggregate("sum", LARGE, LONG)}, window=SLIDING
    ),
    "having": template(
        {"n": COUNT},
        keys=(SYMBOL,),
        having=Comparison(ComparisonOperator.GREATER, Argument(3, LONG), Literal(MANY, LONG)),
    ),
}

SHARES = (1.0, 0.05, 1.0, 0.3, 0.1, 1.0, 1.0, 1.0)


def test_windows_over_batches_of_several_shares(opened: Callable[[Job], World]) -> None:
    """Batches of 40 s and windows of 60 s, in a cell that moves from worker to worker."""
    world = opened(TRADES)
    for name, of in SEVERAL.items():
        world.add(name, of)
    world.add("dropped", template({"n": COUNT}, keys=(SYMBOL,), where=above(PRICE, 31)))
    came: list[tuple[pd.DataFrame, int]] = []
    for number, share in enumerate(SHARES):
        if number == 3:
            world.registry.drop(["dropped"])
            world.add("later", template({"n": COUNT}, window=TimeWindow(MINUTE // 2, MINUTE // 2)))
        frame = events(number, 40 * number, 40 * number + 40)
        if number:  # some come late, when some of the windows that they are in have closed
            late = events(100 + number, 40 * number - 40, 40 * number, many=300)
            frame = pd.concat([frame, late])
        came.append((frame, world.latest))
        world.run(share, frame, moves=number % 2 == 1)
    world.end()
    check_groups(world.found("groups"), came)
    check_sliding(world.found("sliding"), came)
    # What HAVING asks is asked of the estimates: of samples there would be nothing above it.
    having = world.found("having")
    for start, own in in_windows(came, TimeWindow(MINUTE, MINUTE)):
        for symbol, many in own["symbol"].value_counts().items():
            assert ((start, symbol) in having) == (many > MANY)
    # A query that came in the middle of a window has what it could see of it.
    later = world.found("later")
    for start, own in in_windows(came[3:], TimeWindow(MINUTE // 2, MINUTE // 2)):
        assert later.pop((start,))["n"] == len(own)
    assert not later


def check_groups(found: Found, came: Sequence[tuple[pd.DataFrame, int]]) -> None:
    within: Counter[str] = Counter()
    estimates: Counter[str] = Counter()
    for start, own in in_windows(came, TimeWindow(MINUTE, MINUTE)):
        for symbol, group in own[own["price"] > 30].groupby("symbol"):
            if (start, symbol) not in found:
                assert symbol == "D"  # of whom not one may have been taken
                continue
            row = found[start, symbol]
            sample = row["sample"]
            assert sample["events"] == len(own)
            prices, volumes = group["price"], group["volume"]
            truth = {"n": len(group), "v": volumes.sum(), "a": prices.mean()}
            assert row["least"] >= prices.min()
            if sample["exact"]:
                assert sample["intervals"] is None
                assert (row["least"], row["most"]) == (prices.min(), symbol)
                assert {name: row[name] for name in truth} == pytest.approx(truth)
                continue
            told = dict(sample["intervals"])
            assert told["least"] == {"low": None, "high": row["least"]}
            assert "most" not in told  # a text has no interval
            for name in truth.keys() & told.keys():
                low, high = told[name]["low"], told[name]["high"]
                assert low - 0.5 <= row[name] <= high + 0.5  # a count is a whole number
                estimates[name] += 1
                within[name] += low <= truth[name] <= high
    assert min(estimates.values()) >= 12
    assert all(within[name] >= 0.8 * estimates[name] for name in estimates)
    assert within.total() >= 0.9 * estimates.total()


def check_sliding(found: Found, came: Sequence[tuple[pd.DataFrame, int]]) -> None:
    exact = []
    for start, own in in_windows(came, SLIDING):
        large = own[own["volume"] > 500]["volume"]
        row = found[start,]
        exact.append(row["sample"]["exact"])
        if exact[-1]:
            assert (row["n"], row["v"]) == (len(large), large.sum())
        else:
            assert row["n"] == pytest.approx(len(large), rel=0.2)
            assert row["v"] == pytest.approx(large.sum(), rel=0.2)
    assert {*exact} == {False, True}


def test_windows_without_an_event_that_stands_for_those_dropped(
    opened: Callable[[Job], World],
) -> None:
    world = opened(TRADES)
    sums = {"n": COUNT, "v": SUM, "a": MEAN}
    world.add("all", template(sums))
    world.add("some", template(sums, where=above(PRICE, -1)))
    world.run(1.0, events(1, 0, 30, many=100))
    world.run(1e-9, events(2, 30, 60, many=100))
    world.end()
    total = 2 * events(1, 0, 30, many=100)["volume"].sum()
    for name, low in (("all", 100.0), ("some", 50.0)):
        (row,) = world.found(name).values()
        assert (row["n"], row["sample"]["seen"], row["sample"]["events"]) == (100, 50, 100)
        assert dict(row["sample"]["intervals"]) == {"n": {"low": low, "high": 100.0}}
        assert row["v"] == pytest.approx(total)


def test_groups_of_which_no_event_was_taken(opened: Callable[[Job], World]) -> None:
    """They are there with how many events they had; what nobody saw is unknown."""
    world = opened(TRADES)
    world.add("groups", template({"n": COUNT, "v": SUM, "least": LEAST}, keys=(SYMBOL,)))
    one = Comparison(ComparisonOperator.EQUAL, column(SYMBOL), Literal("B", pa.string()))
    world.add("one", template({"n": COUNT}, keys=(SYMBOL,), where=one))
    frame = events(1, 0, 60, many=1000)
    world.run(1e-9, frame)  # of all these only the first is taken
    # A query that comes now has seen none of these, and says nothing of them.
    world.add("later", template({"n": COUNT}, keys=(SYMBOL,), where=one))
    world.end()
    found = world.found("groups")
    assert {key[1]: row["n"] for key, row in found.items()} == Counter(frame["symbol"])
    assert found.pop((0, frame["symbol"][0]))["least"] == frame["price"][0]
    for row in found.values():
        assert (row["v"], row["least"], row["sample"]["exact"]) == (None, None, False)
    assert [row["n"] for row in world.found("one").values()] == [(frame["symbol"] == "B").sum()]
    assert not world.found("later")


def test_where_each_event_is_a_group_they_are_not_counted(
    opened: Callable[[Job], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropped_groups, "MOST_GROUPS", 3)
    world = opened(TRADES)
    world.add("groups", template({"n": COUNT}, keys=(SYMBOL,)))
    world.add("all", template({"n": COUNT}))
    frame = events(1, 0, 60, many=12)
    frame["symbol"] = list("ABCDEFGHIJKL")
    world.run(0.5, frame)
    world.end()
    groups = world.found("groups")
    sample = next(iter(groups.values()))["sample"]
    assert 0 < len(groups) == sample["seen"] < 12
    assert {row["n"] for row in groups.values()} == {round(12 / len(groups))}
    assert dict(sample["intervals"])["n"]["low"] >= 1
    assert [row["n"] for row in world.found("all").values()] == [12]


def test_groups_are_not_half_counted(
    opened: Callable[[Job], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only some of a window's dropped events were counted by group, none are."""
    monkeypatch.setattr(dropped_groups, "MOST_GROUPS", 4)
    world = opened(TRADES)
    world.add("groups", template({"n": COUNT}, keys=(SYMBOL,)))
    world.run(1.0, events(1, 0, 60, many=10))
    world.run(1e-9, events(2, 60, 90, many=100))
    many = events(3, 90, 120, many=24)
    many["symbol"] = list("ABCDEFGHIJKL")
    world.run(1e-9, many)
    world.run(1e-9, events(4, 120, 180, many=100))
    world.end()
    found = Counter(start for start, _ in world.found("groups"))
    assert found.keys() == {0, 2 * MINUTE}


PAIRS = Job(("quotes", "trades"), joins=True, columns=(SYMBOL, SYMBOL))


def test_joined_windows(opened: Callable[[Job], World]) -> None:
    """A joined row is there where both its events were taken; there is no interval."""
    reach = 10 * SECOND
    world = opened(PAIRS)
    world.add("pairs", template({"n": COUNT, "v": SUM, "least": LEAST}, joined=reach))
    shares = (1.0, 0.5, 1.0, 1.0, 1.0)
    frames = [
        [events(10 * stream + n, 60 * n, 60 * n + 60, many=600) for stream in range(2)]
        for n in range(len(shares))
    ]
    for number, (share, both) in enumerate(zip(shares, frames, strict=True)):
        world.run(share, *both, moves=number % 2 == 1)
    world.end()
    quotes, trades = (pd.concat([both[n] for both in frames]) for n in range(2))
    pairs = trades.merge(quotes, on="symbol", suffixes=("", "_q"))
    apart = (pairs["time_q"] - pairs["time"]).dt.total_seconds()
    pairs = pairs[(apart >= 0) & (apart <= 10)]
    found = world.found("pairs")
    for start, own in in_windows([(pairs, 0)], TimeWindow(MINUTE, MINUTE)):
        row = found[start,]
        sample = row["sample"]
        assert sample["events"] == 1200  # of both streams
        # The quotes of the second minute are joined with trades of the first.
        if start in {0, MINUTE}:
            assert not sample["exact"]
            assert row["n"] == pytest.approx(len(own), rel=0.25)
            assert row["v"] == pytest.approx(own["volume"].sum(), rel=0.3)
            assert dict(sample["intervals"]).keys() == {"least"}
        else:
            assert sample == {
                "exact": True,
                "kept": 1.0,
                "seen": 1200,
                "events": 1200,
                "intervals": None,
            }
            assert (row["n"], row["v"]) == (len(own), own["volume"].sum())
    assert found[0,]["sample"]["seen"] == 1200
