"""Functions made of the same parts return what each returns alone, with fewer calls."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.blocks.nests import with_shared_parts
from eddyline.deterministic_mark import deterministic
from eddyline.expressions.vector import Vector
from eddyline.tasks.calling import made_function, make_function
from eddyline.tasks.calling import nest_function as nests
from eddyline.tasks.calling.nest_function import SharedParts, Sharing
from eddyline.wall_clock import WallClock
from tests.tasks.calling.probes import Pinned, command, parsed, user_function

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")


class Still:
    """A clock on which nothing takes time, so that sharing never fails to pay."""

    resolution = 0.0

    def now(self) -> float:
        return 0.0


def nest(
    functions: Sequence[Callable[..., Any]],
    argument_types: Sequence[str],
    kind: FunctionKind = FunctionKind.ARROW_BATCHED,
    keywords: tuple[str | None, ...] | None = None,
) -> UserFunction:
    """Return functions, innermost first, as Spark runs them in one go.

    What is called ``words`` returns an array of texts, all others a text.
    """
    kinds = ["array<string>" if name_of(each) == "words" else "string" for each in functions]
    outer = user_function(functions[-1], kind, argument_types, kinds[-1], keywords)
    commands = (command(each, parsed(kind)) for each, kind in zip(functions, kinds, strict=True))
    return replace(outer, commands=tuple(commands))


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called, a pinned one too."""
    given = Pinned.kept(function._place) if isinstance(function, Pinned) else function
    return str(given.__name__)


def together(*functions: UserFunction) -> list[Callable[..., Vector]]:
    """Return functions of one job, which know of each other."""
    sharing = Sharing(SharedParts(), Still())
    return [
        made_function(each, SETTINGS, sharing).function for each in with_shared_parts(functions)
    ]


def told(vector: Vector) -> tuple[str, dict[int, str]]:
    """Return what a function gave for each row, as texts without addresses of objects."""
    text = re.sub(r"0x\w+", "", repr(vector.values.to_pylist()))
    return text, {at: repr(error) for at, error in vector.errors.items()}


def some_value(number: float | str | None, way: int) -> object:
    """Return one of many kinds of values that depend on a number only."""
    if way == 0 and number == 3:
        raise LookupError(number)
    ways: list[Callable[[], object]] = [
        lambda: number,
        lambda: [number, number],
        lambda: [[number], {"n": number}],
        lambda: {"n": number},
        lambda: {number},
        lambda: (number, [number]),
        lambda: Row(n=number, m=(number, None)),
        lambda: bytearray(str(number), "utf-8"),
        lambda: iter([number, number]),
        lambda: np.array([1, 2, 3]),
        lambda: object,
    ]
    return ways[way]()


def spoiling(value: object) -> str:
    """Return a text of all that is in a value, and change it as far as it can be."""
    if isinstance(value, Iterator):
        value = list(value)
    text = str(value)
    if isinstance(value, list):
        for each in value:
            spoiling(each)
        value.append("spoilt")
    elif isinstance(value, dict):
        value["spoilt"] = True
    elif isinstance(value, set):
        value.add("spoilt")
    elif isinstance(value, bytearray):
        value.extend(b"spoilt")
    elif isinstance(value, np.ndarray):
        value[:] = 0
    elif isinstance(value, tuple):
        for each in value:
            spoiling(each)
    return text


COLUMNS = st.one_of(
    st.tuples(st.just("bigint"), st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1)),
    st.tuples(
        st.just("double"),
        st.lists(st.sampled_from([None, 0.0, -0.0, 3.0, float("nan")]), min_size=1),
    ),
    st.tuples(st.just("string"), st.lists(st.sampled_from([None, "", "a", "b"]), min_size=1)),
)


@given(
    column=COLUMNS,
    ways=st.lists(st.integers(0, 10), min_size=1, max_size=2),
    visits=st.lists(st.tuples(st.integers(0, 3), st.randoms()), min_size=1, max_size=6),
    kind=st.sampled_from([FunctionKind.ARROW_BATCHED, FunctionKind.PICKLED]),
)
def test_they_return_what_each_returns_alone_in_any_order_of_visits(
    column: tuple[str, list[Any]],
    ways: list[int],
    visits: list[tuple[int, random.Random]],
    kind: FunctionKind,
) -> None:
    name, values = column

    def first(value: float | str | None) -> object:
        return some_value(value, ways[0])

    def second(value: object) -> object:
        return [spoiling(value), ways[-1]]

    def third(value: object) -> str:
        return f"{spoiling(value)}!"

    functions = [
        nest(functions, [name], kind)
        for functions in ([first], [first, spoiling], [first, second], [first, second, third])
    ]
    alone = [make_function(each, SETTINGS) for each in functions]
    shared_ones = together(*functions)
    whole = pa.array(values, {"bigint": pa.int64(), "double": pa.float64()}.get(name, pa.string()))
    for number, chosen in visits:
        rows = chosen.choices(range(len(values)), k=len(values))
        part = whole.take(pa.array(rows))
        expected = told(alone[number]([part], len(rows)))
        assert told(shared_ones[number]([part], len(rows))) == expected


