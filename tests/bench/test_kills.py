"""A job of standing queries that is killed loses no result, and puts none out twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.standing import kills


def test_a_killed_driver_and_worker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A driver is killed, then a worker and its driver, while queries come and go."""
    arguments = ["--kills", "2", "--batches", "8", "--seed", "3", "--directory", str(tmp_path)]
    assert kills.main(arguments) == 0
    said = capsys.readouterr().out
    assert "3 kills (2 of a driver, 1 of a worker)" in said
    assert "0 differ" in said
    assert "first-aggregate" in {
        path.name.removeprefix("query=") for path in (tmp_path / "out").iterdir()
    }
