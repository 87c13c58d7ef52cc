"""Rules of the code that no other tool checks."""

from __future__ import annotations

import re
from pathlib import Path

import eddyline

SOURCE = Path(eddyline.__file__).parent

JVM_HANDLE = re.compile(r"\b_(?:jdf|jvm|jsparkSession|jsc)\b")


def test_only_one_room_touches_the_jvm() -> None:
    touching = {
        str(path.relative_to(SOURCE).parent)
        for path in SOURCE.rglob("*.py")
        if JVM_HANDLE.search(path.read_text(encoding="utf-8"))
    }
    assert touching == {"catalyst"}


def test_the_search_for_jvm_handles_finds_them() -> None:
    assert JVM_HANDLE.search("plan = frame._jdf.queryExecution()")
    assert JVM_HANDLE.search("spark._jsparkSession")
    assert not JVM_HANDLE.search("my_jdf_like_name")
