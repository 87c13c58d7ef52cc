"""Keys with so many rows that these are dealt out over several cells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench.answers import require_same_rows
from eddyline.blocks.filter_block import SessionSettings
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.errors import SampledTwiceError
from eddyline.exchange.blobs import Blob, Sorter, decoded, encoded, packed, unpacked
from eddyline.exchange.heavy_keys import KeyCounts, as_batch, heavy_keys, of_dimensions
from eddyline.exchange.hypercube import Dimension, Hypercube, key_words, plan_hypercube
from eddyline.planner.block_registry import registry_of
from eddyline.planner.rewrite import reducing, sampled_keys
from eddyline.tasks.reduce_side import ReduceSide
from eddyline.tasks.sampling import LEAST_ROWS, MOST_ROWS, SAMPLE_ROWS, sampled_rows
from tests.planner.joins.broadcasting import THRESHOLD, broadcasting
from tests.planner.joins.generated import Case, cases, joined_rows, two_of_integers

KEYS = 10_000
MOST_SKEW = 3.0
"""What the issue of skew is measured by: the largest cell over the median of the others."""


def zipf(rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return keys by Zipf's law (1.2): the most frequent one has a fifth of the rows."""
    weights = np.arange(1, KEYS + 1) ** -1.2
    return np.random.default_rng(seed).choice(KEYS, size=rows, p=weights / weights.sum())


def counted(relation: int, keys: npt.NDArray[np.int64], fraction: float, seed: int) -> KeyCounts:
    """Return what a sample of keys tells."""
    chosen = keys[np.random.default_rng(seed).random(len(keys)) < fraction]
    words, counts = np.unique(key_words(pa.array(chosen)), return_counts=True)
    return KeyCounts(relation, words, counts, fraction)


class Load(NamedTuple):
    """What each cell gets: the rows of each of two inputs, and the joined rows that it makes."""

    rows: npt.NDArray[np.int64]
    joined: npt.NDArray[np.int64]

    def skew(self) -> tuple[float, float]:
        """Return the largest over the median of the others, for both."""
        return (_skew(self.rows), _skew(self.joined))


def _skew(cells: npt.NDArray[np.int64]) -> float:
    ordered = np.sort(cells)
    return float(ordered[-1] / np.median(ordered[:-1]))


def load(share: int, keys: list[npt.NDArray[np.int64]], samples: list[KeyCounts]) -> Load:
    """Send two inputs with one key to so many cells; without samples no key is heavy."""
    cube = Hypercube((Dimension((0, 0)),), (share,))
    heavy = (heavy_keys(samples, share),)
    counts = np.zeros((2, share, KEYS), np.int64)
    for relation, own in enumerate(keys):
        words = key_words(pa.array(own))
        for rows, cells in cube.placed(relation, [words], np.arange(len(own)), heavy):
            chosen = own if rows is None else own[rows]
            np.add.at(counts[relation], (cells, chosen[:, None]), 1)
    return Load(counts.sum(axis=(0, 2)), (counts[0] * counts[1]).sum(axis=1))


@pytest.mark.parametrize("share", [4, 16, 64])
@pytest.mark.parametrize("both", [False, True], ids=["one side", "both sides"])
def test_no_cell_gets_three_times_as_much_as_the_others(share: int, both: bool) -> None:  # noqa: FBT001 - a parameter
    one = zipf(400_000, 1)
    other = zipf(40_000, 2) if both else np.arange(KEYS)
    samples = [counted(0, one, 0.05, 3), counted(1, other, 0.4, 4)]
    assert max(load(share, [one, other], samples).skew()) <= MOST_SKEW
    # The test would pass for nothing if the keys did no harm as they are.
    assert max(load(share, [one, other], []).skew()) > min(MOST_SKEW, share / 3)


def test_even_keys_are_left_where_their_hashes_send_them() -> None:
    even = np.random.default_rng(0).integers(KEYS, size=200_000)
    samples = [counted(0, even, 0.1, 1), counted(1, np.arange(KEYS), 1.0, 2)]
    assert [heavy_keys(samples, share) for share in (4, 64, 400)] == [None] * 3


