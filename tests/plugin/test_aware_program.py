"""A program that uses Eddyline itself is left alone by the plug-in where it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.plugin.applications import is_json, ran

pytestmark = [pytest.mark.spark, pytest.mark.slow(30)]

PROGRAM: Final = str(Path(__file__).with_name("aware.py"))


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What the program has said."""
    run = ran(tmp_path_factory.mktemp("aware"), "spark-submit", PROGRAM)
    assert run.returncode == 0, run.stderr
    found: Mapping[str, Any] = json.loads(next(filter(is_json, run.stdout.splitlines())))
    return found


def test_nothing_is_adapted_twice(said: Mapping[str, Any]) -> None:
    assert said["adapted"] == [200, [2_000]]
    assert said["enabled"] == [100, [1_000]]
    assert said["after"] == [50, []]
    assert said["told"] == [500]


def test_disable_keeps_the_plug_in_off_until_it_is_set(said: Mapping[str, Any]) -> None:
    assert {what: on for what, on in said.items() if isinstance(on, bool)} == {
        "off in a block": False,
        "on after it": True,
        "on beside what tells of limits": True,
        "off": False,
        "enabled again": True,
        "off in a block again": False,
        "off still": False,
        "set": True,
    }
