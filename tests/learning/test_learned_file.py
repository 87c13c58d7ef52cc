"""What was learned stands in a file, whole or not at all, and no file is needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eddyline.learning.learned_file import OFTEN, LearnedFile, keep_learned
from eddyline.learning.learned_store import LearnedStore
from tests.learning.test_learned_store import block, reported, saw


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def kept(path: Path) -> LearnedStore:
    store = LearnedStore()
    keep_learned(store, path)
    return store


def test_the_next_application_begins_with_it(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    first = kept(path)
    reported(first, block("f"), saw(1000, 100, 0.5))
    assert not path.exists()  # not each time
    first.save()
    assert [each.name for each in tmp_path.iterdir()] == ["learned.json"]
    second = kept(path)
    assert second.told(block("f")) == first.told(block("f")) != ()
    other = tmp_path / "other.json"
    reported(second, block("g"), saw(1000, 100, 0.5))
    keep_learned(second, other)  # in place of the first, which is written once more
    assert len(kept(path)) == 2
    second.save()
    assert not other.exists()  # nothing is new


def test_it_is_written_now_and_then(tmp_path: Path) -> None:
    clock, data = Clock(), {"predicates": [1]}
    file = LearnedFile(tmp_path / "file", lambda: data, clock)
    file.changed()
    assert not file.path.exists()
    clock.seconds = OFTEN
    file.changed()
    written = file.path.read_text()
    data["predicates"] = [2]
    file.changed()
    assert file.path.read_text() == written
    clock.seconds *= 2
    file.changed()
    assert file.path.read_text() != written


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1, 2]",
        b'{"format": 0}',
        b'{"format": 1, "predicates": [{"name": "f"}]}',
        b'{"format": 1, "predicates": [{"na',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_left_aside_with_one_warning(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "learned.json"
    path.write_bytes(content)
    with caplog.at_level(logging.INFO, "eddyline"):
        store = kept(path)
    (warning,) = caplog.records
    assert (warning.levelno, len(store)) == (logging.WARNING, 0)
    assert str(path) in warning.getMessage()
    store.save()
    assert path.read_bytes() == content  # nothing was learned
    reported(store, block("f"), saw(1000, 100, 0.5))
    store.save()
    assert len(kept(path)) == 1


def test_a_missing_file_is_no_matter(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "eddyline"):
        kept(tmp_path / "none.json")
    assert not caplog.records


def test_a_file_that_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = kept(tmp_path / "no" / "such" / "folder.json")
    for _ in range(2):
        reported(store, block("f"), saw(1000, 100, 0.5))
        store.save()
    (warning,) = caplog.records
    assert "cannot be kept" in warning.getMessage()
    data: Mapping[str, Any] = store.as_data()
    assert data["predicates"]
