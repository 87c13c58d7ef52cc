"""Answers in a folder that applications share: found by all, merged, removed, whatever fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import LedgerError
from eddyline.keeping import shared_store
from eddyline.keeping.answer_files import SCHEMA
from eddyline.keeping.answer_store import KeptEntry
from eddyline.keeping.shared_store import MOST_FILES, SharedStore


class Shelf:
    """A folder in memory, which fails when it is told to."""

    url = "shelf://answers"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.threads: set[int] = set()
        self.before: dict[str, Callable[[], None]] = {}

    def _begin(self, what: str) -> None:
        self.threads.add(threading.get_ident())
        self.before.pop(what, lambda: None)()

    def names(self) -> list[str]:
        self._begin("names")
        return list(self.files)

    def fetch(self, name: str, into: Path) -> None:
        self._begin("fetch")
        if name not in self.files:
            raise FileNotFoundError(name)
        self.fetched.append(name)
        into.write_bytes(self.files[name])

    def put(self, file: Path, draft: str, name: str) -> None:
        self.files[draft] = file.read_bytes()[:10]
        self._begin("put")
        del self.files[draft]
        self.files[name] = file.read_bytes()

    def delete(self, names: Iterable[str]) -> None:
        self._begin("delete")
        for name in names:
            self.files.pop(name, None)


def fail() -> None:
    raise PermissionError("read only")


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def opened(shelf: Shelf) -> Iterator[Callable[[], SharedStore]]:
    stores: list[SharedStore] = []

    def store() -> SharedStore:
        stores.append(SharedStore(shelf, now=lambda: 1_000.0))
        return stores[-1]

    yield store
    for each in stores:
        each.close()


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def keep(store: SharedStore, *numbers: int, written: float = 5.0, answer: str = "a") -> int:
    function = store.function("f", "1", "(long) -> string", "USD")
    store.keep((function, key(n), KeptEntry(f"{answer}{n}", written, 0.5)) for n in numbers)
    return function


def found(store: SharedStore, *numbers: int) -> dict[int, object]:
    function = store.function("f", "1", "(long) -> string", "USD")
    entries = store.find(function, [key(n) for n in numbers])
    return {int.from_bytes(name, "big"): entry.answer for name, entry in entries.items()}


def test_what_one_keeps_others_find(opened: Callable[[], SharedStore], shelf: Shelf) -> None:
    first, early = opened(), opened()
    other = first.function("g", "1", "", "")
    answers = ["", "ß\0", None, 7, -(2**63), b"", b"\0a", 1.5]
    entries = {key(n): KeptEntry(answer, 1.0 + n, 0.5) for n, answer in enumerate(answers)}
    first.keep((other, name, entry) for name, entry in entries.items())
    keep(first, 1, 2)
    late = opened()
    assert late.find(late.function("g", "1", "", ""), list(entries)) == entries
    assert found(late, 1, 2, 3) == {1: "a1", 2: "a2"}
    assert found(early, 1) == {}
    early.refresh()
    assert found(early, 1) == {1: "a1"}
    assert late.size() == early.size() == sum(map(len, shelf.files.values()))
    shelf.fetched.clear()
    early.refresh()
    assert shelf.fetched == []


def test_the_newest_counts_in_whatever_order_files_are_read(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    one = opened()
    for written in (7.0, 9.0, 8.0):
        keep(one, 1, written=written, answer=f"{written}-")
    for files in (dict(shelf.files), dict(reversed(shelf.files.items()))):
        shelf.files = files
        assert found(opened(), 1) == {1: "9.0-1"}


def test_small_files_are_merged_and_nothing_is_lost(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    one = opened()
    function = one.function("f", "1", "(long) -> string", "USD")
    chance = random.Random(0)
    texts = (f"{chance.randbytes(300).hex()} large{n}" for n in range(2_000))
    one.keep((function, key(n), KeptEntry(text, 1.0, 0.5)) for n, text in enumerate(texts))
    (large,) = shelf.files
    for n in range(2 * MOST_FILES + 5):
        keep(one, n % 10, written=2.0 + n, answer=f"{n}-")
    assert len(shelf.files) <= MOST_FILES
    assert large in shelf.files  # is not written again for some new ones
    for store in (one, opened()):
        newest = found(store, *range(2_000))
        assert len(newest) == 2_000
        last = 2 * MOST_FILES + 4
        assert newest[last % 10] == f"{last}-{last % 10}"
        assert str(newest[10]).endswith("large10")


def test_two_that_merge_at_once_lose_nothing(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    one, other = opened(), opened()
    for n in range(MOST_FILES // 2):
        keep(one, n)
        keep(other, 100 + n)
    expected = {*range(MOST_FILES // 2), *range(100, 100 + MOST_FILES // 2)}

    def meanwhile() -> None:
        """Merge while the first is about to delete what it has merged."""
        keep(other, 200)

    one.refresh()
    other.refresh()
    shelf.before["delete"] = meanwhile
    keep(one, 300)
    assert len(shelf.files) <= 3
    numbers = range(400)
    assert found(opened(), *numbers).keys() == expected | {200, 300}
    for store in (one, other):
        store.refresh()
        assert found(store, *numbers).keys() == expected | {200, 300}


def test_a_file_that_goes_while_it_is_read_is_in_the_next_list(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    one, late = opened(), opened()
    keep(one, 1)
    keep(one, 2)

    def merge() -> None:
        one.remove([one.function("f", "1", "(long) -> string", "USD")], [key(2)], None)

    shelf.before["fetch"] = merge
    late.refresh()
    assert found(late, 1, 2) == {1: "a1"}


def test_what_is_none_of_ours_does_not_count(
    opened: Callable[[], SharedStore], shelf: Shelf, tmp_path: Path
) -> None:
    keep(opened(), 1)
    (whole,) = shelf.files.values()
    pq.write_table(pa.table({"key": [b"1"]}), tmp_path / "foreign")
    others = {
        f".answers-{'0' * 32}.parquet.writing": whole,
        f".answers-{'0' * 32}.parquet.crc": b"crc",
        "part-0.parquet": whole,
        f"answers-{'1' * 32}.parquet": b"",
        f"answers-{'2' * 32}.parquet": whole[:-20],
        f"answers-{'3' * 32}.parquet": (tmp_path / "foreign").read_bytes(),
    }
    shelf.files |= others
    store = opened()
    assert found(store, 1) == {1: "a1"}
    assert sum(each.entries for each in store.functions()) == 1
    assert store.remove([keep(store, 2)], [key(1)], None) == 1
    assert others.items() <= shelf.files.items()
    assert found(opened(), 1, 2) == {2: "a2"}


def test_what_a_newer_eddyline_has_written_is_said(
    opened: Callable[[], SharedStore], shelf: Shelf, tmp_path: Path
) -> None:
    newer = SCHEMA.with_metadata({"eddyline.answers": "2"})
    pq.write_table(newer.empty_table(), tmp_path / "newer")
    shelf.files[f"answers-{'1' * 32}.parquet"] = (tmp_path / "newer").read_bytes()
    with pytest.raises(LedgerError, match=r"newer Eddyline \(format 2\)"):
        opened()


def test_what_is_removed_does_not_come_back(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    one, other = opened(), opened()
    function = keep(one, *range(6))
    keep(one, 6, written=50.0)
    keep(one, 7, written=5_000.0)  # by a clock that is ahead
    before = dict(shelf.files)
    other.refresh()
    assert one.remove([function], [key(1), key(2), key(99)], None) == 2
    assert one.remove([function], None, 10.0) == 4
    assert one.remove([function], [key(1)], None) == 0
    assert len(shelf.files) == 1
    shelf.files |= before  # as one who was merging them has put them again
    other.refresh()
    for store in (one, other, opened()):
        assert found(store, *range(9)) == {6: "a6", 7: "a7"}
    assert one.remove([function], None, None) == 2
    keep(one, 1, 7, written=5_001.0)
    for store in (one, opened()):
        assert found(store, *range(9)) == {1: "a1", 7: "a7"}


def test_spared_calls_of_all_applications_are_added_once(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    one, other = opened(), opened()
    function = keep(one, 1)
    for store in (one, other):
        number = store.function("f", "1", "(long) -> string", "USD")
        store.keep([], [(number, 3, 1.5)])
        store.keep([], [(number, 1, 0.5)])  # has no file of its own so soon
        keep(store, 2)
    files = dict(shelf.files)
    assert one.remove([function], [key(1)], None) == 1
    shelf.files |= files
    for store in (one, other, opened()):
        (kept,) = store.functions()
        assert (kept.entries, kept.hits, kept.saved, kept.spent) == (1, 8, 4.0, 0.5)


def test_a_folder_that_cannot_be_written_is_left_alone_for_a_while(
    opened: Callable[[], SharedStore], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    shelf.before["put"] = fail
    with pytest.raises(LedgerError, match="answers cannot be written: read only"):
        keep(store, 1)
    with pytest.raises(LedgerError, match="read only"):  # as nothing is tried
        keep(store, 2)
    assert found(store, 1, 2) == {}
    monkeypatch.setattr(shared_store, "_REST", 0.0)
    keep(store, 3)
    assert found(opened(), 1, 2, 3) == {3: "a3"}


def test_one_who_must_not_delete_keeps_all_the_same(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    store = opened()
    for n in range(MOST_FILES + 3):
        shelf.before["delete"] = fail
        keep(store, n)
    assert len(shelf.files) == MOST_FILES + 4  # one merger was tried, and not with each group
    assert len(found(opened(), *range(100))) == MOST_FILES + 3


def test_a_folder_that_is_deleted_is_empty(opened: Callable[[], SharedStore], shelf: Shelf) -> None:
    store = opened()
    keep(store, 1)
    shelf.files.clear()
    store.refresh()
    assert store.is_empty
    assert found(store, 1) == {}
    keep(store, 1)
    assert found(opened(), 1) == {1: "a1"}


def test_a_folder_that_cannot_be_listed_is_said(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    shelf.before["names"] = fail
    with pytest.raises(LedgerError, match="cannot be read: read only"):
        opened()


def test_the_folder_is_used_from_one_thread(
    opened: Callable[[], SharedStore], shelf: Shelf
) -> None:
    store = opened()
    threads = [threading.Thread(target=keep, args=(store, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.functions()
    assert len(shelf.threads) == 1
    assert len(found(store, *range(4))) == 4


def test_the_index_is_gone_with_the_store(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = SharedStore(shelf)
    keep(store, 1)
    assert len(list(tmp_path.iterdir())) == 1
    store.close()
    assert list(tmp_path.iterdir()) == []