def test_few_rows_prove_nothing() -> None:
    words = np.arange(3)
    assert heavy_keys([KeyCounts(0, words, np.array([9, 1, 1]), 0.1)], 8) is None
    found = heavy_keys([KeyCounts(0, words, np.array([90, 10, 10]), 0.1)], 8)
    assert found is not None
    assert found.words.tolist() == [0]


def test_the_input_with_most_rows_of_a_key_is_dealt_out() -> None:
    words = np.array([5, 7])
    small = KeyCounts(0, words, np.array([80, 20]), 1.0)
    large = KeyCounts(2, words, np.array([100, 5000]), 0.5)
    found = heavy_keys([small, large], 32)
    assert found is not None
    assert dict(zip(found.words.tolist(), found.dealt.tolist(), strict=True)) == {5: 2, 7: 2}
    found = heavy_keys([small, large._replace(counts=np.array([20, 5000]))], 600)
    assert found is not None
    assert dict(zip(found.words.tolist(), found.dealt.tolist(), strict=True)) == {5: 0, 7: 2}


def test_rows_that_come_in_step_are_dealt_out_evenly() -> None:
    """As those of a key that every fourth row has, with four places to go."""
    found = heavy_keys([KeyCounts(0, np.array([1]), np.array([900]), 1.0)], 4)
    cube = Hypercube((Dimension((0, 0)),), (4,))
    ((_, cells),) = cube.placed(0, [np.ones(10_000, np.int64)], np.arange(0, 40_000, 4), [found])
    assert min(np.bincount(cells[:, 0], minlength=4)) > 2_300


def test_rows_that_must_not_be_copied_are_not() -> None:
    words = np.array([5, 7])
    one = KeyCounts(0, words, np.array([80, 20]), 1.0)
    other = KeyCounts(1, words, np.array([20, 80]), 1.0)
    for bound, kept in (((), [5, 7]), ((0,), [5]), ((1,), [7])):
        found = heavy_keys([one, other], 64, bound)
        assert found is not None
        assert found.words.tolist() == kept
    assert heavy_keys([one, other], 64, (0, 1)) is None
    assert heavy_keys([one, other], 64, (2,)) is None


def test_where_there_are_heavy_keys_every_cell_hears_of_it() -> None:
    batch = pa.record_batch([pa.array([1])], names=["c0"])
    for heavy, cells in ((7, [0, 1, 2]), (0, [1])):
        sorter = Sorter(0, 3, 0, heavy)
        sent = [*sorter.add(batch, np.array([[1]])), *sorter.rest()]
        blobs = [blob for each in sent for blob in unpacked(each)]
        assert sorted(blob.cell for blob in blobs) == cells
        rows = [list(decoded(blob.batch)) for blob in blobs]
        assert sum(len(each) for each in rows) == 1


def test_an_input_is_sampled_in_few_rows_however_large_it_is() -> None:
    assert sampled_rows(1 << 20) == SAMPLE_ROWS
    assert sampled_rows(1 << 40) * (1 << 13) <= MOST_ROWS * 2
    assert sampled_rows(1 << 60) == LEAST_ROWS


def test_heavy_keys_travel_as_one_batch() -> None:
    first = heavy_keys([KeyCounts(0, np.array([-3, 9]), np.array([90, 50]), 1.0)], 4)
    other = heavy_keys([KeyCounts(1, np.array([2**62]), np.array([70]), 1.0)], 3)
    back = of_dimensions(as_batch([first, None, other]), 3)
    assert back[1] is None
    for one, two in ((first, back[0]), (other, back[2])):
        assert one is not None
        assert two is not None
        for field in ("words", "spread", "dealt"):
            assert getattr(one, field).tolist() == getattr(two, field).tolist()
    assert of_dimensions(as_batch([None, None]), 2) == (None, None)


