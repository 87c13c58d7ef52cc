"""Kernels for few rows give what the compiled ones give, and leave the same behind."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage import few_rows, kernels, text_kernels
from eddyline.engine.storage.on_first_use import OnFirstUse
from tests.fresh_process import printed_lines
from tests.properties import examples

SLOTS = 12


def both(
    name: str, module: ModuleType, *arguments: object, written: tuple[int, ...]
) -> tuple[Any, list[npt.NDArray[Any]]]:
    """Call both forms of a kernel, each with arrays of its own; return what both gave and wrote."""
    outcomes = []
    for form in (getattr(module, name), getattr(few_rows, name)):
        own: list[Any] = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        outcomes.append((form(*own), [own[place] for place in written]))
    (compiled, left), (given, also_left) = outcomes
    assert compiled == given
    for one, other in zip(left, also_left, strict=True):
        np.testing.assert_array_equal(one, other)
    return given, also_left


@st.composite
def keys(draw: st.DrawFn, least: int, size: int) -> tuple[npt.NDArray[np.int64], Any, bool]:
    offsets = draw(st.lists(st.integers(0, size - 1), max_size=20))
    words = np.array([least + offset for offset in offsets], np.int64)
    valid = draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    return words, np.array(valid, np.bool_), draw(st.booleans())


LEASTS = st.sampled_from([0, 5, -7, -(2**63), 2**63 - 2 * SLOTS])


@examples(200)
@given(st.data())
def test_indexes_are_the_same(data: st.DataObject) -> None:
    least = data.draw(LEASTS)
    words, valid, has_nulls = data.draw(keys(least, SLOTS))
    middle = data.draw(st.integers(0, len(words)))
    heads, chain = np.full(SLOTS, -1, np.int32), np.full(len(words), 99, np.int32)
    repeated = False
    for start, stop in ((0, middle), (middle, len(words))):
        both("span", kernels, words, valid, has_nulls, start, stop, written=())
        taken_in = (words, valid, has_nulls, start, stop, heads, chain, np.int64(least))
        again, (heads, chain) = both("link_dense", kernels, *taken_in, written=(5, 6))
        repeated |= bool(again)
    probing, is_key, has_null_keys = data.draw(
        keys(max(least - 3, -(2**63)), SLOTS + 6).filter(lambda drawn: len(drawn[0]) > 0)
    )
    places = st.lists(st.integers(0, len(probing) - 1), max_size=20)
    rows = np.array(data.draw(places), np.int64)
    dead = np.array(data.draw(st.lists(st.booleans(), min_size=20, max_size=20)), np.bool_)
    found = np.zeros(len(rows), np.bool_)
    has_dead = data.draw(st.booleans())
    index = (heads, chain, np.int64(least))
    arguments = (probing, rows, is_key, has_null_keys, *index, dead, has_dead, found)
    both("exist_dense", kernels, *arguments, written=(9,))
    if repeated:
        return
    low, high = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 20))
    room = np.full(len(rows) + 1, 7, np.int64)
    of_key = (heads, np.int64(least), low, high)
    pairs = []
    for form in (kernels, few_rows):
        positions, matches = room.copy(), room.copy()
        count = form.probe_unique(probing, rows, *of_key, positions, matches)
        pairs.append((positions[:count].tolist(), matches[:count].tolist()))
    assert pairs[0] == pairs[1]


@examples(100)
@given(
    st.lists(st.binary(max_size=5), min_size=1, max_size=8),
    st.lists(st.integers(0, 7), max_size=12),
    st.sampled_from(["i4", "i8"]),
)
def test_texts_are_the_same(texts: list[bytes], drawn: list[int], kind: str) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    rows: npt.NDArray[Any] = np.array([place % len(texts) for place in drawn], kind)
    new = np.empty(len(rows) + 1, np.int64)
    total, (new,) = both("text_sizes", text_kernels, offsets, rows, new, written=(2,))
    gathered = np.zeros(total, np.uint8)
    arguments = (offsets, data, rows, new, gathered)
    _, (gathered,) = both("gather_texts", text_kernels, *arguments, written=(4,))
    assert gathered.tobytes() == b"".join(texts[row] for row in rows)


def test_compiled_ones_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows._Done, "until", 10)
    monkeypatch.setattr(few_rows._Done, "rows", 0)
    standing_in: Callable[..., Any] = OnFirstUse("tests.engine.storage.no_such_module").span
    assert standing_in is few_rows.span
    assert OnFirstUse("eddyline.engine.storage.kernels").span is kernels.span  # it is there
    words = np.arange(6)
    assert few_rows.pays()
    for _ in range(2):
        few_rows.span(words, words > 0, has_nulls=False, start=0, stop=6)
    assert not few_rows.pays()
    with pytest.raises(ModuleNotFoundError):
        _ = OnFirstUse("tests.engine.storage.no_such_module").span


JOINING = """
import sys
import tests.joins as small

query = small.query_of([small.relation("R"), small.relation("S")], small.equal((0, 0), (1, 0)))
rows = [[(key, 1) for key in range(50)], [(key, 2) for key in range(40, 90)]]
print(small.joined(query, rows).total(), "numba" in sys.modules)
rows = [[*table, *table] for table in rows]
print(small.joined(query, rows).total(), "numba" in sys.modules)
"""


def test_a_small_join_by_numbers_imports_no_numba() -> None:
    assert printed_lines(JOINING) == ["10 False", "40 True"]
