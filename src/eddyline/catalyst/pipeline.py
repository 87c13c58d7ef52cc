"""Calls into the JVM that are put off until somebody asks what came of them, then made together.

A crossing over the gateway takes 0.1 to 0.2 ms, whatever is done in the JVM; building the plan of
a join of five tables takes a thousand calls. Most of them only make something for the next one:
their result is of no interest here. So a call on a :class:`Later` gives a Later again, and goes
into a program; where a value is asked for, by ``int``, ``str``, ``bool`` or ``==``, all that was
put off crosses with the question. (Liskov and Shrira, Promises, 1988, call this call streaming.)

The program is run by a small class in Java that Spark's own compiler, Janino, compiles at run time,
once on a machine (:mod:`eddyline.catalyst.compiled_java`). Where that does not work, nothing is put
off: a call is what Py4J makes of it.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import logging
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext

from eddyline.catalyst.compiled_java import loader_with, mistakes_in, parent_of_all, sources

_SOURCES: Final = ("Pipeline", "PlanMaker", "PlanQuestions", "PartitionFilters", "PlanReader")
"""Classes in Java, each a file beside this one; the last one needs those before it."""

_WHOLE: Final = range(-(2**31), 2**31)
"""What Java's int can hold."""


_NOT_YET: Final = object()


class Later:
    """Something in the JVM whose value was not asked for yet."""

    __slots__ = ("__weakref__", "_fetched", "pipeline", "slot")

    def __init__(self, pipeline: Pipeline, slot: int) -> None:
        self.pipeline: Final = pipeline
        self.slot: Final = slot
        self._fetched: Any = _NOT_YET

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as Py4J's objects
        """Return a method of that name."""
        if name == "Java" or name.startswith("_"):  # what Py4J and Python ask objects for
            raise AttributeError(name)
        return functools.partial(self.pipeline.method, self, name)

    def fetch(self) -> Any:  # noqa: ANN401 - Py4J has no types
        """Return what it is: a number, a text, a handle of Py4J's."""
        if self._fetched is _NOT_YET:
            self._fetched = self.pipeline.value(self)
        return self._fetched

    def _get_object_id(self) -> str:
        """Return how Py4J knows it, so that it may be an argument of any call."""
        return str(self.fetch()._get_object_id())

    def __int__(self) -> int:
        return int(self.fetch())

    __index__ = __int__

    def __str__(self) -> str:
        return str(self.fetch())

    def __bool__(self) -> bool:
        return bool(self.fetch())

    def __eq__(self, other: object) -> bool:
        return bool(self.fetch() == (other.fetch() if isinstance(other, Later) else other))

    def __hash__(self) -> int:
        return hash(self.fetch())

    def __repr__(self) -> str:
        return f"Later({self.slot})"

    def __del__(self) -> None:
        self.pipeline.freed.append(self.slot)


