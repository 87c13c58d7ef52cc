"""The plug-in's jar is built from the sources that are there, by whichever compiler is there."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

import pytest

import eddyline
from eddyline.app.cli import main
from eddyline.catalyst.compiled_java import ON_CLASS_PATH, sources
from eddyline.plugin import jar_file

pytestmark = pytest.mark.slow(20)


def names(jar: bytes) -> set[str]:
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def built() -> bytes:
    return Path(eddyline.jar()).read_bytes()


def test_it_has_all_classes_in_their_places(built: bytes) -> None:
    found = names(built)
    assert "eddyline/spark/EddylinePlugin.class" in found
    for source in sources():
        own = f"eddyline/catalyst/{source}.class"
        assert (own if source in ON_CLASS_PATH else f"compiled/{own}") in found
    services = {name for name in found if name.startswith("META-INF")}
    # One that changes plans would do so wherever the jar happens to be.
    assert services == {"META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"}


def test_the_same_sources_give_the_same_bytes(built: bytes) -> None:
    assert jar_file.built(shutil.which("javac")) == built


def test_janino_compiles_it_too(built: bytes) -> None:
    def outer(found: set[str]) -> set[str]:
        return {name for name in found if "$" not in name}

    assert outer(names(jar_file.built(None))) == outer(names(built))


def test_a_mistake_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar_file, "_sources", lambda: {"eddyline.spark.Wrong": "class Wrong {"})
    with pytest.raises(RuntimeError, match="could not be built"):
        jar_file.built(shutil.which("javac"))


def test_the_command_prints_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar"]) == 0
    assert capsys.readouterr().out == f"{eddyline.jar()}\n"