@given(data=st.data(), case=cases(), cells=st.integers(2, 24))
def test_rows_that_join_meet_in_exactly_one_cell(
    data: st.DataObject, case: Case, cells: int
) -> None:
    """Whatever keys are called heavy, and whichever input is dealt out."""
    sizes = [data.draw(st.integers(1, 10**6)) for _ in case.types]
    cube = plan_hypercube(case.graph, sizes, cells)
    words = [
        [
            None
            if (column := dimension.columns[relation]) is None
            else key_words(batch.column(column))
            for dimension in cube.dimensions
        ]
        for relation, batch in enumerate(map(case.batch, range(len(case.rows))))
    ]
    heavy = []
    for number, share in enumerate(cube.shares):
        samples = [
            KeyCounts(relation, seen, np.array(data.draw(_counts(len(seen)))), 1.0)
            for relation, own in enumerate(words)
            if (hashed := own[number]) is not None and len(seen := np.unique(hashed))
        ]
        heavy.append(heavy_keys(samples, share))
    found: list[list[list[int]]] = []
    for relation, rows in enumerate(case.rows):
        own: list[list[int]] = [[] for _ in rows]
        numbered = np.arange(len(rows)) + data.draw(st.integers(0, 100))
        copied = cube.copied(relation, words[relation], heavy)
        for chosen, places in cube.placed(relation, words[relation], numbered, heavy):
            numbers = range(len(rows)) if chosen is None else chosen.tolist()
            for row, of_row in zip(numbers, places.tolist(), strict=True):
                own[row] = of_row
                more = len(of_row) > cube.copies(relation)
                assert more == (copied is not None and bool(copied[row]))
        assert all(places and len(places) == len(set(places)) for places in own)
        found.append(own)
    for numbers in joined_rows(case.rows, case.equalities):
        of_rows = [set(found[relation][row]) for relation, row in enumerate(numbers)]
        assert len(set.intersection(*of_rows)) == 1


def _counts(length: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from([1, 20, 900]), min_size=length, max_size=length)


def test_cells_that_were_dealt_out_by_two_samples_are_an_error(spark: SparkSession) -> None:
    """Rows would be missed without one."""
    query = two_of_integers([1], [1]).graph.query
    block = JoinBlock("", query, (), SessionSettings(time_zone="UTC"), (1, 1), (), (("x",),) * 2)
    blobs = [packed(Blob(0, number, 0, number + 1, empty_blob())) for number in (0, 1)]
    side = ReduceSide(block, RoutingOptions(), registry_of(spark.sparkContext).records)
    with pytest.raises(SampledTwiceError, match="reuseSubquery"):
        list(side(iter(blobs)))


def empty_blob() -> pa.Buffer:
    """Return batches without rows."""
    return encoded([pa.record_batch([pa.array([], pa.int64())], names=["c0"])])


