"""Spilling: every join result arises in exactly one part, in bounded memory, leaving no files."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.errors import EddylineError, SpillError
from eddyline.exchange import spill as spilling
from eddyline.exchange.spill import WORKING_SHARE, Spill, SpillTotals, spill_folder
from tests.planner.joins.generated import (
    Case,
    Row,
    cases,
    comparable,
    joined_rows,
    rows_of,
    two_of_integers,
)
from tests.properties import examples

pytestmark = pytest.mark.slow(20)


def open_files(folder: Path) -> list[str]:
    """Return the files in a folder that this process has open, nameless ones included."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux tells which files a process has open")
    found = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            target = str(each.readlink())
        except OSError:  # the one with which the folder is read
            continue
        if target.startswith(str(folder)):
            found.append(target)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing must be left."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []


def filled(case: Case, memory: int, folder: Path, step: int = 1000) -> Spill:
    """Return a spill with all rows of a case, brought in turns."""
    spill = Spill(case.graph, memory, str(folder))
    longest = max(map(len, case.rows))
    for start in range(0, longest, step):
        for relation in range(len(case.rows)):
            batch = case.batch(relation, start, start + step)
            if batch.num_rows:
                spill.add(relation, batch)
    return spill


def results(spill: Spill, case: Case) -> Counter[tuple[int, ...]]:
    """Return what the parts join to, all together."""
    found: Counter[tuple[int, ...]] = Counter()
    for inputs in spill.parts():
        found.update(joined_rows(rows_of(inputs), case.equalities))
    return found


