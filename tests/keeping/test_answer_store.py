"""Answers on disk: what was kept is there, whatever happened to whoever kept it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from eddyline.errors import LedgerError
from eddyline.keeping.answer_store import FILE, AnswerStore, KeptEntry

ONE = KeptEntry("answer", 5.0, 0.25)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    opened = AnswerStore(tmp_path / "answers")
    yield opened
    opened.close()


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_what_is_kept_is_found_by_others(store: AnswerStore) -> None:
    number = store.function("f", "1", "(long) -> string", "USD")
    entries = {
        key(place): KeptEntry(answer, 1.0 + place, 0.5)
        for place, answer in enumerate(["text", "", None, 7, -(2**63), b"", b"\0a", "\0", 1.5])
    }
    store.keep((number, name, entry) for name, entry in entries.items())
    other = AnswerStore(store.path.parent)
    assert other.function("f", "1", "(long) -> string", "USD") == number
    assert other.find(number, [*entries, key(99)]) == entries
    assert other.find(other.function("f", "2", "(long) -> string", "USD"), list(entries)) == {}
    other.close()


def test_more_keys_than_a_statement_takes(store: AnswerStore) -> None:
    number = store.function("f", "1", "", "")
    store.keep((number, key(n), KeptEntry(n, 0.0, 0.0)) for n in range(0, 3_000, 2))
    found = store.find(number, [key(n) for n in range(3_000)])
    assert sorted(entry.answer for entry in found.values()) == list(range(0, 3_000, 2))  # type: ignore[type-var]


def test_figures_and_removal(store: AnswerStore) -> None:
    first = store.function("f", "1", "", "USD")
    second = store.function("g", "1", "", "")
    store.keep(
        [(first, key(n), KeptEntry("x", float(n), 0.5)) for n in range(4)], [(first, 3, 1.5)]
    )
    store.keep([(second, key(0), ONE)])
    kept, other = store.functions()
    assert (kept.name, kept.entries, kept.hits, kept.saved, kept.spent) == ("f", 4, 3, 1.5, 2.0)
    assert (kept.oldest, kept.newest, kept.size) == (0.0, 3.0, 4 * (16 + 1 + 16))
    assert store.remove([first, second], [key(0), key(9)], None) == 2
    assert store.remove([first], None, 2.0) == 1
    assert [(each.name, each.entries) for each in store.functions()] == [("f", 2)]
    assert store.remove([first], None, None) == 2
    assert store.functions() == []
    assert other.entries == 1


def test_whoever_removes_answers_gives_nobody_their_number(store: AnswerStore) -> None:
    number = store.function("f", "1", "", "")
    store.keep([(number, key(0), ONE)])
    assert store.remove([number], None, None) == 1
    assert store.function("g", "1", "", "") != number
    store.keep([(number, key(1), ONE)])  # by an application that holds it still
    assert [(each.name, each.entries) for each in store.functions()] == [("f", 1)]


def test_nobody_else_may_read_it(store: AnswerStore) -> None:
    store.keep([(store.function("f", "1", "", ""), key(0), ONE)])
    assert {path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()} == {0o600}


def test_a_write_is_whole_or_not_at_all(store: AnswerStore) -> None:
    number = store.function("f", "1", "", "")

    def failing() -> Iterator[tuple[int, bytes, KeptEntry]]:
        yield number, key(1), ONE
        yield number, key(2), KeptEntry(object(), 0.0, 0.0)  # type: ignore[arg-type]

    with pytest.raises(LedgerError, match="cannot be written"):
        store.keep(failing())
    assert store.find(number, [key(1), key(2)]) == {}
    store.keep([(number, key(1), ONE)])
    assert store.find(number, [key(1)]) == {key(1): ONE}


def test_a_full_disk_is_said_and_forgets_nothing(store: AnswerStore) -> None:
    number = store.function("f", "1", "", "")
    store.keep([(number, key(1), ONE)])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count={pages + 1}")
    with pytest.raises(LedgerError, match="full"):
        store.keep([(number, key(2), KeptEntry(b"x" * 100_000, 0.0, 0.0))])
    assert list(store.find(number, [key(1), key(2)])) == [key(1)]
    store._connection.execute(f"PRAGMA max_page_count={pages + 1_000}")
    store.keep([(number, key(2), ONE)])
    assert len(store.find(number, [key(1), key(2)])) == 2


def test_several_write_at_a_time(store: AnswerStore) -> None:
    number = store.function("f", "1", "", "")
    others = [AnswerStore(store.path.parent) for _ in range(3)]

    def write(other: AnswerStore, first: int) -> None:
        for n in range(first, first + 40):
            other.keep([(number, key(n), KeptEntry(n, 0.0, 0.0))], [(number, 1, 0.0)])

    threads = [
        threading.Thread(target=write, args=(other, 100 * place))
        for place, other in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (kept,) = store.functions()
    assert (kept.entries, kept.hits) == (120, 120)
    for other in others:
        other.close()


WRITER = """
    import sys
    from pathlib import Path
    from eddyline.keeping.answer_store import AnswerStore, KeptEntry
    store = AnswerStore(Path(sys.argv[1]))
    number = store.function("f", "1", "", "")
    for n in range(1_000_000):
        store.keep([(number, n.to_bytes(16, "big"), KeptEntry(n, 0.0, 0.0))])
        print(n, flush=True)  # it is on disk
"""


def test_what_a_killed_process_had_kept_is_there(tmp_path: Path) -> None:
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(50)]
        os.kill(writer.pid, signal.SIGKILL)
        told += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        whole = [int(line) for line in told if line.endswith(b"\n")]
        store = AnswerStore(tmp_path)
        number = store.function("f", "1", "", "")
        found = store.find(number, [key(n) for n in whole])
        assert [found[key(n)].answer for n in whole] == whole
        assert len(whole) <= store.functions()[0].entries
        store.close()


def test_what_is_no_ledger_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("a text that is much longer than what SQLite has at a beginning\n")
    with pytest.raises(LedgerError, match="not a database"):
        AnswerStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be opened"):
        AnswerStore(tmp_path / "file")


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("CREATE TABLE songs(title TEXT)")
        with pytest.raises(LedgerError, match="of something else, with the table songs"):
            AnswerStore(tmp_path)
        other.execute("INSERT INTO songs VALUES('Hey')")  # nothing holds it up
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    AnswerStore(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("PRAGMA user_version=2")
    connection.close()
    with pytest.raises(LedgerError, match="newer Eddyline"):
        AnswerStore(tmp_path)
