"""Which iterator functions map batch to batch, and why the others may not."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.accumulators import Accumulator, AddingAccumulatorParam, _accumulatorRegistry
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import LongType

import eddyline
from eddyline.chance.iterator_state import iterator_is_stateless
from tests.chance.iterator_probes import ADVICE, Chunks, compiled, reason

Series = pd.Series


# --- Functions as they stand in a user's file.


def plain(batches: Chunks) -> Chunks:
    """Add one."""
    for batch in batches:
        yield batch + 1


@pandas_udf(LongType())  # type: ignore[call-overload, untyped-decorator]
def decorated(batches: Iterator[Series]) -> Iterator[Series]:
    model = np.arange(3)
    for batch in batches:
        result = batch.map(lambda value: value + model[0])
        yield result.clip(0)


def two_arguments(batches: Iterator[tuple[Series, Series]]) -> Iterator[Series]:
    for left, right in batches:
        total, difference = left + right, left - right
        yield total * difference


def branching(batches: Iterator[tuple[Series, Series]]) -> Iterator[Series]:
    for left, right in batches:
        if left.empty:
            result = right.copy()
        else:
            result = left + right
            result.name = "sum"
        yield result


def running_total(batches: Chunks) -> Chunks:
    total = 0
    for batch in batches:
        total = total + batch.sum()
        yield batch + total


def test_functions_of_a_file_are_read() -> None:
    assert reason(plain) is None
    assert reason(decorated.func) is None
    assert reason(two_arguments) is None
    assert reason(running_total) == "`total` may be what an earlier batch left" + ADVICE
    assert str(reason(branching)).startswith("it may change something: `result.name`")


def test_functions_made_by_functions_are_read() -> None:
    def scaled(factor: int, history: list[int] | None) -> Callable[[Chunks], Chunks]:
        def inner(batches: Chunks) -> Chunks:
            for batch in batches:
                yield batch * factor

        def remembering(batches: Chunks) -> Chunks:
            for batch in batches:
                yield batch * len(history or ())

        return inner if history is None else remembering

    assert reason(scaled(3, None)) is None
    assert "`history` exists before its loop" in str(reason(scaled(3, [])))


def test_a_chain_is_as_stateless_as_each_of_its_functions() -> None:
    assert reason(plain, two_arguments) is None
    assert reason(plain, running_total) == reason(running_total)


@pytest.mark.parametrize(
    "body",
    [
        "for batch in batches:\n    yield batch",
        "'What it does.'\nfor batch in batches:\n    yield batch",
        "import math\nmodel = math.sqrt(2)\nfor batch in batches:\n    yield batch * model",
        "for batch in batches:\n    yield batch.map(lambda batch: batch + 1)",
        "for batch in batches:\n    yield [batch for batch in batch]",
        "for batch in batches:\n    yield batch > LIMITS[0]",
        "for batch in batches:\n    SEEN = (1, 2)\n    yield SEEN",
        "n: int = 1\nfor b in batches:\n    o: list = list(b)\n    yield o * n",
        "m = model()\nm.eval_mode()\nfor b in batches:\n    x = y = m(b)\n    yield x + y",
        "m = MODULE.PI\nfor b in batches:\n    x, y = b, m\n    yield x * y\n    z = x",
    ],
)
def test_these_bodies_remember_nothing(body: str) -> None:
    assert reason(compiled(body)) is None


@pytest.mark.parametrize(
    "body",
    [
        "def step(batch):\n    return batch + 1\nfor batch in batches:\n    yield step(batch)",
        "step = lambda batch: batch + 1\nfor batch in batches:\n    yield step(batch)",
        "for b in batches:\n    n = 0\n    for v in b:\n        n = n + v\n    yield n",
        "for b in batches:\n    o = b.copy()\n    o[0] = 1\n    o.sort()\n    yield o",
        "for b in batches:\n    r = f(b)\n    r[r < 0] = 0\n    yield r",
        "for batch in batches:\n    batch['x'] = 1\n    yield batch",
        "for batch in batches:\n    with model() as m:\n        out = m(batch)\n    yield out",
        "for b in batches:\n    try: o = f(b)\n    except E: o = g(b)\n    yield o",
        "for batch in batches:\n    out = f(batch)\n    yield out\n    del out",
        "for b in batches:\n    for v in b:\n        if v:\n            break\n    yield b",
        "if LIMITS:\n    n = 1\nelse:\n    n = 2\nfor batch in batches:\n    yield batch * n",
        "n: int = 1\nfor b in batches:\n    o: list = list(b)\n    o[0] = n\n    yield o",
        "for b in batches:\n    del x\n    x = b\n    yield b",
        "seen: list\nfor b in batches:\n    yield len(seen)",
    ],
)
def test_these_bodies_remember_nothing_and_need_the_mark(body: str) -> None:
    function = compiled(body)
    assert str(reason(function)).endswith(ADVICE)
    assert reason(eddyline.stateless(function)) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("yield from batches", "does not end with a plain loop"),
        ("for batch in batches:\n    yield batch\nprint(1)", "does not end with a plain loop"),
        ("for batch in zip(batches):\n    yield batch", "does not end with a plain loop"),
        ("for i, b in enumerate(batches):\n    yield b", "does not end with a plain loop"),
        ("for b in batches:\n    yield b\nelse:\n    pass", "does not end with a plain loop"),
        ("first = next(batches)\nfor b in batches:\n    yield b", "outside the head of its loop"),
        ("for b in batches:\n    yield b + len(batches)", "outside the head of its loop"),
        ("for b in batches:\n    yield b\n    yield b", "does not yield just once"),
        ("for b in batches:\n    if b:\n        yield b", "does not yield just once"),
        ("for b in batches:\n    x = yield b", "does not yield just once"),
        ("for b in batches:\n    yield from b", "does not yield just once"),
        ("yield 1\nfor b in batches:\n    yield b", "does not yield just once"),
        ("for b in batches:\n    if b:\n        continue\n    yield b", "does more than assign"),
        (
            "for b in batches:\n    for v in b: 1\n    else: break\n    yield b",
            "does more than assign",
        ),
        ("for b in batches:\n    yield b\n    if b:\n        return", "does more than assign"),
        ("if LIMITS:\n    return\nfor b in batches:\n    yield b", "not understood: `if LIMITS:`"),
        (
            "global TOTAL\nfor b in batches:\n    TOTAL = b\n    yield b",
            "not understood: `global TOTAL`",
        ),
        ("n = 0\nfor b in batches:\n    n += 1\n    yield b", "yield: `n += 1`"),
        ("n = 0\nfor b in batches:\n    yield b + n\n    n = len(b)", "`n` may be what an earlier"),
        (
            "n = 0\ndef f():\n    return n\nfor b in batches:\n    yield f()\n    n = b",
            "not understood: `def f():`",
        ),
        ("for b in batches:\n    if b:\n        last = b\n    yield last", "yield: `if b:`"),
        (
            "for b in batches:\n    try: x = f(b)\n    except E: pass\n    yield x",
            "yield: `try:`",
        ),
        ("seen = []\nfor b in batches:\n    yield len(seen)", "`seen` exists before its loop"),
        (
            "seen: list = []\nfor b in batches:\n    yield len(seen)",
            "`seen` exists before its loop",
        ),
        (
            "m = model()\nfor b in batches:\n    x: object = m\n    x.n = 1\n    yield b",
            "something: `x.n`",
        ),
        ("s = t = []\nfor b in batches:\n    yield len(s)", "`s` exists before its loop"),
        ("a, (s, t) = 1, (2, {})\nfor b in batches:\n    yield t", "`t` exists before its loop"),
        ("s = set() or None\nt = s\nfor b in batches:\n    yield t", "`t` exists before its loop"),
        (
            "s = {}\nf = lambda b: s.get(b)\nfor b in batches:\n    yield f(b)",
            "not understood: `f = ",
        ),
        ("c = SEEN\nfor b in batches:\n    yield c", "`c` exists before its loop"),
        ("for b in batches:\n    yield b + len(SEEN)", "`SEEN` exists before its loop"),
        ("for b in batches:\n    yield MODULE.CACHE.get(b)", "`MODULE.CACHE` exists before"),
        ("c = MODULE.CACHE\nfor b in batches:\n    yield c.get(b)", "`c` exists before its loop"),
        ("for b in batches:\n    yield next(NUMBERS)", "change something: `next`"),
        ("for b in batches:\n    yield zip(b, NUMBERS)", "`NUMBERS` exists before its loop"),
        (
            "r = np.random.default_rng(0)\nfor b in batches:\n    yield r.random()",
            "`r` exists before",
        ),
        (
            "m = model()\nfor b in batches:\n    m.update(b)\n    yield b",
            "yield: `m.update(b)`",
        ),
        (
            "m = model()\nfor b in batches:\n    m.last = b\n    yield b",
            "change something: `m.last`",
        ),
        ("m = model()\nfor b in batches:\n    m[0] += b\n    yield b", "change something: `m[0]`"),
        ("m = model()\nfor b in batches:\n    x = m\n    x.n = 1\n    yield b", "something: `x.n`"),
        ("m = model()\nfor b in batches:\n    yield add(b, 1, out=m)", "change something: `out=m`"),
        (
            "def f(b):\n    f.n = b\n    return b\nfor b in batches:\n    yield f(b)",
            "something: `f.n`",
        ),
        (
            "def f(b, s=[]):\n    return s\nfor b in batches:\n    yield f(b)",
            "not understood: `def f(b, s=[]):`",
        ),
        (
            "@cache\ndef f(b):\n    return b\nfor b in batches:\n    yield f(b)",
            "not understood: `@cache`",
        ),
        ("for b in batches:\n    remember(b)\n    yield b", "yield: `remember(b)`"),
        ("class S:\n    n = 0\nfor b in batches:\n    yield S.n", "not understood: `class S:`"),
        ("for b in batches:\n    yield (n := b)", "change something: `(n := b)`"),
        ("for b in batches:\n    setattr(b, 'x', 1)\n    yield b", "change something: `setattr`"),
        ("for MODULE.last in batches:\n    yield 1", "change something: `MODULE.last`"),
        ("a, *s = LIMITS\nfor b in batches:\n    yield s", "change something: `*s`"),
        ("s = [0] * 3\nfor b in batches:\n    yield s", "`s` exists before its loop"),
        ("s = g(x for x in b)\nfor b in batches:\n    yield s", "not understood: `s = g("),
        ("for b in batches:\n    x: int\n    yield x\n    x = b", "yield: `x: int`"),
        ("for b in batches:\n    yield f(lambda v, s=[]: s)", "change something: `lambda"),
        ("for b in batches:\n    yield [0 for MODULE.x in b]", "something: `MODULE.x`"),
        (
            "for b in batches:\n    with suppress(E):\n        x = f(b)\n    yield x",
            "yield: `with suppress(E):`",  # else `x` could be what an earlier batch left
        ),
        (
            "for b in batches:\n    with precision(9):\n        yield f(b)",
            "does not yield just once",  # other functions run at the yield
        ),
    ],
)
def test_these_bodies_may_remember(body: str, expected: str) -> None:
    found = str(reason(compiled(body)))
    assert expected in found
    assert found.endswith(ADVICE)


def test_what_is_no_generator_function_of_one_parameter_is_declined() -> None:
    def optional(batches: Chunks, size: int = 1) -> Chunks:
        for batch in batches:
            yield batch + size

    class Caller:
        def __call__(self, batches: Chunks) -> Chunks:
            yield from batches

    def by_name(*, batches: Chunks) -> Chunks:
        yield from batches

    caller = Caller()
    mapped = lambda batches: (batch + 1 for batch in batches)  # noqa: E731 - one that is none
    functions: list[Callable[..., Any]] = [mapped, caller, optional]
    assert reason(mapped) == "it is not a generator function" + ADVICE
    assert reason(caller) == "it is not a generator function" + ADVICE
    assert reason(optional) == "it has other parameters than its iterator" + ADVICE
    assert reason(by_name) == reason(optional)
    assert reason(*(eddyline.stateless(each) for each in functions)) is None


def test_a_function_without_source_is_declined() -> None:
    namespace: dict[str, Any] = {}
    exec("def hidden(batches):\n    for b in batches:\n        yield b", namespace)  # noqa: S102
    assert str(reason(namespace["hidden"])).startswith("its source is not available")
    assert reason(eddyline.stateless(namespace["hidden"])) is None


def test_a_cell_of_a_notebook_is_read_though_each_statement_was_compiled_alone() -> None:
    cell = (
        "import math\n"
        "def probe(batches):\n"
        "    for batch in batches:\n"
        "        yield math.sqrt(batch)\n"
    )
    linecache.cache["<cell>"] = (len(cell), None, cell.splitlines(keepends=True), "<cell>")
    namespace: dict[str, Any] = {}
    for statement in ast.parse(cell).body:
        exec(compile(ast.Module([statement], []), "<cell>", "exec"), namespace)  # noqa: S102
    assert reason(namespace["probe"]) is None


def test_a_cell_of_a_notebook_may_wait() -> None:
    cell = "await made\ndef probe(batches):\n    for b in batches:\n        yield b\n"
    linecache.cache["<waiting>"] = (len(cell), None, cell.splitlines(keepends=True), "<waiting>")
    namespace: dict[str, Any] = {}
    exec(compile("\n" + cell.partition("\n")[2], "<waiting>", "exec"), namespace)  # noqa: S102
    assert reason(namespace["probe"]) is None


def test_a_function_whose_file_has_changed_is_declined() -> None:
    function = compiled("for b in batches:\n    yield b + 1")
    file = function.__code__.co_filename
    assert reason(function) is None
    entry = linecache.cache[file]
    lines = [line.replace("+ 1", "+ 2") for line in entry[2]]  # type: ignore[misc]
    linecache.cache[file] = (len("".join(lines)), None, lines, file)
    assert (
        reason(function) == "its source is not available, or has changed since it was read" + ADVICE
    )


def test_looking_into_a_function_leaves_accumulators_alone() -> None:
    counter = Accumulator(987_654_321, 0, AddingAccumulatorParam(0))
    del _accumulatorRegistry[counter.aid]

    def counting(batches: Chunks) -> Chunks:
        for batch in batches:
            counter.add(1)
            yield batch

    assert "yield: `counter.add(1)`" in str(reason(counting))
    assert counter.aid not in _accumulatorRegistry


def test_a_function_that_cannot_be_unpickled_is_declined() -> None:
    found = str(iterator_is_stateless((b"no pickle",)))
    assert "it cannot be unpickled on the driver" in found
    assert ADVICE not in found  # the mark could not be seen