class Pipeline:
    """The calls that one thread has put off."""

    def __init__(self, java: Any) -> None:  # noqa: ANN401 - Py4J has no types
        """Take a new object of the class in Java."""
        self._java = java
        self._program: list[str] = []
        self._slots = 0
        self._running = threading.RLock()  # another thread may have got a Later of this one
        # Handles of Py4J's that were put into slots, with what tells when each is gone. Some live
        # as long as the process, and must not keep this, which goes with its thread.
        self._known: dict[str, tuple[int, weakref.finalize[..., JavaObject]]] = {}
        self.freed: deque[int] = deque()
        self.classes: Final[dict[str, Later]] = {}  # objects of ours, for static methods

    def static(self, kind: str, name: str, arguments: Iterable[object]) -> Later:
        """Put off a call of a static method of a class."""
        return self._put_off("S", f"{_word(kind)}{_word(name)}", arguments)

    def new(self, kind: str, arguments: Iterable[object]) -> Later:
        """Put off making an object of a class."""
        return self._put_off("C", _word(kind), arguments)

    def method(self, target: Later, name: str, *arguments: object) -> Later:
        """Put off a call of a method."""
        return self._put_off("M", f"r{target.slot};{_word(name)}", arguments)

    def holding(self, java: JavaObject) -> Later:
        """Return a handle of Py4J's as something to call methods of later."""
        with self._running:
            self._slots += 1
            later = Later(self, self._slots)
            self._java.put(later.slot, java)
            return later

    def value(self, later: Later) -> Any:  # noqa: ANN401 - Py4J has no types
        """Make all calls that were put off, and return what came of one."""
        with self._running:
            gone = [self.freed.popleft() for _ in range(len(self.freed))]
            program = "".join((*self._program, *(f"D{slot};" for slot in gone)))
            self._program.clear()
            value = self._java.run(program, later.slot)
            if not isinstance(value, str):
                return value
            pieces = [value]
            read = len(value.encode("utf-16-le")) // 2 - 1
            while pieces[-1][0] == "+":
                pieces.append(self._java.textFrom(read))
                read += len(pieces[-1].encode("utf-16-le", "surrogatepass")) // 2 - 1
            return "".join(piece[1:] for piece in pieces)

    def _put_off(self, kind: str, what: str, arguments: Iterable[object]) -> Later:
        with self._running:
            given = [self._argument(argument) for argument in arguments]
            self._slots += 1
            later = Later(self, self._slots)
            self._program.append(f"{kind}{later.slot};{what}{len(given)};{''.join(given)}")
            return later

    def _argument(self, value: object) -> str:  # noqa: PLR0911 - one a kind
        match value:
            case Later():
                if value.pipeline is not self:
                    return self._argument(value.fetch())
                return f"r{value.slot};"
            case None:
                return "n"
            case bool():
                return "t" if value else "f"
            case int():
                return f"i{int(value)};" if int(value) in _WHOLE else f"j{int(value)};"
            case str():
                return f"s{_word(str(value))}"
            case bytes() | bytearray():
                return f"y{_word(base64.b64encode(value).decode())}"
            case list():
                return f"l{len(value)};{''.join(map(self._argument, value))}"
            case JavaObject():
                return f"r{self._slot_of(value)};"
        raise TypeError(f"{value!r} is nothing that a call which is put off may have")

    def _slot_of(self, java: JavaObject) -> int:
        name = str(java._get_object_id())
        if name not in self._known:
            self._slots += 1
            self._java.put(self._slots, java)
            gone = weakref.finalize(java, _forget, weakref.ref(self), name)
            self._known[name] = self._slots, gone
        return self._known[name][0]

    def forget(self, name: str) -> None:
        """Give up the slot of a handle that is gone."""
        self.freed.append(self._known.pop(name)[0])

    def __del__(self) -> None:
        for _, gone in self._known.values():
            gone.detach()


def _forget(pipeline: weakref.ref[Pipeline], name: str) -> None:
    known = pipeline()
    if known is not None:
        known.forget(name)


def _word(text: str) -> str:
    length = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return f"{length};{text}"


class _OfThread(threading.local):
    """The pipeline of a thread, and for which gateway it is."""

    gateway: int | None = None
    pipeline: Pipeline | None = None


_of_thread = _OfThread()
_free: deque[tuple[int, Pipeline]] = deque(maxlen=8)  # with the gateways that they are for
_compiling = threading.Lock()
_compiled: dict[int, Any] = {}  # a class loader by gateway; None where nothing could be compiled


def pipeline() -> Pipeline | None:
    """Return the pipeline of this thread; None where calls are not to be put off."""
    gateway = id(SparkContext._jvm)
    if _of_thread.gateway != gateway:
        kind = _loaded("Pipeline")
        _of_thread.pipeline = None if kind is None else Pipeline(_new(kind))
        _of_thread.gateway = gateway
    return _of_thread.pipeline


@contextlib.contextmanager
def of_its_own() -> Iterator[None]:
    """Put off calls in a pipeline of its own: that of the thread may be amid a program.

    Pipelines are handed on when they are free: to make one, and to tell it what all plans need,
    takes twenty calls, more than to read a small plan.
    """
    was = _of_thread.pipeline, _of_thread.gateway
    gateway = id(SparkContext._jvm)
    if _free and _free[-1][0] != gateway:  # of a JVM that is gone
        _free.clear()
    try:
        _of_thread.gateway, _of_thread.pipeline = _free.pop()
    except IndexError:
        _of_thread.gateway = None
    try:
        yield
    finally:
        if _of_thread.pipeline is not None and _of_thread.gateway == gateway:
            _free.append((gateway, _of_thread.pipeline))
        _of_thread.pipeline, _of_thread.gateway = was


