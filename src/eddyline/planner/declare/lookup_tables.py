"""The lookup tables of a Spark context, and the server that makes their lookups."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from pyspark import SparkContext

from eddyline import catalyst
from eddyline.asking.driver_channel import Address
from eddyline.asking.filling import StageSize
from eddyline.asking.price import Books
from eddyline.blocks.lookup_table import AccessChoice, LookupTable, PlannedLookup
from eddyline.digest import digest
from eddyline.host.context_channel import channel_of
from eddyline.host.per_context import PerContext
from eddyline.host.session import local_cores
from eddyline.keeping.keep import Keep
from eddyline.latest import Latest
from eddyline.planner.read.lookup_leaves import choice_commands
from eddyline.wall_clock import WallClock

if TYPE_CHECKING:
    from eddyline.asking.access_method import AccessMethod
    from eddyline.asking.event_loop import EventLoop
    from eddyline.asking.lookup_server import LookupServer, ScanBegun
    from eddyline.asking.shared_method import Method
    from eddyline.asking.shared_statistics import SharedLookupStatistics

_CAPACITY: Final = 1_000
"""Tables remembered at a time."""


class LookupTables:
    """What was registered, by the function that stands for a table in plans."""

    def __init__(self, context: SparkContext) -> None:
        """The server starts with the first query."""
        self._context = weakref.ref(context)  # which has this, and goes when nobody else needs it
        # A method is kept by what has registered it: the tables below, declarations of functions.
        self._methods: WeakValueDictionary[str, Method] = WeakValueDictionary()
        self.books: Final = Books()
        self.keep: Keep | None = None
        """Where answers are kept of what names no place."""
        self._tables: Latest[bytes, tuple[LookupTable, Sequence[AccessMethod]]] = Latest(_CAPACITY)
        self._choices: Latest[bytes, AccessChoice] = Latest(_CAPACITY)
        self.unmeasured: Final[deque[ScanBegun]] = deque(maxlen=_CAPACITY)
        """Scans that had not ended when somebody looked how long they take."""
        self._numbers = itertools.count()
        self._loop: EventLoop | None = None
        self._server: LookupServer | None = None
        self._starting = threading.Lock()

    @property
    def any(self) -> bool:
        """Whether there is any table."""
        return len(self._tables) > 0

    def methods(self, table: str, given: Sequence[AccessMethod]) -> tuple[PlannedLookup, ...]:
        """Serve access methods as long as they are there; return what plans and tasks know."""
        made = []
        for method in given:
            bound = f"({', '.join(method.table.bind_names)})" if len(given) > 1 else ""
            name = f"{table}{bound}/{next(self._numbers)}"
            self.serve(name, method)
            bind, width = method.table.bind, method.width
            made.append(PlannedLookup(name, bind, width, method.keys_per_call, method.price))
        return tuple(made)

    def statistics(self, job: str) -> dict[str, SharedLookupStatistics]:
        """Return what was asked for a job so far, by table; from any thread.

        A table that has several ways is named with the columns that each binds, as
        ``aircraft(owner)``, and further ones of the same name are numbered.
        """
        by_table: dict[str, SharedLookupStatistics] = {}
        for method, asked in self.server.statistics(job).items():
            name = method.rpartition("/")[0]
            names = (name, *(f"{name} {number}" for number in range(2, len(by_table) + 2)))
            by_table[next(free for free in names if free not in by_table)] = asked
        return by_table

    def waiting(self, action: int) -> str:
        """Say what waits for quota in an action, if anything does; from any thread."""
        server = self._server
        return "" if server is None else "; ".join(map(str, server.quota_waits(action)))

    def remember(self, command: bytes, table: LookupTable, methods: Sequence[AccessMethod]) -> None:
        """Take note of the function that stands for a table, and keep the table's methods.

        Of more than a thousand tables, those used longest ago are forgotten: a name may be
        registered again and again, older DataFrames keep the former tables, and nobody hears when
        Spark forgets these.
        """
        self._tables.put(digest(command), (table, methods))

    def of(self, command: bytes) -> LookupTable | None:
        """Return the table that a function stands for; None where it is no such function."""
        registered = self._tables.get(digest(command))
        return None if registered is None else registered[0]

    def choose(self, command: bytes, choice: AccessChoice) -> None:
        """Take note of the function that has the keys of a table asked for, or it is scanned."""
        self._choices.put(digest(command), choice)

    def choices_in(self, plan: catalyst.Plan) -> tuple[AccessChoice, ...]:
        """Return the choices of a plan between looking a table up and scanning it."""
        return self.choices_of(map(digest, choice_commands(plan)))

    def choices_of(self, digests: Iterable[bytes]) -> tuple[AccessChoice, ...]:
        """Return the choices that functions with these digests stand for, each once."""
        made = map(self._choices.get, digests)
        return tuple(dict.fromkeys(choice for choice in made if choice is not None))

    def chosen_by(self, run: int, methods: Sequence[str]) -> AccessChoice | None:
        """Return the choice of one rewriting among these methods and a scan."""
        for choice in self._choices.values():
            if choice.run == run and [way.method for way in choice.ways] == list(methods):
                return choice
        return None

    def scans_begun(self) -> list[ScanBegun]:
        """Return which scans tables were left to since this was asked before."""
        server = self._server
        return [] if server is None else server.scans_begun()

    def refresh(self, command: bytes) -> None:
        """Find what other applications have kept of a table meanwhile, for a query with it."""
        registered = self._tables.get(digest(command))
        for method in () if registered is None else registered[1]:
            if method.kept is not None:
                method.kept.refresh()

    def serve(self, name: str, method: Method) -> None:
        """Let tasks ask for a method by a name, as long as somebody keeps it."""
        self._methods[name] = method

    def method(self, name: str) -> Method | None:
        """Return what is served under a name; None where nobody keeps it any more."""
        return self._methods.get(name)

    @property
    def server(self) -> LookupServer:
        """The server; it starts now if it has not yet."""
        with self._starting:
            if self._server is None:
                # Only users of lookup tables have what these need.
                from eddyline.asking.event_loop import EventLoop  # noqa: PLC0415
                from eddyline.asking.lookup_server import LookupServer  # noqa: PLC0415

                channel = channel_of(self._living_context())
                self._loop = EventLoop()
                self._server = LookupServer(
                    self._loop,
                    self._methods,
                    WallClock().now,
                    channel,
                    size_of=self._stage_size,
                    is_over=_is_over,
                )
            return self._server

    @property
    def address(self) -> Address:
        """Where tasks find the server."""
        return self.server.address

    @property
    def answers(self) -> int:
        """How many keys and arguments have answers that are kept."""
        server = self._server
        return 0 if server is None else server.answers

    @property
    def refusals(self) -> int:
        """How many requests were refused for quota, which are none of these."""
        server = self._server
        return 0 if server is None else server.refusals

    @property
    def requests(self) -> int:
        """How many requests were made for tables so far."""
        server = self._server
        return 0 if server is None else server.requests

    def forget(self) -> None:
        """Forget the answers for jobs that no task works for, and what each job has asked for."""
        server = self._server
        if server is not None:
            server.forget()
        self.books.forget()

    def close(self) -> None:
        """Serve no more: the context has stopped."""
        with self._starting:
            server, loop = self._server, self._loop
            self._server = self._loop = None
        if server is not None:
            server.close()
        if loop is not None:
            loop.close()

    def _stage_size(self, stage: int) -> StageSize | None:
        """Return how large a stage is; None where Spark does not know it, or has stopped."""
        context = self._context()
        try:
            if context is None or (known := context.statusTracker().getStageInfo(stage)) is None:
                return None
            cores = local_cores(str(context.master)) or context.defaultParallelism
            cpus = int(context.getConf().get("spark.task.cpus", "1") or 1)
        except Exception:  # noqa: BLE001 - Spark has stopped, in whatever way Py4J says so
            return None
        return StageSize(known.numTasks, max(1, cores // cpus))

    def _living_context(self) -> SparkContext:
        context = self._context()
        if context is None:
            raise AssertionError("whoever asks has the context")
        return context


def _is_over(job: str) -> bool:
    """Whether the action that a job is named after has ended; False where a stage names it."""
    action = job.rpartition("/")[2]
    return action.isdecimal() and not catalyst.is_running(int(action))


_tables = PerContext(LookupTables, LookupTables.close)


def lookup_tables_of(context: SparkContext) -> LookupTables:
    """Return the lookup tables of a Spark context."""
    return _tables.of(context)
