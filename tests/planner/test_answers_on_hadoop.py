"""Answers that are kept on a file system that Hadoop knows, here its view of the local one."""

from __future__ import annotations

import datetime as dt
import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import Row, SparkSession

import eddyline
from eddyline import catalyst
from eddyline.errors import LedgerError
from eddyline.keeping import kept_answers, shared_store
from eddyline.keeping.answer_store import KeptEntry
from tests.planner.test_kept_answers import Counted, close_all, collected, doubled


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "all, answers"


@pytest.fixture
def folder(place: Path) -> Iterator[str]:
    yield f"file://{place}"
    close_all()
    kept_answers._closed.clear()


def files(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if not path.name.startswith("."))


def test_no_action_and_no_application_asks_again(
    spark: SparkSession, folder: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_store, "_REST", 0.0)  # s in which spared calls may wait
    (place.parent / "a b").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place.parent / "a b"))
    counted, twice = doubled(folder, cost=0.5, unit="USD")
    rows = spark.range(20).selectExpr("IF(id = 3, NULL, id % 10) AS n").select("n", twice("n"))
    first = collected(rows)
    for _ in range(2):
        assert collected(rows) == first
        assert len(counted.asked) == 11
        close_all()  # as in another application
    assert not list(place.glob("*.writing"))
    (kept,) = eddyline.ledger(folder).functions
    assert (kept.entries, kept.spent) == (11, 5.5)
    assert 0 < kept.hits <= 22  # those of the last groups are written when nobody waits
    assert kept.saved == 0.5 * kept.hits


def test_a_query_finds_what_another_application_has_kept_meanwhile(
    spark: SparkSession, folder: str, place: Path
) -> None:
    counted, twice = doubled(folder)
    collected(spark.range(4).select(twice("id")))
    own = files(place)
    aside = place.with_name("aside")
    shutil.move(place, aside)
    close_all()
    collected(spark.range(2, 8).select(twice("id")))  # the other application
    assert len(counted.asked) == 10
    close_all()
    theirs = place.with_name("theirs")
    shutil.move(place, theirs)
    shutil.move(aside, place)
    collected(spark.range(4).select(twice("id")))
    assert len(counted.asked) == 10
    for name in files(theirs):
        shutil.copy(theirs / name, place / name)
    collected(spark.range(8).select(twice("id")))
    assert len(counted.asked) == 10
    assert {*own, *files(theirs)} <= set(files(place))


VALUES: dict[str, Sequence[object]] = {
    "string": ["", "a", "\0", "ß" * 5_000, None],
    "bigint": [-(2**63), 2**63 - 1, None],
    "double": [1e300, -0.0, None],
    "decimal(38, 3)": [Decimal("1.500"), Decimal(10) ** 34, None],
    "binary": [b"", b"\0\xff", None],
    "timestamp": [dt.datetime(2026, 7, 1, 12, 30, 0, 123456), None],  # noqa: DTZ001
    "array<struct<a: int, b: string>>": [[Row(a=1, b=None)], [], None],
    "map<string, double>": [{"a": 1.0}, {}, None],
    "boolean": [True, False, None],
    "date": [dt.date(1, 1, 1), None],
}


def test_values_of_every_type(spark: SparkSession, folder: str) -> None:
    columns = []
    functions = {}
    for number, kind in enumerate(VALUES):
        counted = Counted(lambda value: value)
        function = eddyline.concurrent(counted, returns=kind, keep=folder, version=kind)
        functions[kind] = counted, function
        columns.append(f"c{number} {kind}")
    longest = max(map(len, VALUES.values()))
    rows = [
        tuple(values[n] if n < len(values) else None for values in VALUES.values())
        for n in range(longest)
    ]
    frame = spark.createDataFrame(rows, ", ".join(columns)).select(
        *(f"c{n}" for n in range(len(columns))),
        *(
            function(f"c{number}").alias(f"w{number}")
            for number, (_, function) in enumerate(functions.values())
        ),
    )
    first = collected(frame)
    for row in first:
        for number in range(len(columns)):
            assert repr(row[f"c{number}"]) == repr(row[f"w{number}"])
    close_all()
    assert list(map(repr, collected(frame))) == list(map(repr, first))
    for kind, (counted, _) in functions.items():
        assert len(counted.asked) == len(VALUES[kind])


