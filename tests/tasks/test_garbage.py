"""Which collections after tasks look at what, and in which processes."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from eddyline.tasks import garbage
from eddyline.tasks.garbage import Collections, look_among_what_is_new


def test_what_is_in_use_is_kept_after_fewer_and_fewer_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: Counter[str] = Counter()

    def collect() -> int:
        collected["tasks"] += 1
        return 10 * collected["tasks"]

    kept: list[int] = []
    counted = SimpleNamespace(collect=collect, freeze=lambda: kept.append(collected["tasks"]))
    monkeypatch.setattr(garbage, "gc", counted)
    collections = Collections()
    assert [collections.collect() for _ in range(20)] == list(range(10, 210, 10))
    assert kept == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("name", ["__main__", "pyspark.daemon"])
def test_a_daemon_collects_so_from_then_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    daemon = SimpleNamespace(manager=print, gc=gc)
    for other in ("__main__", "pyspark.daemon"):
        monkeypatch.setitem(sys.modules, other, SimpleNamespace(gc=gc))
    monkeypatch.setitem(sys.modules, name, daemon)
    look_among_what_is_new()
    first = daemon.gc
    assert isinstance(first.collect.__self__, Collections)
    assert first.get_threshold() == gc.get_threshold()  # what else it may ask for
    look_among_what_is_new()
    assert daemon.gc is first


def test_other_programs_collect_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    program = SimpleNamespace(gc=gc)
    monkeypatch.setitem(sys.modules, "__main__", program)
    monkeypatch.delitem(sys.modules, "pyspark.daemon", raising=False)
    look_among_what_is_new()
    assert program.gc is gc
