"""Delimiters of CSV files, and files that are no text."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from eddyline.app import text_files
from eddyline.app.file_errors import UnsuitableFileError
from eddyline.app.text_files import (
    beginning_of,
    delimiter_of,
    one_delimiter,
    peculiarities,
)


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a\tb\n1\t2\n", "\t"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a|b\n1|2\n", "|"),
        ("a\n1\n", None),
        ("", None),
        ("a,b\n", ","),
        ("a\nx, y\nz, w\n", None),
        ('name,"a;b;c"\n1,"d;e;f"\n', ","),
        ('"first, last";age\n"Roe, Jo";3\n"Doe, Al";4\n', ";"),
        ('"a ""; b"";""",c\n"d;e",f\n', ","),
        ('a;b\n"x\ny;z";2\n', ";"),
        ("a,b|c\n1,2\n3,4\n", ","),
        ("a,b;c\n1,x;y\n2,z;w\n", ","),
        ("a;b;c\r\n1;2;3\r\n", ";"),
        ("a;b\n1\n2;3\n4;5\n", ";"),
    ],
)
def test_the_delimiter_is_what_cuts_all_records_alike(text: str, delimiter: str | None) -> None:
    assert delimiter_of(text) == delimiter


def test_a_record_that_is_cut_by_the_end_of_the_look_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("a;b\n" + f"{'x,' * 30_000};2\n" * 3, encoding="utf-8")
    assert beginning_of(file) == "a;b\n" + f"{'x,' * 30_000};2\n"
    assert one_delimiter([file], ",;") == ";"


def test_compressed_files_are_looked_into(tmp_path: Path) -> None:
    gzipped, bzipped = tmp_path / "a.csv.gz", tmp_path / "a.csv.bz2"
    gzipped.write_bytes(gzip.compress(b"a|b\n1|2\n"))
    bzipped.write_bytes(bz2.compress(b"a|b\n1|2\n"))
    assert one_delimiter([gzipped, bzipped], ",|") == "|"


def test_the_name_decides_where_the_text_does_not(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("a\n1\n", encoding="utf-8")
    assert one_delimiter([file], "\t,") == "\t"


def test_files_with_different_delimiters_are_no_table(tmp_path: Path) -> None:
    for name, text in (("a.csv", "a,b\n"), ("b.csv", "a\n"), ("c.csv", "a;b\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UnsuitableFileError, match=r"',' in a\.csv and ';' in c\.csv"):
        one_delimiter(sorted(tmp_path.iterdir()), ",;")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\r", "no text but binary"),
        (b"PAR1\x15\x04\x15", "no text but binary"),
        (gzip.compress(b"a,b\n", mtime=0), r"compressed, so its name must end in \.gz"),
        ("a,b\n".encode("utf-16"), "in UTF-16; save it in UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(UnsuitableFileError, match=complaint):
        beginning_of(file)


def test_other_encodings_and_marks_of_order_are_let_through(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbfa,b\n\xe9,2\n")
    assert beginning_of(file) == "a,b\n\ufffd,2\n"


@pytest.mark.parametrize("content", [b"a,b\n", gzip.compress(b"a,b\n" * 9, mtime=0)[:-9]])
def test_a_damaged_archive_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.csv.gz"
    file.write_bytes(content)
    with pytest.raises(OSError, match=r"damaged|Not a gzipped file"):
        beginning_of(file)


@pytest.mark.parametrize(
    ("content", "broken"),
    [
        (b"a,b\n1,2\n", False),
        (b'a,b\n"x, ""y""",2\n3,"z"\n', False),
        (b'a,b\n"x\ny",2\n', True),
        (b'a,b\r\n1,"x\r\n', True),
        (b'a,b\n1,"', False),
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_lines_that_end_within_quotes_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, chunk: int, *, broken: bool
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    assert peculiarities([file]).broken is broken
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(content))
    assert peculiarities([packed]).broken is broken
    assert peculiarities([file, packed]).broken is broken


def test_what_is_in_utf_8_and_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", 3)
    file = tmp_path / "a.csv"
    file.write_text("a\u00e9\U0001f600b", encoding="utf-8")
    assert peculiarities([file]).misread is None
    other = tmp_path / "b.csv"
    for wrong in (b"a\xe9b", b"ab\xe9"):  # the second ends within a letter
        other.write_bytes(wrong)
        assert peculiarities([file, other]).misread == other
    monkeypatch.setattr(text_files, "LOOKED_THROUGH", 3)
    assert peculiarities([file, other]).misread is None  # so far nobody looks
