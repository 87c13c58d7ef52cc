"""Which functions look non-deterministic, to a driver that reads pickles and to a worker."""
# The functions are such as people write.
# ruff: noqa: ARG005, DTZ003, DTZ005, DTZ006, DTZ007, DTZ011, ICN001, NPY002, PLC0415, PLW0108

from __future__ import annotations

import datetime
import datetime as dt
import functools
import itertools
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime as moment
from random import Random, choice
from random import random as draw
from random import shuffle as mix
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.random as npr
import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.cloudpickle import dumps, loads, register_pickle_by_value, unregister_pickle_by_value
from pyspark.sql.types import StringType

import eddyline
from eddyline.chance import chance_in, chance_in_pickles, looks_non_deterministic
from tests.chance import named_elsewhere
from tests.chance.named_elsewhere import by_helper

OWN = uuid
ids = itertools.count()
generator = Random(3)
numbers = np.random.default_rng(3)
calls = 0


def helper(value: object) -> str:
    return f"{value}{uuid4()}"


def recursive(value: int) -> int:
    return recursive(value - 1) if value else int(draw() * 10)


def closing_over(made: Callable[..., object]) -> Callable[..., object]:
    return lambda value: (value, made())


def counting() -> Callable[[object], int]:
    number = 0

    def count(_: object) -> int:
        nonlocal number
        number += 1
        return number

    return count


def count_all(_: object) -> int:
    global calls  # noqa: PLW0603 - the point
    calls += 1
    return calls


def imports_here(value: object) -> str:
    import uuid as unique

    return f"{value}{unique.uuid1()}"


def imports_names_here(value: float) -> float:
    from random import gauss, uniform

    return value + uniform(0, 1) + gauss(0, 1)


def imports_below(value: float) -> float:
    import numpy.random as generators

    return value + generators.normal()


def by_alias(value: object) -> str:
    module = uuid
    return f"{value}{module.uuid4()}"


def in_comprehension(value: int) -> list[float]:
    return [random.random() for _ in range(value)]


def in_inner_function(value: int) -> float:
    def inner() -> float:
        return value + random.random()

    return inner()


def in_default(value: int, make: Callable[[], object] = uuid4) -> str:
    return f"{value}{make()}"


def in_keyword_default(value: int, *, clock: Callable[[], float] = time.time) -> float:
    return value + clock()


def timed_by(value: int, clock: Callable[[], float]) -> float:
    return value + clock()


