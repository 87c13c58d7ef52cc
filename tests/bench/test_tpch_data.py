"""The tables of TPC-H are made once, whole, and outside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.tpch import data

SCALE = 0.001


def test_tables_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = data.tables(SCALE, tmp_path)
    assert sorted(path.stem for path in folder.iterdir()) == list(data.TABLES)
    assert list(tmp_path.iterdir()) == [folder]
    monkeypatch.setattr(data, "_generate", None)  # to be called again would fail
    assert data.tables(SCALE, tmp_path) == folder


def test_a_run_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_half_way(scale: float, folder: Path) -> None:
        folder.mkdir()
        (folder / f"{scale:g}.parquet").touch()
        raise data.GenerationError("no space")

    monkeypatch.setattr(data, "_generate", fails_half_way)
    with pytest.raises(data.GenerationError):
        data.tables(SCALE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_generator_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(data.GenerationError, match="tpchgen-cli failed"):
        data._generate(SCALE, tmp_path / "file")


def test_another_run_that_was_faster_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = data._generate

    def overtaken(scale: float, folder: Path) -> None:
        generate(scale, folder)
        generate(scale, tmp_path / folder.name)

    monkeypatch.setattr(data, "_generate", overtaken)
    folder = data.tables(SCALE, tmp_path)
    assert list(tmp_path.iterdir()) == [folder]


def test_the_cache_is_below_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.default_cache() == tmp_path / "eddyline" / "tpch"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert data.default_cache() == Path.home() / ".cache" / "eddyline" / "tpch"


def test_the_repository_is_no_cache() -> None:
    with pytest.raises(ValueError, match="no place in the repository"):
        data.tables(SCALE, data.REPOSITORY / "bench")


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_is_above_zero(scale: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="above 0"):
        data.tables(scale, tmp_path)
