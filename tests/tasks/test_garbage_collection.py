"""The collections after tasks: when survivors are frozen, and in which processes."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import pytest

from eddyline.tasks import garbage_collection
from eddyline.tasks.garbage_collection import FreezingCollector, collect_cheaply


def test_survivors_are_frozen_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    frozen: list[int] = []

    def collect() -> int:
        collected.append(10 * len(collected))
        return collected[-1]

    counting = SimpleNamespace(collect=collect, freeze=lambda: frozen.append(len(collected)))
    monkeypatch.setattr(garbage_collection, "gc", counting)
    collector = FreezingCollector()
    assert [collector.collect() for _ in range(20)] == list(range(0, 200, 10))
    assert frozen == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("name", ["__main__", "pyspark.daemon"])
def test_a_daemon_gets_one_collector(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("__main__", "pyspark.daemon"):
        monkeypatch.setitem(sys.modules, other, SimpleNamespace(gc=gc))
    daemon = SimpleNamespace(manager=print, gc=gc)
    monkeypatch.setitem(sys.modules, name, daemon)
    collect_cheaply()
    installed = daemon.gc
    assert isinstance(installed.collect.__self__, FreezingCollector)
    assert installed.get_threshold() == gc.get_threshold()  # its other functions are Python's
    collect_cheaply()
    assert daemon.gc is installed


def test_other_programs_collect_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    program = SimpleNamespace(gc=gc)
    monkeypatch.setitem(sys.modules, "__main__", program)
    monkeypatch.delitem(sys.modules, "pyspark.daemon", raising=False)
    collect_cheaply()
    assert program.gc is gc
