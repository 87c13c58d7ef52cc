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
from eddyline.blocks.nests import part_of, with_shared_parts
from eddyline.deterministic_mark import deterministic
from eddyline.engine.clock import Clock
from eddyline.expressions.vector import Vector
from eddyline.tasks.calling import WorkerFunction, made_function, make_function
from eddyline.tasks.calling.nest_function import TRIAL, SharedPart, SharedParts, Sharing
from eddyline.wall_clock import WallClock
from tests.tasks.calling.probes import Pinned, command, parsed, user_function

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")
LARGEST = 1 << 20


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
    sharing = Sharing(SharedParts(), Still(), LARGEST)
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
    assert calls == {"clean": 3, "words": 3, "count": 4}  # one text is there twice
    functions[0]([TEXTS], 4)
    assert calls["clean"] == 3


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


def test_nests_with_arguments_by_keyword_fail_as_they_do_in_spark() -> None:
    def joined(first: str, *, second: str) -> str:
        return f"{first}-{second}"

    types, keywords = ["string", "string"], (None, "second")
    asked = [
        nest([joined], types, keywords=keywords),
        nest([joined, str.upper], types, keywords=keywords),
    ]
    assert [each.shared for each in with_shared_parts(asked)] == [(), ()]


def test_an_object_that_a_part_returns_again_and_again_is_seen_as_it_was_for_each_row() -> None:
    class Reader:
        def read(self, text: str) -> Reader:
            self.words = text.split()
            return self

    reader, line = Reader(), bytearray()

    @deterministic
    def read(text: str) -> Reader:
        return reader.read(text)

    @deterministic
    def line_of(text: str) -> bytearray:
        line[:] = text.encode()
        return line

    def words(of: Reader) -> str:
        return ",".join(of.words)

    def number(of: Reader) -> str:
        return str(len(of.words))

    def text(of: bytearray) -> str:
        return of.decode()

    def length(of: bytearray) -> str:
        return str(len(of))

    pairs: list[list[list[Callable[..., Any]]]] = [
        [[read, words], [read, number]],
        [[line_of, text], [line_of, length]],
    ]
    for functions in pairs:
        asked = [nest(each, ["string"]) for each in functions]
        expected = [told(make_function(each, SETTINGS)([TEXTS], 4)) for each in asked]
        assert [told(each([TEXTS], 4)) for each in together(*asked)] == expected


def test_sets_keep_their_order() -> None:
    def several(text: str) -> set[str]:
        made = {f"w{n}" for n in range(40)}
        for n in range(36):
            made.discard(f"w{n}")
        return made | set(text.split())

    def joined(words: set[str]) -> str:
        return " ".join(words)

    def first(words: set[str]) -> str:
        return next(iter(words))

    asked = [nest([several, joined], ["string"]), nest([several, first], ["string"])]
    expected = [told(make_function(each, SETTINGS)([TEXTS], 4)) for each in asked]
    assert [told(each([TEXTS], 4)) for each in together(*asked)] == expected


def test_values_of_any_depth_and_of_any_class_are_handed_on() -> None:
    class Unhashable(type):
        __hash__ = None  # type: ignore[assignment]

    class Odd(metaclass=Unhashable):
        def __str__(self) -> str:
            return "odd"

    def deep(text: str) -> object:
        made: object = None
        for _ in range(5_000):
            made = (text, made)
        return made if text == "c " else Odd()

    def top(value: object) -> str:
        return str(value[0]) if isinstance(value, tuple) else str(value)

    pinned = Pinned(deep)
    functions = together(nest([pinned, top], ["string"]), nest([pinned, type, str], ["string"]))
    for _ in range(2):
        assert functions[0]([TEXTS], 4).values.to_pylist() == ["odd", "c ", "odd", "odd"]
        assert functions[1]([TEXTS], 4).values[1].as_py() == "<class 'tuple'>"


def test_where_pandas_converts_values_a_batch_at_a_time_nothing_is_shared() -> None:
    legacy = replace(SETTINGS, legacy_pandas_conversion=True)
    asked = with_shared_parts([nest([str], ["bigint"]), nest([str, str.upper], ["bigint"])])
    sharing = Sharing(SharedParts(), Still(), LARGEST)
    first, second = (made_function(each, legacy, sharing).function for each in asked)
    assert first([pa.array([3, None])], 2).values.to_pylist() == ["3.0", "nan"]
    assert second([pa.array([3])], 1).values.to_pylist() == ["3"]