@pytest.fixture
def always_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small inputs be sampled too."""
    monkeypatch.setattr(sampled_keys, "WORTH_SAMPLING", 0)


@pytest.fixture
def skewed(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """Have tables of which two have keys by Zipf's law."""
    tables = {
        "a": {"k": zipf(6_000, 1), "a": np.arange(6_000)},
        "b": {"k": zipf(600, 2), "b": np.arange(600)},
        "c": {"k": np.arange(0, KEYS, 2), "c": np.arange(KEYS // 2)},
    }
    for name, columns in tables.items():
        (tmp_path / name).mkdir()
        table = pa.table(columns)
        for part in range(2):
            pq.write_table(table.take(np.arange(part, len(table), 2)), tmp_path / name / f"{part}")
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    with broadcasting(spark, allowed=False):
        yield spark
    for name in tables:
        spark.catalog.dropTempView(name)


@pytest.mark.usefixtures("always_sampled")
def test_same_rows_as_plain_spark(skewed: SparkSession) -> None:
    calls = skewed.sparkContext.accumulator(0)

    def asked(calls: object, value: int) -> bool:
        calls.add(1)  # type: ignore[attr-defined]  # an accumulator
        return value % 3 > 0

    skewed.udf.register("is_good", partial(asked, calls), "boolean")
    text = "SELECT a.k, a, b, c FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WHERE is_good(b)"
    expected = skewed.sql(text).toArrow()
    calls.value = 0
    adapted = eddyline.adapt(skewed.sql(text), joins="always")
    require_same_rows(expected, adapted.toArrow())
    assert len(expected) > 100_000
    # b's rows with heavy keys are copied; each is asked about once all the same.
    assert calls.value <= 600
    (block,) = eddyline.report(adapted).blocks
    assert block.record is not None
    join = block.record.join
    assert join is not None
    assert join.came[1] > 600 * 2 / 5
    assert join.skew is not None
    assert join.skew <= MOST_SKEW


@pytest.mark.usefixtures("always_sampled")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, named(b) AS name FROM a JOIN b ON a.k = b.k",
        "SELECT a, b FROM a JOIN b ON a.k = b.k WHERE named(b) % 9 < a % 9",
    ],
)
def test_a_row_that_is_asked_about_later_is_not_copied(skewed: SparkSession, text: str) -> None:
    """Or it would be asked about in each of the cells."""
    calls = skewed.sparkContext.accumulator(0)

    def asked(calls: object, value: int) -> int:
        calls.add(1)  # type: ignore[attr-defined]  # an accumulator
        return value

    skewed.udf.register("named", partial(asked, calls), "bigint")
    with eddyline.enable(skewed, joins="always"):  # which knows that the value is wanted
        assert len(skewed.sql(text).toArrow()) > 100_000
    assert calls.value <= 600


@pytest.mark.usefixtures("always_sampled")
def test_what_would_be_computed_twice_is_not_sampled(skewed: SparkSession) -> None:
    """An aggregate is computed once: by the join."""
    made = skewed.sparkContext.accumulator(0)

    def counted_once(value: int) -> int:
        made.add(1)
        return value

    once = F.udf(counted_once, "bigint").asNondeterministic()
    below = skewed.table("b").withColumn("b", once("b"))
    frame = skewed.table("a").join(below, "k")
    adapted = eddyline.adapt(frame, joins="always")
    assert adapted is not frame
    assert adapted.count() > 100_000
    assert made.value == 600


AUTO = {
    "an eddy, as nothing says what joins drop": ("is_good(a)", "-1", "no condition says"),
    "an eddy, over what is reduced": (
        "less_than(b, a) AND c < 2000",
        "40KB",  # the keys of c may be broadcast, but no two inputs that an eddy joins
        "b is reduced by c exactly, by its keys",
    ),
    "Spark, around a block": ("is_good(a) AND c < 2000", "-1", "Spark joins around it"),
}
"""Predicates, what may be broadcast, and what is said about who joins."""


@pytest.mark.usefixtures("always_sampled")
@pytest.mark.parametrize("who", AUTO)
def test_whoever_joins_by_choice(
    skewed: SparkSession, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """Heavy keys are dealt out where an eddy joins, also if its inputs are reduced."""
    monkeypatch.setattr(reducing, "WORTH_REDUCING", 1)
    skewed.udf.register("is_good", lambda value: value % 3 > 0, "boolean")
    skewed.udf.register("less_than", lambda one, other: 3 * one < other, "boolean")
    predicate, reach, why = AUTO[who]
    skewed.conf.set(THRESHOLD, reach)
    joined = f"a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WHERE {predicate}"
    text = f"SELECT a.k, count(*) AS n, sum(a - b) AS d, sum(c) AS c FROM {joined} GROUP BY a.k"  # noqa: S608
    expected = skewed.sql(text).toArrow()
    adapted = eddyline.adapt(skewed.sql(text))
    require_same_rows(expected, adapted.toArrow())
    assert pc.sum(expected["n"]).as_py() > 50_000
    assert why in str(eddyline.explain(adapted))
    (block,) = eddyline.report(adapted).blocks
    assert block.record is not None
    if block.record.join is None:
        assert block.record.rows_in < 3_000
    else:
        assert "rows of heavy keys" in block.layout
        assert block.record.join.skew is not None
        assert block.record.join.skew <= MOST_SKEW
