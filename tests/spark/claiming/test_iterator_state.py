"""Which iterator functions map batch to batch, and why the others may not."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.accumulators import Accumulator, AddingAccumulatorParam, _accumulatorRegistry
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import LongType

from eddyline.spark.blocks.filter_block import FunctionKind, UserFunction
from eddyline.spark.claiming.iterator_state import iterator_is_stateless

Series = pd.Series
Chunks = Iterator[Any]

LIMITS = (1, 2)
SEEN: list[int] = []
NUMBERS = iter(range(1000))
MODULE = types.ModuleType("settings")
MODULE.CACHE = {}  # type: ignore[attr-defined]


def packed(*functions: Callable[..., Any]) -> UserFunction:
    dumps: Callable[[object], bytes] = CloudPickleSerializer().dumps  # type: ignore[no-untyped-call]
    commands = tuple(dumps((each, LongType())) for each in functions)
    return UserFunction(
        "probe", FunctionKind.PANDAS_ITERATOR, commands, ('"long"',), (None,), '"long"'
    )


def reason(*functions: Callable[..., Any]) -> str | None:
    return iterator_is_stateless(packed(*functions))


def compiled(body: str, name: str = "probe", **outer: object) -> Callable[..., Any]:
    """Return a function whose source can be found though it stands in no file."""
    source = f"def {name}(batches):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    file = f"<probe {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace = {"SEEN": SEEN, "LIMITS": LIMITS, "MODULE": MODULE, "NUMBERS": NUMBERS, **outer}
    exec(compile(source, file, "exec"), namespace)  # noqa: S102 - the point of the helper
    function: Callable[..., Any] = namespace[name]  # type: ignore[assignment]
    return function


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
        result[result < 0] = 0
        yield result


def two_arguments(batches: Iterator[tuple[Series, Series]]) -> Iterator[Series]:
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
    assert reason(running_total) == "`total` may be what an earlier batch left"


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
        "def step(batch):\n    return batch + 1\nfor batch in batches:\n    yield step(batch)",
        "step = lambda batch: batch + 1\nfor batch in batches:\n    yield step(batch)",
        "for batch in batches:\n    yield batch.map(lambda batch: batch + 1)",
        "for batch in batches:\n    yield [batch for batch in batch]",
        "for b in batches:\n    n = 0\n    for v in b:\n        n = n + v\n    yield n",
        "for b in batches:\n    o = b.copy()\n    o[0] = 1\n    o.sort()\n    yield o",
        "for batch in batches:\n    batch['x'] = 1\n    yield batch",
        "for batch in batches:\n    with model() as m:\n        out = m(batch)\n    yield out",
        "for b in batches:\n    try: o = f(b)\n    except E: o = g(b)\n    yield o",
        "for batch in batches:\n    out = f(batch)\n    yield out\n    del out",
        "for b in batches:\n    for v in b:\n        if v:\n            break\n    yield b",
        "for batch in batches:\n    yield batch > LIMITS[0]",
        "if LIMITS:\n    n = 1\nelse:\n    n = 2\nfor batch in batches:\n    yield batch * n",
        "for batch in batches:\n    SEEN = (1, 2)\n    yield SEEN",
        "n: int = 1\nfor b in batches:\n    o: list = list(b)\n    o[0] = n\n    yield o",
    ],
)
def test_these_bodies_remember_nothing(body: str) -> None:
    assert reason(compiled(body)) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("yield from batches", "does not end with a loop"),
        ("for batch in batches:\n    yield batch\nprint(1)", "does not end with a loop"),
        ("for batch in zip(batches):\n    yield batch", "does not go directly over `batches`"),
        ("for i, b in enumerate(batches):\n    yield b", "does not go directly over `batches`"),
        ("for b in batches:\n    yield b\nelse:\n    pass", "else branch"),
        ("first = next(batches)\nfor b in batches:\n    yield b", "outside the head of its loop"),
        ("for b in batches:\n    yield b + len(batches)", "outside the head of its loop"),
        ("for b in batches:\n    yield b\n    yield b", "does not yield just once"),
        ("for b in batches:\n    if b:\n        yield b", "does not yield just once"),
        ("for b in batches:\n    x = yield b", "does not yield just once"),
        ("for b in batches:\n    yield from b", "does not yield just once"),
        ("yield 1\nfor b in batches:\n    yield b", "does not yield just once"),
        ("for b in batches:\n    if b:\n        continue\n    yield b", "break or continue"),
        (
            "for b in batches:\n    for v in b: 1\n    else: break\n    yield b",
            "break",
        ),
        ("for b in batches:\n    yield b\n    if b:\n        return", "return before the last"),
        ("if LIMITS:\n    return\nfor b in batches:\n    yield b", "return before the last"),
        ("global TOTAL\nfor b in batches:\n    TOTAL = b\n    yield b", "assigns to `TOTAL`"),
        ("n = 0\nfor b in batches:\n    n += 1\n    yield b", "changes `n` in place"),
        ("n = 0\nfor b in batches:\n    yield b + n\n    n = len(b)", "`n` may be what an earlier"),
        (
            "n = 0\ndef f():\n    return n\nfor b in batches:\n    yield f()\n    n = b",
            "`n` may be",
        ),
        ("for b in batches:\n    if b:\n        last = b\n    yield last", "`last` may be what"),
        (
            "for b in batches:\n    try: x = f(b)\n    except E: pass\n    yield x",
            "`x` may",
        ),
        ("for b in batches:\n    del x\n    x = b\n    yield b", None),
        ("seen = []\nfor b in batches:\n    yield len(seen)", "`seen` exists before its loop"),
        ("seen: list\nfor b in batches:\n    yield len(seen)", None),
        (
            "seen: list = []\nfor b in batches:\n    yield len(seen)",
            "`seen` exists before its loop",
        ),
        (
            "m = model()\nfor b in batches:\n    x: object = m\n    x.n = 1\n    yield b",
            "an object: `x`",
        ),
        ("s = t = []\nfor b in batches:\n    yield len(s)", "`s` exists before its loop"),
        ("a, (s, t) = 1, (2, {})\nfor b in batches:\n    yield t", "`t` exists before its loop"),
        ("s = set() or None\nt = s\nfor b in batches:\n    yield t", "`t` exists before its loop"),
        ("s = {}\nf = lambda b: s.get(b)\nfor b in batches:\n    yield f(b)", "`s` exists before"),
        ("c = SEEN\nfor b in batches:\n    yield c", "`c` exists before its loop"),
        ("for b in batches:\n    yield b + len(SEEN)", "`SEEN` exists before its loop"),
        ("for b in batches:\n    yield MODULE.CACHE.get(b)", "`MODULE.CACHE` can remember"),
        ("c = MODULE.CACHE\nfor b in batches:\n    yield c.get(b)", "`c` exists before its loop"),
        ("for b in batches:\n    yield next(NUMBERS)", "it calls `next`"),
        ("for b in batches:\n    yield zip(b, NUMBERS)", "`NUMBERS` exists before its loop"),
        (
            "r = np.random.default_rng(0)\nfor b in batches:\n    yield r.random()",
            "`r` exists before",
        ),
        (
            "m = model()\nfor b in batches:\n    m.update(b)\n    yield b",
            "may change an object: `m`",
        ),
        (
            "m = model()\nfor b in batches:\n    m.last = b\n    yield b",
            "may change an object: `m`",
        ),
        ("m = model()\nfor b in batches:\n    m[0] += b\n    yield b", "may change an object: `m`"),
        ("m = model()\nfor b in batches:\n    x = m\n    x.n = 1\n    yield b", "an object: `x`"),
        ("m = model()\nfor b in batches:\n    yield add(b, 1, out=m)", "may change an object"),
        (
            "def f(b):\n    f.n = b\n    return b\nfor b in batches:\n    yield f(b)",
            "an object: `f`",
        ),
        (
            "def f(b, s=[]):\n    return s\nfor b in batches:\n    yield f(b)",
            "default that can remember",
        ),
        ("@cache\ndef f(b):\n    return b\nfor b in batches:\n    yield f(b)", "is decorated"),
        ("for b in batches:\n    remember(b)\n    yield b", "calls `remember` just for its effect"),
        ("class S:\n    n = 0\nfor b in batches:\n    yield S.n", "not understood: `class S:`"),
        ("for b in batches:\n    yield (n := b)", "not understood"),
        ("for b in batches:\n    setattr(b, 'x', 1)\n    yield b", "it calls `setattr`"),
        ("for MODULE.last in batches:\n    yield 1", "something else than variables"),
    ],
)
def test_these_bodies_may_remember(body: str, expected: str | None) -> None:
    found = reason(compiled(body))
    assert found is None if expected is None else expected in str(found)


def test_what_is_no_generator_function_of_one_parameter_is_declined() -> None:
    def optional(batches: Chunks, size: int = 1) -> Chunks:
        for batch in batches:
            yield batch + size

    class Caller:
        def __call__(self, batches: Chunks) -> Chunks:
            yield from batches

    assert (
        reason(lambda batches: (batch + 1 for batch in batches)) == "it is not a generator function"
    )
    assert reason(Caller()) == "it is not a generator function"
    assert reason(optional) == "it has other parameters than its iterator"


def test_a_function_without_source_is_declined() -> None:
    namespace: dict[str, Any] = {}
    exec("def hidden(batches):\n    for b in batches:\n        yield b", namespace)  # noqa: S102
    assert reason(namespace["hidden"]) == "its source is not available"


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


def test_a_function_whose_file_has_changed_is_declined() -> None:
    function = compiled("for b in batches:\n    yield b + 1")
    file = function.__code__.co_filename
    assert reason(function) is None
    entry = linecache.cache[file]
    lines = [line.replace("+ 1", "+ 2") for line in entry[2]]  # type: ignore[misc]
    linecache.cache[file] = (len("".join(lines)), None, lines, file)
    assert reason(function) == "its source has changed since it was read"


def test_looking_into_a_function_leaves_accumulators_alone() -> None:
    counter = Accumulator(987_654_321, 0, AddingAccumulatorParam(0))
    del _accumulatorRegistry[counter.aid]

    def counting(batches: Chunks) -> Chunks:
        for batch in batches:
            counter.add(1)
            yield batch

    assert "may change an object: `counter`" in str(reason(counting))
    assert counter.aid not in _accumulatorRegistry


def test_a_function_that_cannot_be_unpickled_is_declined() -> None:
    broken = UserFunction("probe", FunctionKind.ARROW_ITERATOR, (b"no pickle",), (), (), '"long"')
    assert "it cannot be unpickled on the driver" in str(iterator_is_stateless(broken))
