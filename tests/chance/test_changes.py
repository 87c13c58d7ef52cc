"""Which functions leave something behind that their results hang on, and which only remember."""
# The functions are such as people write.
# ruff: noqa: ANN401, ARG001, ARG002, ARG005, B006, PLC0206, PLW0108, PLW0603, PLW2101
# ruff: noqa: PTH110, PTH123, RUF051, SIM115

from __future__ import annotations

import argparse
import bisect
import collections
import heapq
import importlib
import inspect
import json
import operator
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from pyspark.accumulators import Accumulator, AddingAccumulatorParam
from pyspark.cloudpickle import dumps, loads, register_pickle_by_value, unregister_pickle_by_value
from pyspark.sql.types import StringType

import eddyline
from eddyline.chance import chance_in, chance_in_pickles
from eddyline.chance.flow_steps import FlowSteps
from eddyline.chance.inert_pickle import MISSING
from eddyline.chance.outside_changes import changes_in
from tests.chance import named_elsewhere

Function = Callable[..., Any]

d: dict[Any, Any] = {"n": 0}
L: list[Any] = []
NESTED: dict[str, Any] = {"a": {"b": []}}
queued = collections.deque(range(9))
counted: collections.Counter[Any] = collections.Counter()
grouped: collections.defaultdict[Any, list[Any]] = collections.defaultdict(list)
seen: Any = set()
append: Any = L.append
array = np.zeros(3)
heap = [3, 4]
GG = 0
last: Any = None
CACHE: dict[Any, Any] = {}
OPTIONS = {"rate": 3, "steps": [1, 2]}
TABLE = {"a": 1, "b": 2}
model: Any = None
ready = False
accumulator: Any = Accumulator(3, 0, AddingAccumulatorParam(0))


def load(key: object = None) -> Any:
    return str(key)


def dict_entry(k: int) -> int:
    d["n"] += 1
    return int(d["n"])


def dict_entry_spelled_out(k: int) -> int:
    n = d["n"] + 1
    d["n"] = n
    return int(n)


def list_outside(k: int) -> int:
    L.append(k)
    return len(L)


def list_grown_in_place(k: int) -> int:
    global L
    L += [k]
    return len(L)


def default_list(k: int, acc: list[int] = []) -> int:
    acc.append(k)
    return len(acc)


def default_list_in_place(k: int, acc: list[int] = []) -> int:
    acc += [k]
    return len(acc)


def keyword_default(k: int, *, acc: dict[str, int] = {"n": 0}) -> int:
    acc["n"] = acc["n"] + 1
    return acc["n"]


def attribute(k: int) -> int:
    attribute.n = getattr(attribute, "n", 0) + 1  # type: ignore[attr-defined]
    return int(attribute.n)  # type: ignore[attr-defined]


def attribute_by_setattr(k: int) -> int:
    setattr(attribute_by_setattr, "n", getattr(attribute_by_setattr, "n", 0) + 1)  # noqa: B010
    return int(getattr(attribute_by_setattr, "n"))  # noqa: B009


def closure_list(values: list[int] = []) -> Function:
    def function(k: int) -> int:
        values.append(k)
        return len(values)

    return function


def closure_number() -> Function:
    n = 0

    def function(k: int) -> int:
        nonlocal n
        n = n + 1
        return n

    return function


def closing_over(rows: Any) -> Function:
    return lambda k: rows.append(k) or len(rows)


def globals_entry(k: int) -> Any:
    globals()["GG"] = globals().get("GG", 0) + 1
    return globals()["GG"]


def global_from_globals(k: int) -> Any:
    global GG
    GG = globals().get("GG", 0) + 1
    return GG


def previous(k: int) -> Any:
    global last
    before = last
    last = k
    return before


def through_alias(k: int) -> int:
    mine = d
    mine["n"] += 1
    return int(mine["n"])


def through_loop(k: int) -> int:
    for each in NESTED.values():
        each["b"].append(k)
    return len(NESTED["a"]["b"])