def parts_of(
    *functions: UserFunction, clock: Clock, largest: int = LARGEST
) -> tuple[list[WorkerFunction], SharedPart]:
    """Return functions of one job that have one part in common, and that part."""
    marked, parts = with_shared_parts(functions), SharedParts()
    sharing = Sharing(parts, clock, largest)
    made = [made_function(each, SETTINGS, sharing).function for each in marked]
    return made, parts.of(part_of(functions[0], 1), SETTINGS, largest)


UPPER = [nest([str.upper], ["string"]), nest([str.upper, str.lower], ["string"])]


def test_a_part_that_spares_nobody_a_call_is_soon_called_by_each_again() -> None:
    (_, second), part = parts_of(*UPPER, clock=WallClock())
    for visit in range(10):
        second([pa.array([f"text {visit} {number}" for number in range(10_000)])], 10_000)
    assert not part.pays
    before = len(part)
    second([pa.array(["new"])], 1)
    assert len(part) == before


def test_a_part_whose_values_cannot_be_kept_is_soon_called_by_each_again() -> None:
    calls: Counter[str] = Counter()

    @deterministic
    def array(text: str) -> object:
        calls["array"] += 1
        return np.array([len(text)])

    def first_of(values: list[int]) -> str:
        return str(values[0])

    def text_of(values: list[int]) -> str:
        return str(sum(values))

    pinned = Pinned(array)
    asked = [nest([pinned, first_of], ["string"]), nest([pinned, text_of], ["string"])]
    (first, second), part = parts_of(*asked, clock=Still())
    texts = pa.array([f"text {number}" for number in range(1_000)])
    for function in (first, second, first):
        function([texts], len(texts))
    assert calls["array"] == 3_000
    assert not part.pays
    assert not len(part)


@pytest.mark.parametrize(("length", "most"), [(1, 500), (300, 150), (5_000, 20)])
def test_values_take_no_more_than_their_share_of_memory(length: int, most: int) -> None:
    (first, _), part = parts_of(*UPPER, clock=Still(), largest=100_000)
    for start in range(0, TRIAL - 50, 50):
        texts = pa.array([f"{number}" * length for number in range(start, start + 50)])
        first([texts], 50)
        assert 0 < len(part) <= most


def test_a_batch_of_large_values_is_not_kept_as_a_whole() -> None:
    def page(text: str) -> str:
        return text * 5_000

    asked = [nest([page], ["string"]), nest([page, str.upper], ["string"])]
    (first, _), part = parts_of(*asked, clock=Still(), largest=100_000)
    first([pa.array([f"{number:02}" for number in range(100)])], 100)
    assert 0 < len(part) <= 12


def test_batch_after_batch_is_shared() -> None:
    calls: Counter[str] = Counter()

    @deterministic
    def slow(text: str) -> str:
        calls["slow"] += 1
        sum(range(3_000))
        return text

    pinned = Pinned(slow)
    asked = [nest([pinned, str.upper], ["string"]), nest([pinned, str.lower], ["string"])]
    functions, part = parts_of(*asked, clock=WallClock(), largest=60_000)
    for start in range(0, 2_000, 200):  # a batch takes 22,000 bytes
        texts = pa.array([f"{number}" for number in range(start, start + 200)])
        for function in functions:
            function([texts], 200)
    assert calls["slow"] == 2_000
    assert len(part) < 800


def test_a_costly_part_is_shared_in_batches_of_a_few_rows() -> None:
    calls: Counter[str] = Counter()

    @deterministic
    def slow(text: str) -> str:
        calls["slow"] += 1
        sum(range(3_000))
        return text

    pinned = Pinned(slow)
    asked = [nest([pinned, str.upper], ["string"]), nest([pinned, str.lower], ["string"])]
    functions, part = parts_of(*asked, clock=WallClock())
    for start in range(0, 2_000, 20):
        texts = pa.array([f"{number}" for number in range(start, start + 20)])
        for function in functions:
            function([texts], 20)
    assert part.pays
    assert calls["slow"] == 2_000


def test_a_forgetful_function_shares_nothing() -> None:
    def by_chance(value: str) -> str:
        return f"{value}{random.random()}"

    asked = [nest([by_chance], ["string"]), nest([by_chance, str.upper], ["string"])]
    first, second = together(*asked)
    texts = pa.array(["a"])
    assert first([texts], 1).values[0].as_py().upper() != second([texts], 1).values[0].as_py()
