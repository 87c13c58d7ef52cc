"""A program that uses Eddyline itself is left alone by the plug-in where it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.plugin.applications import is_json, ran

pytestmark = [pytest.mark.spark, pytest.mark.slow(30)]

PROGRAM: Final = str(Path(__file__).with_name("aware.py"))


def test_nothing_is_adapted_twice(tmp_path: Path) -> None:
    run = ran(tmp_path, "spark-submit", PROGRAM)
    assert run.returncode == 0, run.stderr
    said = json.loads(next(filter(is_json, run.stdout.splitlines())))
    assert said["adapted"] == [200, [2_000]]
    assert said["enabled"] == [100, [1_000]]
    assert said["after"] == [50, []]
    assert said["told"] == [500]