def nested(k: int) -> int:
    NESTED["a"]["b"].append(k)
    return len(NESTED["a"]["b"])


def grouped_by(k: int) -> int:
    grouped[k].append(k)
    return len(grouped[k])


def setdefault_list(k: int) -> int:
    d.setdefault(k, []).append(k)
    return len(d[k])


def first_time_in_set(k: int) -> bool:
    if k in seen:
        return False
    seen.add(k)
    return True


def first_time_in_dict(k: int) -> str:
    if k in d:
        return "again"
    d[k] = True
    return "new"


def first_time_by_variable(k: int) -> str:
    found = "again" if k in d else "new"
    d[k] = True
    return found


def first_time_in_branch(k: int) -> str:
    found = "again"
    if k not in d:
        d[k] = k
        found = "new"
    return found


def first_call(k: int) -> str:
    global ready
    if not ready:
        ready = True
        return "header"
    return "row"


def times(k: int) -> int:
    d[k] = d.get(k, 0) + 1
    return int(d[k])


def previous_of_key(k: int, v: int) -> Any:
    before = d.get(k)
    d[k] = v
    return before


def missing_the_first_time(k: int) -> Any:
    before = d.get(k)
    if before is None:
        d[k] = k
    return before


def latest_of_key(k: int, v: int) -> Any:
    if k not in d:
        d[k] = v
    return d[k]