@examples(60)
@given(
    case=cases(most_relations=3, most_rows=8),
    memory=st.sampled_from([1, 200, 2_000, 10**9]),
    step=st.integers(1, 4),
)
def test_parts_together_join_to_the_whole(case: Case, memory: int, step: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        # Eight rows that no part can hold are split into thousands of files before it is given up.
        patch.setattr(spilling, "DEEPEST", 4)
        spill = filled(case, memory, Path(name), step)
        assert results(spill, case) == case.joined()
        spill.close()
        assert os.listdir(name) == []  # noqa: PTH208 - a name is what there is


def test_nothing_is_spilled_that_fits(folder: Path) -> None:
    case = two_of_integers(range(1000), range(1000))
    spill = filled(case, 10**9, folder)
    (inputs,) = spill.parts()
    assert [comparable(rows) for rows in rows_of(inputs)] == [comparable(r) for r in case.rows]
    assert spill.totals == SpillTotals()


def test_parts_fit_into_the_memory(folder: Path) -> None:
    keys = np.arange(20_000).tolist()
    case = two_of_integers(keys, keys)
    memory = 100_000
    spill = filled(case, memory, folder)
    seen: Counter[Row] = Counter()
    for inputs in spill.parts():
        rows = rows_of(inputs)
        built = min(len(side) for side in rows) * 16
        assert built <= WORKING_SHARE * memory
        for side, own in enumerate(rows):
            seen.update((side, *row) for row in own)
    # Every row is in one part: nothing joins twice.
    assert seen == Counter((side, n, n) for side in (0, 1) for n in keys)
    assert spill.totals.bytes >= 2 * 20_000 * 16
    assert spill.totals.files >= 32
    spill.close()


def test_what_is_still_too_large_is_split_again(folder: Path) -> None:
    keys = np.arange(4_000).tolist()
    case = two_of_integers(keys, keys)
    spill = filled(case, 3_000, folder)
    found = Counter(n for inputs in spill.parts() for n in joined_in(inputs))
    assert found == Counter(keys)
    assert spill.totals.deepest > 1
    spill.close()


def joined_in(inputs: Any) -> Iterator[int]:  # noqa: ANN401 - inputs of a part
    """Yield the numbers of the rows of two inputs whose keys are equal, where keys are unique."""
    left, right = rows_of(inputs)
    keys = {key for key, _ in right}
    yield from (number for key, number in left if key in keys)


def test_one_key_that_has_almost_all_rows(folder: Path) -> None:
    left = [7] * 900 + list(range(100))
    right = [7] * 600 + list(range(50))
    case = two_of_integers(left, right)
    memory = 4_000
    spill = filled(case, memory, folder)
    found: Counter[tuple[int, int]] = Counter()
    for inputs in spill.parts():
        rows = rows_of(inputs)
        assert min(len(side) for side in rows) * 24 <= memory
        for key, n in rows[0]:
            found.update((n, m) for other, m in rows[1] if other == key)
    expected = Counter(
        (n, m) for n, key in enumerate(left) for m, other in enumerate(right) if key == other
    )
    assert found == expected
    assert spill.totals.deepest < spilling.DEEPEST
    spill.close()


def test_an_input_without_rows_leaves_nothing_to_do(folder: Path) -> None:
    case = two_of_integers(range(5_000), [])
    spill = filled(case, 1_000, folder)
    assert list(spill.parts()) == []
    spill.close()


def test_what_rows_have_passed_stays_with_them(folder: Path) -> None:
    case = two_of_integers(range(300), range(300))
    spill = Spill(case.graph, 500, str(folder))
    for start in range(0, 300, 50):
        spill.add(0, case.batch(0, start, start + 50), start // 50 % 2)
        spill.add(1, case.batch(1, start, start + 50), 6)
    found = set()
    for inputs in spill.parts():
        for relation, source in enumerate(inputs):
            while (arrival := source.poll()) is not None:
                assert len(arrival.columns) == 2
                for row in arrival.columns[1].to_pylist():
                    found.add((relation, row, arrival.done))
    assert spill.totals.deepest > 1
    expected = {(0, n, n // 50 % 2) for n in range(300)} | {(1, n, 6) for n in range(300)}
    assert found == expected
    spill.close()


def test_whoever_stops_early_leaves_no_files(folder: Path) -> None:
    keys = np.arange(4_000).tolist()
    spill = filled(two_of_integers(keys, keys), 3_000, folder)
    for _ in spill.parts():
        assert open_files(folder)
        break
    spill.close()
    assert open_files(folder) == []


# ---------------------------------------------------------------- what can go wrong


class FullDisk:
    """A file that takes so many bytes and no more."""

    room = 0

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a file has
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        FullDisk.room -= len(data)
        if FullDisk.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)


@pytest.mark.parametrize("room", [0, 500, 20_000, 200_000])
def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Whether it is full at the beginning, in the middle or where a part is split again."""
    make = tempfile.TemporaryFile

    def full(**how: Any) -> FullDisk:  # noqa: ANN401 - as the function that it stands for
        return FullDisk(make(**how))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(FullDisk, "room", room)
    keys = np.arange(4_000).tolist()
    case = two_of_integers(keys, keys)
    with pytest.raises(SpillError, match="the disk is full") as raised:  # noqa: PT012
        spill = filled(case, 3_000, folder)
        for inputs in spill.parts():
            rows_of(inputs)
    assert isinstance(raised.value, EddylineError)
    assert isinstance(raised.value, OSError)
    assert str(folder) in str(raised.value)
    assert "memory=" in str(raised.value)
    assert open_files(folder) == []


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(SpillError, match="cannot be spilled to"):
        filled(two_of_integers(range(100), range(100)), 10, gone)


def test_rows_that_cannot_be_read_again(folder: Path) -> None:
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below
    schema = pa.schema([("c0", pa.int64())])
    with pa.ipc.new_stream(file, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(range(1000))], schema=schema))
    file.truncate(600)
    source = spilling.SpilledScan(file, 1000)
    assert not source.ended
    with pytest.raises(SpillError, match="cannot be read again"):
        source.poll()
    file.close()


def test_the_folder_is_that_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.delenv("LOCAL_DIRS", raising=False)
    assert spill_folder() is None
    monkeypatch.setenv("LOCAL_DIRS", f"{tmp_path},/somewhere/else")
    assert spill_folder() == str(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "missing"))
    assert spill_folder() is None
