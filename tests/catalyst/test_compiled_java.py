"""Compiled Java is kept on disk; whatever stands there instead of it is compiled again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.catalyst.compiled_java import (
    VARIABLE,
    ClassFiles,
    kept_classes,
    loader_with,
    parent_of_all,
)

CLASSES = {"a.Pipeline": bytes(range(256)) * 9, "a.Pipeline$Failed": b"\xca\xfe"}


def the_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_kept_classes_are_read_for_the_same_version_only(tmp_path: Path) -> None:
    files = ClassFiles(tmp_path / "not" / "there")
    assert files.read("Pipeline", "1") is None
    files.write("Pipeline", "1", CLASSES)
    assert files.read("Pipeline", "1") == CLASSES
    assert files.read("Pipeline", "2") is None
    assert files.read("PlanReader", "1") is None


@pytest.mark.parametrize(
    "damaged", [b"", b"nothing of the kind" * 9, *(n for n in (20, 200, -3))], ids=repr
)
def test_damaged_files_are_none(tmp_path: Path, damaged: bytes | int) -> None:
    files = ClassFiles(tmp_path)
    files.write("Pipeline", "1", CLASSES)
    file = the_file(tmp_path)
    file.write_bytes(damaged if isinstance(damaged, bytes) else file.read_bytes()[:damaged])
    assert files.read("Pipeline", "1") is None
    files.write("Pipeline", "1", CLASSES)  # whoever compiles again mends it
    assert files.read("Pipeline", "1") == CLASSES


def test_no_changed_byte_changes_a_class(tmp_path: Path) -> None:
    files = ClassFiles(tmp_path)
    files.write("Pipeline", "1", CLASSES)
    file = the_file(tmp_path)
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        assert files.read("Pipeline", "1") is None


@pytest.mark.skipif(os.name != "posix", reason="nobody owns files")
def test_what_others_may_write_is_not_read(tmp_path: Path) -> None:
    files = ClassFiles(tmp_path)
    files.write("Pipeline", "1", CLASSES)
    the_file(tmp_path).chmod(0o666)
    assert files.read("Pipeline", "1") is None
    the_file(tmp_path).chmod(0o600)
    tmp_path.chmod(0o777)
    assert files.read("Pipeline", "1") is None
    files.write("Pipeline", "2", CLASSES)
    assert len(list(tmp_path.iterdir())) == 1


def test_old_versions_go_and_no_draft_stays(tmp_path: Path) -> None:
    files = ClassFiles(tmp_path)
    for number in range(12):
        files.write("Pipeline", str(number), CLASSES)
        os.utime(tmp_path / f"Pipeline-{number}.classes", (number, number))
    files.write("PlanReader", "1", CLASSES)
    files.write("Pipeline", "last", CLASSES)
    assert {file.name for file in tmp_path.iterdir()} == {
        *(f"Pipeline-{number}.classes" for number in range(5, 12)),
        *("Pipeline-last.classes", "PlanReader-1.classes"),
    }


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = ClassFiles(tmp_path / "file" / "folder")
    files.write("Pipeline", "1", CLASSES)
    assert files.read("Pipeline", "1") is None


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert kept_classes() is None
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = kept_classes()
    assert kept is not None
    kept.write("Pipeline", "1", CLASSES)
    assert the_file(tmp_path / "eddyline").name == "Pipeline-1.classes"


def kind_of(loader: JavaObject) -> str:
    assert loader.loadClass("eddyline.catalyst.Pipeline").getSimpleName() == "Pipeline"
    return str(loader.getClass().getSimpleName())


def test_kept_classes_are_loaded_and_false_ones_compiled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = SparkContext._jvm
    assert spark is not None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    parent = parent_of_all(jvm)
    compiled = kind_of(loader_with(jvm, "Pipeline", parent))
    file = the_file(tmp_path)
    good = file.read_bytes()
    loaded = loader_with(jvm, "Pipeline", parent)
    assert kind_of(loaded) == "ByteArrayClassLoader"
    version = file.stem.removeprefix("Pipeline-")
    false = {"eddyline.catalyst.Pipeline": b"\xca\xfe\xba\xbe no class"}
    ClassFiles(tmp_path).write("Pipeline", version, false)
    assert kind_of(loader_with(jvm, "Pipeline", parent)) == compiled
    assert len(file.read_bytes()) == len(good)  # mended
    assert kind_of(loader_with(jvm, "Pipeline", parent)) == "ByteArrayClassLoader"