def wrapped(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def around(*values: object) -> object:
        return function(*values)

    return around


class Local:
    """Pickled whole."""

    def __init__(self) -> None:
        self.number = 0
        self.draw = Random(3)

    def __call__(self, value: int) -> float:
        return value + self.drawn()

    def drawn(self) -> float:
        return self.draw.random()

    def counted(self, value: int) -> int:
        self.number += 1
        return value + self.number

    def harmless(self, value: int) -> int:
        return value + self.number

    @staticmethod
    def unique() -> str:
        return secrets.token_hex(4)


class Drawing(Random):
    """A generator of one's own."""


own = Drawing(3)


def through_class(value: int) -> str:
    return f"{value}{Local.unique()}"


def through_object(value: int) -> float:
    return Local()(value)


CHANCE: dict[str, tuple[Callable[..., Any], str]] = {
    "uuid4": (lambda _: str(uuid.uuid4()), "calls uuid.uuid4"),
    "uuid1": (lambda _: str(uuid.uuid1()), "calls uuid.uuid1"),
    "by another name": (lambda _: str(OWN.uuid4()), "calls uuid.uuid4"),
    "imported name": (lambda _: str(uuid4()), "calls uuid.uuid4"),
    "random": (lambda x: x + random.random(), "calls random.random"),
    "randint": (lambda x: x + random.randint(1, 6), "calls random.randint"),
    "imported random": (lambda x: x + draw(), "calls random.random"),
    "imported choice": (lambda x: choice([x, 1]), "calls random.choice"),
    "imported shuffle": (lambda x: mix(x), "calls random.shuffle"),
    "secrets": (lambda _: secrets.token_hex(8), "calls secrets.token_hex"),
    "choice of secrets": (lambda x: secrets.choice([x, 1]), "calls secrets.choice"),
    "urandom": (lambda _: os.urandom(8), "calls os.urandom"),
    "time": (lambda x: x + time.time(), "calls time.time"),
    "time_ns": (lambda x: x + time.time_ns(), "calls time.time_ns"),
    "perf_counter": (lambda x: x + time.perf_counter(), "calls time.perf_counter"),
    "localtime": (lambda _: time.localtime().tm_hour, "calls time.localtime"),
    "strftime": (lambda _: time.strftime("%H:%M"), "calls time.strftime"),
    "now": (lambda _: datetime.datetime.now().isoformat(), "calls datetime.datetime.now"),
    "now with a zone": (lambda _: dt.datetime.now(dt.UTC), "calls datetime.datetime.now"),
    "imported now": (lambda _: moment.now(), "calls datetime.datetime.now"),
    "utcnow": (lambda _: moment.utcnow(), "calls datetime.datetime.utcnow"),
    "today": (lambda _: dt.date.today(), "calls datetime.date.today"),
    "now of pandas": (lambda _: pd.Timestamp.now(), "calls pandas.Timestamp.now"),
    "numpy": (lambda x: x + np.random.rand(), "calls numpy.random.rand"),
    "numpy by another name": (lambda x: x + npr.normal(), "calls numpy.random.normal"),
    "numpy over series": (lambda x: x + np.random.rand(len(x)), "calls numpy.random.rand"),
    "default_rng": (
        lambda x: x + np.random.default_rng().random(),
        "calls numpy.random.default_rng",
    ),
    "default_rng(None)": (
        lambda x: x + np.random.default_rng(None).random(),
        "calls numpy.random.default_rng",
    ),
    "default_rng(seed=None)": (
        lambda x: x + np.random.default_rng(seed=None).random(),
        "calls numpy.random.default_rng",
    ),
    "RandomState": (lambda x: x + np.random.RandomState().rand(), "calls numpy.random.RandomState"),
    "Random": (lambda x: x + random.Random().random(), "calls random.Random"),
    "imported Random": (lambda x: x + Random().random(), "calls random.Random"),
    "SystemRandom": (lambda x: x + random.SystemRandom(3).random(), "calls random.SystemRandom"),
    "seed without a value": (lambda x: (random.seed(), random.random()), "calls random.random"),
    "seed of another": (lambda x: (random.seed(x), np.random.rand()), "calls numpy.random.rand"),
    "generator outside": (lambda x: x + generator.random(), "uses generator, a random.Random"),
    "numpy's outside": (lambda x: x + numbers.random(), "uses numbers, a numpy.random.Generator"),
    "one's own outside": (lambda x: x + own.random(), "uses own, a random.Random"),
    "counter outside": (lambda _: next(ids), "uses ids, a itertools.count"),
    "the task": (
        lambda _: TaskContext.get(),
        "calls pyspark.taskcontext.TaskContext.get",
    ),
    "closure": (closing_over(uuid4), "calls uuid.uuid4"),
    "closure over a method": (closing_over(moment.now), "calls datetime.datetime.now"),
    "closure over a generator": (closing_over(Random(3).random), "calls random.random"),
    "helper": (lambda x: helper(x), "calls uuid.uuid4"),
    "recursion": (recursive, "calls random.random"),
    "nonlocal counter": (counting(), "counts in number"),
    "global counter": (count_all, "counts in calls"),
    "import inside": (imports_here, "calls uuid.uuid1"),
    "imported names inside": (imports_names_here, "calls random.gauss"),
    "import below inside": (imports_below, "calls numpy.random.normal"),
    "alias inside": (by_alias, "calls uuid.uuid4"),
    "comprehension": (in_comprehension, "calls random.random"),
    "inner function": (in_inner_function, "calls random.random"),
    "inner lambda": (lambda x: max(x, key=lambda _: random.random()), "calls random.random"),
    "default": (in_default, "calls uuid.uuid4"),
    "keyword default": (in_keyword_default, "calls time.time"),
    "partial": (functools.partial(helper), "calls uuid.uuid4"),
    "partial over a maker": (functools.partial(map, uuid4), "calls uuid.uuid4"),
    "partial with a keyword": (functools.partial(timed_by, clock=time.time), "calls time.time"),
    "partial with a generator": (functools.partial(max, Random(3)), "uses a random.Random"),
    "wrapped": (wrapped(helper), "calls uuid.uuid4"),
    "object": (Local(), "uses draw, a random.Random"),
    "method": (Local().drawn, "uses draw, a random.Random"),
    "method that counts": (Local().counted, "counts in number"),
    "static method": (through_class, "calls secrets.token_hex"),
    "elsewhere": (named_elsewhere.make, "calls uuid.uuid4"),
    "helper elsewhere": (named_elsewhere.by_helper, "calls uuid.uuid4"),
    "helper of elsewhere": (lambda x: named_elsewhere.by_helper(x), "calls uuid.uuid4"),
    "imported helper of elsewhere": (lambda x: by_helper(x), "calls uuid.uuid4"),
    "drawn elsewhere": (named_elsewhere.drawn, "calls random.random"),
    "numpy elsewhere": (named_elsewhere.shuffled, "calls numpy.random.permutation"),
    "generator elsewhere": (named_elsewhere.taken, "uses GENERATOR, a random.Random"),
    "object of elsewhere": (named_elsewhere.Maker("a"), "calls uuid.uuid4"),
    "method of elsewhere": (named_elsewhere.Maker("a").method, "calls uuid.uuid4"),
}


def seeded_first(value: int) -> float:
    random.seed(value)
    return random.random()


def numpy_seeded_first(value: int) -> float:
    np.random.seed(value)
    return float(np.random.rand())


def counts_inside(values: list[int]) -> int:
    number = 0

    def count() -> None:
        nonlocal number
        number += 1

    for _ in values:
        count()
    return number


def memoized(value: int, known: dict[int, int] = {}) -> int:  # noqa: B006 - as people do
    if value not in known:
        known[value] = value * 2
    return known[value]


_model: object = None


def loaded_once(value: int) -> object:
    global _model  # noqa: PLW0603 - as people do
    if _model is None:
        _model = str
    return _model, value


@eddyline.deterministic
def timed(value: int) -> int:
    began = time.perf_counter()
    return value if time.perf_counter() >= began else -1


def shadowed(value: int) -> int:
    time = datetime.timedelta(seconds=value)
    return time.seconds


HARMLESS: dict[str, Callable[..., Any]] = {
    "sleep": lambda x: [x, time.sleep],
    "strptime": lambda x: time.strptime(x, "%Y"),
    "strptime of datetime": lambda x: moment.strptime(x, "%Y"),
    "fromtimestamp": lambda x: dt.datetime.fromtimestamp(x),
    "strftime of a time": lambda x: time.strftime("%Y", time.gmtime(x)),
    "mktime": lambda x: time.mktime(x),
    "ctime of a time": lambda x: time.ctime(x),
    "seeded Random": lambda x: random.Random(x).random(),
    "seeded by an expression": lambda x: Random(hash(x) + 1).random(),
    "seeded by a constant": lambda _: random.Random(7).random(),
    "seeded default_rng": lambda x: np.random.default_rng(3).random() + x,
    "seeded by keyword": lambda x: np.random.default_rng(seed=x).random(),
    "seeded RandomState": lambda x: np.random.RandomState(x).rand(),
    "seeded bit generator": lambda x: np.random.Generator(np.random.PCG64(3)).random() + x,
    "seeded first": seeded_first,
    "numpy seeded first": numpy_seeded_first,
    "uuid5": lambda x: str(uuid.uuid5(uuid.NAMESPACE_DNS, x)),
    "uuid3": lambda x: str(uuid.uuid3(uuid.NAMESPACE_URL, x)),
    "UUID": lambda x: str(uuid.UUID(x)),
    "UUID's version": lambda x: uuid.UUID(x).version == 4,
    "compare_digest": lambda x: secrets.compare_digest(x, "a"),
    "environment": lambda x: os.environ.get("HOME", x),
    "a column called random": lambda row: (row.random, row.time, row.now()),
    "a key called uuid4": lambda row: row["uuid4"],
    "text": lambda x: f"uuid.uuid4 random time {x}",
    "counts inside": counts_inside,
    "memoized": memoized,
    "loaded once": loaded_once,
    "marked": timed,
    "calls what is marked": lambda x: timed(x),
    "partial of what is marked": functools.partial(timed, 3),
    "shadowed": shadowed,
    "object made inside with a seed": through_object,
    "harmless method": Local().harmless,
    "harmless elsewhere": named_elsewhere.waited,
    "harmless method of elsewhere": named_elsewhere.Maker("a").prefixed,
    "builtin": len,
    "class": str,
    "numpy": lambda x: np.sqrt(x),
}


def pickled(function: Callable[..., Any]) -> bytes:
    return bytes(dumps((function, StringType())))  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module", autouse=True)
def _as_of_a_notebook() -> Iterator[None]:
    """What this module defines is pickled whole, as what a notebook or a script defines."""
    here = sys.modules[__name__]
    register_pickle_by_value(here)  # type: ignore[no-untyped-call]
    yield
    unregister_pickle_by_value(here)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("function", "why"), CHANCE.values(), ids=list(CHANCE))
def test_chance_is_seen(function: Callable[..., Any], why: str) -> None:
    command = pickled(function)
    found = chance_in_pickles([command])
    assert found is not None
    assert found.startswith(why)
    in_worker, _ = loads(command)
    assert chance_in(in_worker) == chance_in(function) == found
    assert looks_non_deterministic([pickled(len), command]) == (
        f"looks non-deterministic: {found}; declare it with asNondeterministic(), "
        "or mark it with @eddyline.deterministic"
    )


@pytest.mark.parametrize("function", HARMLESS.values(), ids=list(HARMLESS))
def test_no_chance_is_seen(function: Callable[..., Any]) -> None:
    command = pickled(function)
    assert looks_non_deterministic([command]) is None
    in_worker, _ = loads(command)
    assert chance_in(in_worker) is None
    assert chance_in(function) is None