def counting(calls: Counter[str]) -> tuple[Callable[..., Any], ...]:
    """Return functions that count their calls; what they are pinned beside is left to chance."""

    @deterministic
    def clean(text: str) -> str:
        calls["clean"] += 1
        return text.strip()

    @deterministic
    def words(text: str) -> list[str]:
        calls["words"] += 1
        return text.split()

    @deterministic
    def count(words: list[str]) -> str:
        calls["count"] += 1
        return str(len(words))

    return Pinned(clean), Pinned(words), Pinned(count)


TEXTS = pa.array([" a b", "c ", " a b", "d e f"])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_part_is_called_once_for_each_of_the_arguments(order: tuple[int, ...]) -> None:
    calls: Counter[str] = Counter()
    clean, words, count = counting(calls)
    functions = together(
        nest([clean], ["string"]),
        nest([clean, words], ["string"]),
        nest([clean, words, count], ["string"]),
    )
    results = {number: functions[number]([TEXTS], 4).values.to_pylist() for number in order}
    assert results == {
        0: ["a b", "c", "a b", "d e f"],
        1: [["a", "b"], ["c"], ["a", "b"], ["d", "e", "f"]],
        2: ["2", "1", "2", "3"],
    }
    assert calls == {"clean": 4, "words": 4, "count": 4}
    functions[0]([TEXTS], 4)
    assert calls["clean"] == 4


def test_what_two_functions_do_not_have_in_common_is_not_taken_from_each_other() -> None:
    calls: Counter[str] = Counter()
    clean, words, count = counting(calls)
    asked = [
        nest([clean], ["string"]),
        nest([clean, words], ["string"], kind=FunctionKind.PICKLED),
        nest([words, count], ["string"]),
    ]
    assert [each.shared for each in with_shared_parts(asked)] == [(), (), ()]
    for function in together(*asked):
        function([TEXTS], 4)
    assert calls == {"clean": 8, "words": 8, "count": 4}


def test_arguments_by_keyword_go_to_the_innermost_function() -> None:
    def joined(first: str, *, second: str) -> str:
        return f"{first}-{second}"

    columns = [pa.array(["a", "b"]), pa.array(["c", None])]
    shared_ones = together(
        nest([joined], ["string", "string"], keywords=(None, "second")),
        nest([joined, str.upper], ["string", "string"], keywords=(None, "second")),
    )
    assert shared_ones[0](columns, 2).values.to_pylist() == ["a-c", "b-None"]
    assert shared_ones[1](columns, 2).values.to_pylist() == ["A-C", "B-NONE"]


def test_a_part_that_costs_next_to_nothing_is_soon_called_by_each_again() -> None:
    asked = [nest([str.upper], ["string"]), nest([str.upper, str.lower], ["string"])]
    parts = SharedParts()
    sharing = Sharing(parts, WallClock())
    made = [made_function(each, SETTINGS, sharing).function for each in with_shared_parts(asked)]
    texts = pa.array([f"text {number}" for number in range(10_000)])
    (part,) = parts._parts.values()
    for _ in range(50):
        made[1]([texts], len(texts))  # nobody asks for what the first stage gives
    assert not part.pays
    before = len(part._latest)
    made[1]([pa.array(["new"])], 1)
    assert len(part._latest) == before


def test_no_more_values_are_kept_than_those_of_two_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nests, "ROOM", 10)
    asked = [nest([str.upper], ["string"]), nest([str.upper, str.lower], ["string"])]
    parts = SharedParts()
    made = [
        made_function(each, SETTINGS, Sharing(parts, Still())).function
        for each in with_shared_parts(asked)
    ]
    (part,) = parts._parts.values()
    for start in range(0, 100, 7):
        made[0]([pa.array([f"{n}" for n in range(start, start + 7)])], 7)
        assert len(part._latest) + len(part._before) <= 2 * 16
    assert part.known([b"97"]) == ["97"]
    assert part.known([b"1"]) == [nests.UNKNOWN]


def test_a_forgetful_function_shares_nothing() -> None:
    def by_chance(value: str) -> str:
        return f"{value}{random.random()}"

    asked = [nest([by_chance], ["string"]), nest([by_chance, str.upper], ["string"])]
    first, second = together(*asked)
    texts = pa.array(["a"])
    assert first([texts], 1).values[0].as_py().upper() != second([texts], 1).values[0].as_py()