def test_lookup_tables_and_sessions(spark: SparkSession, folder: str, place: Path) -> None:
    asked: list[int] = []

    def tens(keys: Sequence[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        return [(key, f"v{part}") for key in keys for part in range(key % 3)]

    def registered() -> None:
        source = eddyline.PythonLookup(tens, keys_per_call=4)
        eddyline.lookup_table(
            spark, "tens", "k bigint, v string", ["k"], source, version="1", keep=folder
        )

    registered()
    query = "SELECT k, v FROM range(9) JOIN tens ON id = k ORDER BY k, v"
    first = collected(spark.sql(query))
    assert len(first) == 9
    theirs = place.with_name("theirs")
    shutil.copytree(place, theirs)
    registered()
    assert collected(spark.sql(query)) == first
    assert sorted(asked) == list(range(9))
    shutil.rmtree(place)
    registered()  # opens a folder that is empty
    shutil.copytree(theirs, place)
    assert collected(spark.sql(query)) == first  # the query looks again
    assert sorted(asked) == list(range(9))
    plain = eddyline.concurrent(Counted(abs), returns="bigint")
    with eddyline.enable(spark, keep=folder):
        spark.range(3).select(plain("id")).collect()
    assert [each.name for each in eddyline.ledger(folder).functions] == ["counted", "tens"]


@pytest.mark.usefixtures("spark")
def test_many_groups_are_few_files(folder: str, place: Path) -> None:
    ledger = kept_answers.opened(folder, catalyst.HadoopFolder(folder))
    number = ledger.store.function("f", "1", "", "")
    entry = KeptEntry("a", 5.0, 0.0)
    for n in range(66):
        ledger.store.keep([(number, b"%d" % n, entry)])
    assert len(files(place)) < 10
    close_all()
    assert [each.entries for each in eddyline.ledger(folder).functions] == [66]


def test_what_is_none_of_ours_is_ignored(spark: SparkSession, folder: str, place: Path) -> None:
    counted, twice = doubled(folder)
    collected(spark.range(4).select(twice("id")))
    close_all()
    whole, *_ = files(place)
    (place / f"answers-{'0' * 32}.parquet").touch()
    (place / f"answers-{'1' * 32}.parquet").write_bytes((place / whole).read_bytes()[:100])
    (place / f".answers-{'2' * 32}.parquet.writing").write_bytes(b"PAR1")
    (place / "_SUCCESS").touch()
    (place / "folder").mkdir()
    collected(spark.range(5).select(twice("id")))
    assert len(counted.asked) == 5


def test_a_folder_that_cannot_be_written_warns_once(
    spark: SparkSession, folder: str, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place.write_text("a file, where the folder would be")
    counted, twice = doubled(folder)
    with caplog.at_level(logging.WARNING, "eddyline"):
        for _ in range(2):
            rows = collected(spark.range(4).select(twice("id").alias("d")))
            assert sorted(row.d for row in rows) == [0, 2, 4, 6]
    assert len(counted.asked) == 8
    said = [record.message for record in caplog.records if "kept" in record.message]
    assert len(said) == 1
    assert f"the ledger {folder} cannot be written" in said[0]


def test_a_folder_that_is_not_reached_warns_once(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_self: object) -> list[str]:
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(catalyst.HadoopFolder, "names", away)
    kept_answers._closed.clear()
    counted, twice = doubled("file:///away")
    with caplog.at_level(logging.WARNING, "eddyline"):
        for _ in range(2):
            assert len(collected(spark.range(4).select(twice("id")))) == 4
    assert len(counted.asked) == 8
    said = [record.message for record in caplog.records if "kept" in record.message]
    assert len(said) == 1
    assert "nobody is there" in said[0]


def test_a_file_system_that_spark_does_not_have_is_said(spark: SparkSession) -> None:
    _, twice = doubled("s4a://bucket/answers")
    with pytest.raises(LedgerError, match="Spark has no file system for s4a:"):
        collected(spark.range(4).select(twice("id")))
    with pytest.raises(LedgerError, match="no file system for s4a:"):
        eddyline.enable(spark, keep="s4a://bucket/answers")
    with pytest.raises(LedgerError, match="no file system for s4a:"):
        eddyline.ledger("s4a://bucket/answers")


def test_without_spark_nothing_is_written(
    spark: SparkSession, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected(spark.range(2).select(doubled(folder)[1]("id")))
    store = kept_answers.opened(folder, catalyst.HadoopFolder(folder)).store
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    entry = KeptEntry("a", 5.0, 0.0)
    with pytest.raises(LedgerError, match="Spark is not running"):
        store.keep([(store.function("f", "1", "", ""), b"1", entry)])
    with pytest.raises(LedgerError, match="Spark is not running"):
        eddyline.ledger(folder)


def test_a_ledger_is_shown_and_answers_are_removed(
    spark: SparkSession, folder: str, place: Path
) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        eddyline.ledger(folder)
    counted, twice = doubled(folder, cost=0.5, unit="USD")
    collected(spark.range(4).select(twice("id")))
    ledger = eddyline.ledger(folder)
    assert "2 USD" in str(ledger)
    assert ledger.to_dict()["size"] == sum((place / name).stat().st_size for name in files(place))
    assert ledger.remove("counted", keys=[1, (2,), 99]) == 2
    collected(spark.range(4).select(twice("id")))
    assert sorted(counted.asked) == [(0,), (1,), (1,), (2,), (2,), (3,)]
    ledger.close()  # queries go on with it
    collected(spark.range(4).select(twice("id")))
    assert len(counted.asked) == 6
    assert ledger.remove("counted") == 4
    close_all()
    assert str(eddyline.ledger(folder)) == "The ledger is empty."


def test_all_groups_go_over_one_connection_into_the_jvm(spark: SparkSession, folder: str) -> None:
    ledger = kept_answers.opened(folder, catalyst.HadoopFolder(folder))
    number = ledger.store.function("f", "1", "", "")
    entry = KeptEntry("a", 5.0, 0.0)
    connections = spark.sparkContext._gateway._gateway_client.deque  # type: ignore[union-attr]

    def keep(n: int) -> None:
        ledger.store.keep([(number, b"%d" % n, entry)])

    keep(0)
    before = list(connections)  # those of threads that are gone may be closed meanwhile
    for n in range(1, 9):
        thread = threading.Thread(target=keep, args=(n,))
        thread.start()
        thread.join()
    assert [connection for connection in connections if connection not in before] == []


@pytest.mark.usefixtures("spark")
def test_names_of_files(folder: str, place: Path) -> None:
    shelf = catalyst.HadoopFolder(folder)
    assert shelf.names() == []
    place.mkdir()
    assert shelf.names() == []
    for name in ("a", "b, c.parquet", ".c"):
        (place / name).touch()
    assert sorted(shelf.names()) == [".c", "a", "b, c.parquet"]
    with pytest.raises(FileNotFoundError):
        shelf.fetch("gone", place / "here")
    shelf.delete(["a", "gone"])
    assert sorted(shelf.names()) == [".c", "b, c.parquet"]