def by_coarse_key(k: int) -> Any:
    if k // 10 not in d:
        d[k // 10] = k
    return d[k // 10]


def size_of_cache(k: int) -> Any:
    if k not in CACHE:
        CACHE[k] = load(k)
    return CACHE[k], len(CACHE)


def environment(k: int) -> str:
    os.environ["N"] = str(int(os.environ.get("N", "0")) + 1)
    return os.environ["N"]


def environment_by_getenv(k: int) -> Any:
    before = os.getenv("N")
    os.environ["N"] = "x"
    return before


def array_element(k: int) -> float:
    array[0] += 1
    return float(array[0])


def array_slice(k: int) -> float:
    array[:] = array + 1
    return float(array[0])


def array_in_place(k: int) -> float:
    mine = array
    mine += 1
    return float(mine[0])


def array_out(k: int) -> float:
    np.add(array, 1, out=array)
    return float(array[0])


def heap_popped(k: int) -> int:
    return heapq.heappop(heap)


def inserted(k: int) -> int:
    bisect.insort(heap, k)
    return heap[0]


def set_item(k: int) -> int:
    operator.setitem(d, "n", d["n"] + 1)
    return int(d["n"])


def unbound(k: int) -> int:
    list.append(L, k)
    return len(L)


def deleted(k: int) -> int:
    if "n" in d:
        del d["n"]
    return len(d)


def grown_by_default(k: int, add: Any = L.append) -> int:
    add(k)
    return len(L)


def spread(k: int) -> int:
    L.extend(*[[k]])
    return len(L)


def locked(k: int) -> int:
    with open("lock", "w"):
        d["n"] += 1
        return int(d["n"])


def changes_its_argument(state: dict[str, int]) -> int:
    state["n"] += 1
    return state["n"]


def by_helper(k: int) -> int:
    return changes_its_argument(d)


def by_inner_function(k: int) -> int:
    def bump() -> None:
        d["n"] += 1

    bump()
    return int(d["n"])


def counter_in_file(k: int) -> int:
    path = "counter"
    n = int(open(path).read() or 0) + 1 if os.path.exists(path) else 1
    open(path, "w").write(str(n))
    return n


def counter_in_path(k: int) -> int:
    path = Path("counter")
    n = int(path.read_text(encoding="utf-8")) + 1
    path.write_text(str(n), encoding="utf-8")
    return n


def counter_in_open_file(k: int) -> int:
    with open("counter", mode="r+") as file:
        n = int(file.read()) + 1
        file.seek(0)
        file.write(str(n))
    return n


def in_try(k: int) -> int:
    try:
        d["n"] += 1
    except KeyError:
        d["n"] = 1
    return int(d["n"])


class Holder:
    shared: list[int] = []  # noqa: RUF012 - the point
    count = 0

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.by_key: dict[int, int] = {}
        self.model: Any = None
        self.path = "a"
        self.n = 0

    def collects(self, k: int) -> int:
        self.rows.append(k)
        return len(self.rows)

    def counts(self, k: int) -> int:
        self.n = self.n + 1
        return self.n

    def counts_in_dict(self, k: int) -> int:
        self.__dict__["n"] = self.__dict__["n"] + 1
        return self.n

    def counts_in_class(self, k: int) -> int:
        type(self).count = type(self).count + 1
        return self.count

    def shares(self, k: int) -> int:
        self.shared.append(k)
        return len(self.shared)

    @classmethod
    def shares_in_class(cls, k: int) -> int:
        cls.shared.append(k)
        return len(cls.shared)

    def remembers(self, k: int) -> int:
        if k not in self.by_key:
            self.by_key[k] = k * 2
        return self.by_key[k]

    def loads_once(self, k: int) -> Any:
        if self.model is None:
            self.model = load(self.path)
        return self.model, self.scaled(k)

    @property
    def loaded(self) -> Any:
        if self.model is None:
            self.model = load(self.path)
        return self.model

    def uses_loaded(self, k: int) -> Any:
        return self.loaded, k

    def scaled(self, k: int) -> int:
        values = list(self.rows)
        values.append(k)
        return sum(values)


def shared_by_new_objects(k: int) -> int:
    return Holder().shares(k)


def fills_new_object(k: int) -> int:
    holder = Holder()
    holder.rows.append(k)
    holder.n = k
    return holder.collects(k) + holder.counts(k)


def logs_and_looks(k: int) -> int:
    L.append(k)
    return k if L[0] else 0


def logs_and_asks_another(k: int) -> int:
    L.append(k)
    return size_of_log()


def size_of_log() -> int:
    return len(L)


def logs_and_hands_on(k: int) -> int:
    L.append(k)
    return sum(map(int, L))


def logs_in_a_closure_that_is_read() -> Function:
    rows: list[int] = []

    def logging(k: int) -> int:
        rows.append(k)
        return max(rows)

    return logging


class LogsAndAsksItself:
    def __call__(self, k: int) -> int:
        L.append(k)
        return self.size()

    def size(self) -> int:
        return len(L)


ASKING: dict[str, Any] = {"size": size_of_log}


def logs_and_asks_by_a_table(k: int) -> int:
    L.append(k)
    return int(ASKING["size"]())


SAME = L
HOLDING = {"log": [L]}


def logs_and_looks_by_another_name(k: int) -> int:
    L.append(k)
    return len(SAME)


def logs_and_looks_into_what_holds_it(k: int) -> int:
    L.append(k)
    return len(HOLDING["log"][0])


CHANGES: dict[str, tuple[Function, str]] = {
    "log of two names": (logs_and_looks_by_another_name, "changes L"),
    "log that something holds": (logs_and_looks_into_what_holds_it, "changes L"),
    "log that its object looks at": (LogsAndAsksItself(), "changes L"),
    "log that a table looks at": (logs_and_asks_by_a_table, "changes L"),
    "log that is looked at": (logs_and_looks, "changes L"),
    "log that another looks at": (logs_and_asks_another, "changes L"),
    "log that is handed on": (logs_and_hands_on, "changes L"),
    "log of a closure that is read": (logs_in_a_closure_that_is_read(), "changes rows"),
    "log that says something": (lambda k: bool([append(k)]) and len(L), "changes append"),
    **{
        each.__name__: (each, why)
        for each, why in (
            (dict_entry, "changes d['n']"),
            (dict_entry_spelled_out, "changes d['n']"),
            (list_outside, "changes L"),
            (list_grown_in_place, "changes L"),
            (default_list, "changes acc"),
            (default_list_in_place, "changes acc"),
            (keyword_default, "changes acc['n']"),
            (attribute, "changes attribute.n"),
            (attribute_by_setattr, "changes attribute_by_setattr.n"),
            (globals_entry, "changes GG"),
            (global_from_globals, "changes GG"),
            (previous, "changes last"),
            (through_alias, "changes d['n']"),
            (through_loop, "changes NESTED[…]['b']"),
            (nested, "changes NESTED['a']['b']"),
            (grouped_by, "changes grouped[…]"),
            (setdefault_list, "changes d[…]"),
            (first_time_in_set, "changes seen"),
            (first_time_in_dict, "changes d[…]"),
            (first_time_by_variable, "changes d[…]"),
            (first_time_in_branch, "changes d[…]"),
            (first_call, "changes ready"),
            (times, "changes d[…]"),
            (previous_of_key, "changes d[…]"),
            (missing_the_first_time, "changes d[…]"),
            (latest_of_key, "changes d[…]"),
            (by_coarse_key, "changes d[…]"),
            (size_of_cache, "changes CACHE[…]"),
            (environment, "changes os.environ['N']"),
            (environment_by_getenv, "changes os.environ['N']"),
            (array_element, "changes array[0]"),
            (array_slice, "changes array"),
            (array_in_place, "changes array"),
            (array_out, "changes array"),
            (heap_popped, "changes heap"),
            (inserted, "changes heap"),
            (set_item, "changes d['n']"),
            (unbound, "changes L"),
            (deleted, "changes d['n']"),
            (by_helper, "changes state['n']"),
            (by_inner_function, "changes d['n']"),
            (counter_in_file, "reads files and writes some"),
            (counter_in_path, "reads files and writes some"),
            (counter_in_open_file, "reads files and writes some"),
            (in_try, "changes d['n']"),
            (shared_by_new_objects, "changes Holder.shared"),
        )
    },
    "closure": (closure_list(), "changes values"),
    "nonlocal": (closure_number(), "changes n"),
    "closure of a lambda": (closing_over([]), "changes rows"),
    "spread": (spread, "changes L"),
    "handed on": (lambda k: list(map(L.append, [k])) and len(L), "changes L"),
    "under another name": (lambda k: append(k) or len(L), "changes append"),
    "default": (grown_by_default, "changes add"),
    "locked": (locked, "changes d['n']"),
    "popleft": (lambda k: queued.popleft(), "changes queued"),
    "pop": (lambda k: L.pop(), "changes L"),
    "popitem": (lambda k: d.popitem(), "changes d"),
    "update": (lambda k: (d.update(n=d["n"] + 1), d["n"])[1], "changes d"),
    "counter": (lambda k: (counted.update([k]), counted[k])[1], "changes counted"),
    "set": (lambda k: seen.add(k) or len(seen), "changes seen"),
    "method": (Holder().collects, "changes self.rows"),
    "method that counts": (Holder().counts, "changes self.n"),
    "method that counts in its dict": (Holder().counts_in_dict, "changes self.n"),
    "method that counts in its class": (Holder().counts_in_class, "changes self.__class__.count"),
    "class by an object": (Holder().shares, "changes self.shared"),
    "class method": (Holder.shares_in_class, "changes cls.shared"),
    "import_module": (
        lambda k: importlib.import_module("random").random(),
        "calls random.random",
    ),
    "__import__": (lambda k: __import__("uuid").uuid4(), "calls uuid.uuid4"),
    "getattr": (lambda k: getattr(os, "uran" + "dom")(3), "calls os.urandom"),
    "eval": (lambda k: eval("__import__('random').random()"), "calls random.random"),  # noqa: S307
    "mktemp": (lambda k: tempfile.mktemp(), "calls tempfile.mktemp"),  # noqa: S306
    "mkdtemp": (lambda k: tempfile.mkdtemp(), "calls tempfile.mkdtemp"),
    "elsewhere's dict": (named_elsewhere.in_dict, "changes STATE['n']"),
    "elsewhere's list": (lambda k: named_elsewhere.in_list(k), "changes ROWS"),
    "dict of elsewhere": (
        lambda k: named_elsewhere.STATE.update(n=k),
        "changes named_elsewhere.STATE",
    ),
}


def memoized(k: int) -> Any:
    if k not in CACHE:
        CACHE[k] = load(k)
    return CACHE[k]


def memoized_by_return(k: int) -> Any:
    if k in CACHE:
        return CACHE[k]
    value = load(k)
    CACHE[k] = value
    return value


def memoized_by_reading_back(k: int) -> Any:
    if k in CACHE:
        return CACHE[k]
    CACHE[k] = load(k)
    return CACHE[k]


def memoized_by_get(k: int) -> Any:
    value = CACHE.get(k)
    if value is None:
        value = CACHE[k] = load(k)
    return value


def memoized_by_exception(k: int) -> Any:
    try:
        return CACHE[k]
    except KeyError:
        CACHE[k] = found = load(k)
        return found


def memoized_by_setdefault(k: int) -> Any:
    return CACHE.setdefault(k, load(k))


def memoized_for_two(a: int, b: int) -> Any:
    key = (a, b)
    if key not in CACHE:
        CACHE[key] = load(a) + load(b)
    return CACHE[key].upper()


def memoized_by_text(row: Any) -> Any:
    key = json.dumps(row)
    if key not in CACHE:
        CACHE[key] = load(row)
    return CACHE[key]


def memoized_in_default(k: int, known: dict[Any, Any] = {}) -> Any:
    if not k:
        return None
    if k not in known:
        known[k] = k * 2
    return known[k]


def loads_global(k: int) -> Any:
    global model
    if model is None:
        model = load()
    return model, k


def loads_into_dict(k: int) -> Any:
    if "model" not in CACHE:
        CACHE["model"] = load("model")
    return CACHE["model"], k


def loads_for_function(k: int) -> Any:
    if not hasattr(loads_for_function, "model"):
        loads_for_function.model = load()  # type: ignore[attr-defined]
    return loads_for_function.model, k  # type: ignore[attr-defined]


def sets_up_once(k: int) -> int:
    global ready
    if not ready:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        ready = True
    return k * 2


def changes_its_own(k: int) -> Any:
    made: dict[Any, Any] = {"n": 0}
    made["n"] += k
    values = [k]
    values.append(k)
    values += [3]
    words = set()
    words.add(k)
    options = dict(OPTIONS)
    options["rate"] = k
    queue_ = collections.deque(values)
    queue_.popleft()
    numbers = np.zeros(3)
    numbers[0] += k
    namespace = argparse.Namespace()
    namespace.k = k
    counts = collections.Counter(values)
    counts.update(values)
    for each in values:
        counts[each] += 1
    return made, values, words, options, queue_, numbers, namespace


def helper_changes_its_own(k: int) -> int:
    return changes_its_argument({"n": k})


def inner_changes_its_own(k: int) -> list[int]:
    found: list[int] = []

    def visit(value: int) -> None:
        if value:
            found.append(value)
            visit(value - 1)

    visit(k)
    return found


def changes_its_argument_only(row: dict[str, Any]) -> dict[str, Any]:
    row["a"] = 3
    row.update(b=4)
    return row


def replaced_default(k: int, acc: Any = None) -> Any:
    acc = acc or []
    acc.append(k)
    return acc


def number_of_table(k: int) -> int:
    rate = TABLE["a"]
    rate += k
    for name in TABLE:
        rate += TABLE[name] + len(OPTIONS)
    return rate


def writes_a_log(k: int) -> int:
    with open("log", "a") as file:
        file.write(str(k))
    return k


def reads_a_file(k: int) -> str:
    with open("table", encoding="utf-8") as file:
        return file.read()


def reads_and_locks(k: int) -> int:
    with threading.Lock():
        return len(L) + k


def gives_a_queue(k: int) -> int:
    made: queue.Queue[int] = queue.Queue()
    made.put(k)
    return made.get()


def accumulated(k: int) -> int:
    global accumulator
    accumulator += 1
    accumulator.add(2)
    return k


@eddyline.deterministic
def marked(k: int) -> int:
    d["n"] += 1
    return k


def logs(k: int) -> int:
    L.append(threading.current_thread().name)
    return k + 1


def logs_at_times(k: int) -> int:
    if k % 2:
        L.append((k, str(k)))
        SEEN.add(k)
    return k


def logging_in_a_closure() -> Function:
    rows: list[int] = []

    def logging(k: int) -> int:
        rows.append(k)
        return k % 3

    return logging


SEEN: set[int] = set()
LONG: list[tuple[int, int | None]] = [(at, None) for at in range(2_000)]
NAMES = {"odd": ("one", ["three", {"five": 5}])}


def logs_much(k: int) -> int:
    LONG.append((k, len(NAMES["odd"])))
    return k


HARMLESS: dict[str, Function] = {
    "log": logs,
    "log at times": logs_at_times,
    "log that holds much": logs_much,
    "log of a closure": logging_in_a_closure(),
    **{
        each.__name__: each
        for each in (
            *(
                memoized,
                memoized_by_return,
                memoized_by_reading_back,
                memoized_by_get,
                memoized_by_exception,
            ),
            *(memoized_by_setdefault, memoized_for_two, memoized_by_text, memoized_in_default),
            *(loads_global, loads_into_dict, loads_for_function, sets_up_once, changes_its_own),
            *(helper_changes_its_own, inner_changes_its_own, changes_its_argument_only),
            *(replaced_default, number_of_table, writes_a_log, reads_a_file, reads_and_locks),
            *(gives_a_queue, fills_new_object, accumulated, marked),
        )
    },
    "memoizing method": Holder().remembers,
    "loading method": Holder().loads_once,
    "loading property": Holder().uses_loaded,
    "method": Holder().scaled,
    "looked up": lambda k: TABLE.get(k, OPTIONS["rate"]),
    "environment": lambda k: os.environ.get("HOME", k),
    "import_module": lambda k: importlib.import_module("json").dumps(k),
    "getattr": lambda k: getattr(k, "name", OPTIONS),
    "eval": lambda k: eval("abs(-3)"),  # noqa: S307
}


@pytest.fixture(scope="module", autouse=True)
def _as_of_a_notebook() -> Iterator[None]:
    """What this module defines is pickled whole, as what a notebook or a script defines."""
    here = sys.modules[__name__]
    register_pickle_by_value(here)  # type: ignore[no-untyped-call]
    yield
    unregister_pickle_by_value(here)  # type: ignore[no-untyped-call]


def pickled(function: Function) -> bytes:
    return bytes(dumps((function, StringType())))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("function", "why"), CHANGES.values(), ids=list(CHANGES))
def test_a_change_is_seen(function: Function, why: str) -> None:
    command = pickled(function)
    in_worker, _ = loads(command)
    for found in (chance_in(function), chance_in_pickles([command]), chance_in(in_worker)):
        assert found is not None
        assert found.startswith((why, "counts in"))


@pytest.mark.parametrize("function", HARMLESS.values(), ids=list(HARMLESS))
def test_no_change_is_seen(function: Function) -> None:
    command = pickled(function)
    in_worker, _ = loads(command)
    for found in (chance_in(function), chance_in_pickles([command]), chance_in(in_worker)):
        assert found is None


def test_any_code_can_be_read() -> None:
    """None of the standard library upsets it, which has all that there is to write."""
    functions = [
        each
        for module in (argparse, collections, inspect, json.decoder, queue, tempfile, threading)
        for held in (module, *filter(inspect.isclass, vars(module).values()))
        for each in vars(held).values()
        if isinstance(each, FunctionType)
    ]
    assert len(functions) > 400
    for each in functions:
        flow = FlowSteps(each.__globals__, frozenset(), lambda _: MISSING, {})
        list(changes_in(each.__code__, flow))