def put_off(java: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return a handle of Py4J's such that calls of its methods are put off, where that works."""
    of_thread = pipeline()
    return java if of_thread is None else of_thread.holding(java)


@functools.cache
def _object_in(_gateway: int, name: str) -> Any:  # noqa: ANN401 - Py4J has no types
    return _new(_loaded(name))


def reader(of_thread: Pipeline) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return the class that reads plans: its static methods, called by a pipeline."""
    return _class_of(of_thread, "PlanReader")


def questions(of_thread: Pipeline) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return the class that answers for whole sequences, likewise."""
    return _class_of(of_thread, "PlanQuestions")


def maker(of_thread: Pipeline) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the class that makes nodes and expressions, likewise."""
    return _class_of(of_thread, "PlanMaker")


def new_partition_filters() -> Any:  # noqa: ANN401  # Py4J has no types
    """Return an object that puts filters back which Spark has dropped from one plan."""
    return _new(_loaded("PartitionFilters"))


def _class_of(of_thread: Pipeline, name: str) -> Later:
    if name not in of_thread.classes:
        of_thread.classes[name] = of_thread.holding(_object_in(id(SparkContext._jvm), name))
    return of_thread.classes[name]


def get_ready() -> None:
    """Load or compile, in the background: up to 0.5 s in a new JVM; nothing without one."""
    if SparkContext._jvm is not None and id(SparkContext._jvm) not in _compiled:
        threading.Thread(target=_loader, name="eddyline-compiling", daemon=True).start()


def _loaded(name: str) -> Any:  # noqa: ANN401 - Py4J has no types
    loader = _loader()
    return None if loader is None else loader.loadClass(f"eddyline.catalyst.{name}")


def _new(kind: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    return kind.newInstance()  # its constructor, by name, is a dozen calls more: 0.7 ms, warm


def _loader() -> Any:  # noqa: ANN401 - Py4J has no types
    """Return the class loader of what was compiled; None where it could not be."""
    jvm = cast("Any", SparkContext._jvm)
    with _compiling:
        if id(jvm) not in _compiled:
            _compiled[id(jvm)] = _compile(jvm)
        return _compiled[id(jvm)]


def _compile(jvm: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    try:
        loader = parent_of_all(jvm)
        for name in _SOURCES:
            loader = loader_with(jvm, name, loader)
    except (Py4JError, TypeError) as error:  # TypeError: no such class
        logging.getLogger("eddyline").info("Calls into the JVM are made one by one: %s", error)
        return None
    return loader


_ALONE: Final = {
    "AdaptingRule": "PythonSide",
    "CounterSource": "PythonSide",
    "ReportPoster": "RoutingReportEvent",
    "RoutingReportEvent": "PythonSide",
    "PythonSide": "KnownRewritings",
    "KnownRewritings": "ThreadConnections",
}
"""Classes that few need, each with the one that it needs itself."""


@functools.cache
def _compiled_alone(_gateway: int, name: str) -> Any:  # noqa: ANN401 - Py4J has no types
    jvm = cast("Any", SparkContext._jvm)
    if name in _ALONE:
        loader = _compiled_alone(_gateway, _ALONE[name]).getClassLoader()
    else:
        loader = parent_of_all(jvm)
    return loader_with(jvm, name, loader).loadClass(f"eddyline.catalyst.{name}")


def new_alone(name: str) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return an object of a class that few need, compiled when asked for.

    Raises ``Py4JError`` or TypeError where nothing can be compiled.
    """
    with _compiling:
        kind = _compiled_alone(id(SparkContext._jvm), name)
    return _new(kind)


def mistakes_in_java() -> dict[str, str]:
    """Compile every class in the JVM that runs; return what is wrong with each, "" for nothing."""
    alone = sorted(sources().difference(_SOURCES), key=_depth)
    return mistakes_in(cast("Any", SparkContext._jvm), (*_SOURCES, *alone))


def _depth(name: str) -> int:
    """Return how many classes have to be there before one."""
    return 1 + _depth(_ALONE[name]) if name in _ALONE else 0
