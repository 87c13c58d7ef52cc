"""Standing queries: any number of continuous queries in one Spark streaming job.

Over 600 lines, as it is the public face: a method for each verb, most of it what users read of it.
"""

from __future__ import annotations

import datetime as dt
import inspect
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructField

from eddyline.blocks.column_types import spark_type
from eddyline.checked_values import positive_number, switch, text, whole_number
from eddyline.errors import NotShareableError, StateError, UnknownQueryError
from eddyline.host.classic import classic, classic_session
from eddyline.quirks.state_in_python import require_state_in_python
from eddyline.standing.analysis import Analysis
from eddyline.standing.arguments import (
    checked_frames,
    checked_name,
    checked_names,
    checked_state,
    kept_for,
    microseconds_of,
)
from eddyline.standing.computed_parameters import with_computed
from eddyline.standing.exploded_streams import exploded
from eddyline.standing.history.old_data import OldData
from eddyline.standing.introspection import BatchRecord, Introspection, Progress
from eddyline.standing.joining_job import JoiningBatches
from eddyline.standing.log.jobs import Job, job_of
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.log.query_constants import ConstantError, constants_of
from eddyline.standing.log.rule_limits import RuleLimits
from eddyline.standing.markers import markers_in, require_columns
from eddyline.standing.outputs import QUERY, SAMPLE, OutputColumns
from eddyline.standing.overload import POLICIES, Overload
from eddyline.standing.parameter_tables import as_sent, as_table, check_shown, kinds_of
from eddyline.standing.pattern_parameters import PatternParameters
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.query_template import QueryGroup, QueryTemplate
from eddyline.standing.recent_results import RecentResults, recent_frame, results_under
from eddyline.standing.requests import Desk
from eddyline.standing.running_job import RunningJob
from eddyline.standing.selecting_job import SelectingBatches
from eddyline.standing.sinks import Batch, Callback, ParquetSink, Sink, as_sink, tell
from eddyline.standing.stream_settings import cell_labels, require_protobuf
from eddyline.standing.subscriptions import Subscriptions
from eddyline.standing.tasks.counts import CountsParam
from eddyline.standing.tasks.sampled_rows import SAMPLE_TYPE
from eddyline.standing.time_bounds import check_bounded, check_whole
from eddyline.standing.window_steps import check_backfill, check_step
from eddyline.standing.written_parameters import written_templates

_GLANCE = 0.1
"""Seconds between two looks at whether there is a job by now."""

_TRIGGERS: Final = tuple(inspect.signature(DataStreamWriter.trigger).parameters)[1:]
"""What this PySpark knows: its later releases have more of them."""


class StandingQueries:
    """Queries over streams that are added and dropped while the streams run, and share their work.

    Selections, joins, and aggregates in windows and sessions; those with the same streams and key
    share a Spark job. Queries are SQL over the names of the streams, analyzed by Spark. Each sees
    the rows that arrive after it was added. They are kept in ``state``, a directory that driver and
    workers share, with everything needed to go on after a crash.

    - ``streams``: streaming DataFrames by name. ``tables``: other DataFrames by name, whose rows
      are read once, when a query first joins them: small ones, which every worker holds.
    - ``on_overload``: what happens when a micro-batch takes longer than ``target`` seconds and so
      is too large. With "block" events wait where they come from; with "sample" only as many are
      taken as can be worked in time, the others are counted as dropped, and a column ``sample``
      says what each result is worth.
    - ``function_seconds``: how long a Python function may take in a task of a micro-batch; then it
      is called no more in it, and the queries that need the call are paused.
    - ``max_results``: how many results a query may have in a micro-batch; one with more is paused
      after it, and those beyond are left out.
    - ``history``: how long the events of streams are kept, back from the latest one, such as ``"7
      days"``: old data for queries with ``backfill``. Once kept, it is to be given every time.
    - ``recent``: how many results of each query are kept for :meth:`results`, where the sink is a
      function; under a path all are.
    - ``remember``: cache the results of deterministic Python functions from event to event, in 64
      MB of each worker process.

    As a context manager it stops at the end of the block.

    Raises ``NotShareableError`` for a query that cannot stand, ``UnknownQueryError`` for a name
    without a query, ``StateError`` for a state directory that is in use, damaged, or of other
    streams, ``TypeError`` and ``ValueError`` for invalid arguments, and PySpark's own errors for
    invalid SQL.
    """

    def __init__(  # noqa: PLR0913 - what users may choose, by name
        self,
        spark: SparkSession,
        *,
        streams: Mapping[str, DataFrame],
        tables: Mapping[str, DataFrame] | None = None,
        state: str | Path,
        on_overload: str = "block",
        target: float = 2.0,
        remember: bool = True,
        function_seconds: float | None = None,
        max_results: int | None = None,
        history: str | dt.timedelta | None = None,
        recent: int | None = None,
    ) -> None:
        """Open the queries of a state directory, which is created if it does not exist."""
        self._spark = classic_session(spark)
        require_state_in_python()
        if on_overload not in POLICIES:
            raise ValueError(f"on_overload is one of {', '.join(POLICIES)}, not {on_overload!r}")
        self._remember = switch(remember, "remember")
        self._limits = RuleLimits(
            None
            if function_seconds is None
            else positive_number(function_seconds, "function_seconds", "of seconds"),
            None if max_results is None else whole_number(max_results, "max_results", 1),
        )
        self._on_overload, self._target = on_overload, positive_number(target, "target")
        self._streams, self._tables = checked_frames(streams, tables)
        directory = checked_state(state)
        horizon = None if history is None else microseconds_of(history)
        most = None if recent is None else whole_number(recent, "recent", 1)
        frames = self._streams | self._tables
        self._schemas = {name: df.schema for name, df in frames.items()}
        self._analysis = Analysis(self._spark, self._schemas, self._tables)
        self._analysis.table_frame = self._table_frame
        schemas = {name: schema.json() for name, schema in self._schemas.items()}
        self._registry = QueryRegistry(directory, schemas)
        # Once it has sampled, what is kept may have lost events, and results go on to say so.
        self._samples = self._registry.samples(now=on_overload == "sample")
        self._columns = OutputColumns((QUERY, SAMPLE) if self._samples else (QUERY,))
        known = [*self._registry.running(), *(query for query, _ in self._registry.paused())]
        for query in known:
            self._columns.take(query.template)
            if on_overload == "sample":
                try:
                    check_whole(query.template, None, samples=True)
                    check_step(query.template, samples=True)
                except NotShareableError:
                    self._registry.close()
                    raise
        self._analysis.know((query.template for query in known), self._registry.next_columns())
        self._sink: Sink | None = None
        self._jobs: dict[str, RunningJob] = {}
        self._subscriptions = Subscriptions()
        self._counts = self._spark.sparkContext.accumulator({}, CountsParam())
        self._recent = None if most is None else RecentResults(directory / "recent.sqlite", most)
        try:
            self._old = OldData(
                self._spark,
                self._analysis,
                self._registry,
                {name: self._schemas[name] for name in self._streams},
                horizon,
                self._counts,
                self._put_out,
                self._note_part,
                remember=self._remember,
                samples=self._samples,
            )
        except BaseException:
            self._registry.close()
            raise
        self._introspection = Introspection(self._registry.numbers, self._old.state_of)
        self._cells = min(
            self._spark.sparkContext.defaultParallelism,
            int(str(self._spark.conf.get("spark.sql.shuffle.partitions"))),
        )
        self._starting = threading.RLock()
        self._desk: Desk | None = None
        self._trigger: dict[str, Any] = {}

    def add(
        self,
        sql: str,
        *,
        name: str,
        backfill: str | dt.timedelta | None = None,
        keep: str | dt.timedelta | None = None,
    ) -> None:
        """Add a query; it sees the rows of the next micro-batch and of all after it.

        With ``backfill``, an interval such as ``"1 day"``, a query also sees the events of that
        time before the latest one, which come from the ``history``; of aggregates the windows that
        begin within it. Each event is seen once, and the old ones in the background: ``queries()``
        says how far that is. A query that joins streams sees those that are stored for others.

        A query that joins streams needs a bound on the distance of their event times: a window, or
        ``keep``. With ``"1 hour"`` rows meet whose times are no farther apart, and are stored no
        longer; with ``"forever"`` rows are stored for good.

        Raises PySpark's ``ParseException`` and ``AnalysisException`` for invalid SQL,
        ``NotShareableError`` for a query that cannot stand, ``ValueError`` for a name that is
        taken.
        """
        named = (checked_name(name),)
        self._add(sql, pa.table({}), named, {}, backfill=backfill, keep=kept_for(keep))

    def add_many(
        self,
        template: str,
        parameters: object,
        *,
        name: str | None = None,
        backfill: str | dt.timedelta | None = None,
        keep: str | dt.timedelta | None = None,
    ) -> tuple[str, ...]:
        """Add a query for each row of ``parameters``, whose values replace ``:markers``.

        ``parameters`` is a pandas or Spark DataFrame or an Arrow table, with a column for each
        marker, in conditions and in the SELECT list; without rows nothing is done. Its column
        ``name`` names the queries; without one they are called ``name-0``, ``name-1`` and so on.
        Either all queries are added or none. Returns their names. Times without a zone are in the
        session's zone in pandas, as in ``createDataFrame``; in an Arrow table they are
        ``TIMESTAMP_NTZ``. ``backfill`` and ``keep`` are as for :meth:`add`.
        """
        text(template, "a query", "SELECT * FROM events WHERE id = :id")
        table = as_table(parameters, self._analysis.time_zone)
        if not len(table):
            return ()
        if "name" in table.column_names:
            names = tuple(map(checked_name, table["name"].to_pylist()))
            if "name" not in markers_in(template):
                table = table.drop_columns(["name"])
        elif name is not None:
            names = tuple(f"{checked_name(name)}-{number}" for number in range(len(table)))
        else:
            require_columns(template, table.column_names)
            raise ValueError("queries need names: a column `name`, or name=")
        if len(set(names)) < len(names):
            raise ValueError("two queries have the same name")
        kinds = kinds_of(table)
        sent = as_sent(table, kinds, self._analysis.time_zone)
        self._add(template, sent, names, kinds, backfill=backfill, keep=kept_for(keep))
        return names

    def replace(
        self,
        name: str,
        sql: str,
        *,
        backfill: str | dt.timedelta | None = None,
        keep: str | dt.timedelta | None = None,
    ) -> None:
        """Replace a query by another one, between two micro-batches and without a gap.

        ``backfill`` and ``keep`` are as for :meth:`add`.
        """
        self._require(name)
        instead = (name,)
        kept = kept_for(keep)
        self._add(sql, pa.table({}), (name,), {}, instead=instead, backfill=backfill, keep=kept)

    def drop(self, *names: str) -> None:
        """Drop queries from the next micro-batch on; UnknownQueryError for a name without one."""
        chosen = checked_names(names, "drop")
        self._subscriptions.end(chosen, lambda: self._registry.drop(chosen), self._at_work)
        if self._recent is not None:
            self._recent.forget(chosen)

    def pause(self, *names: str) -> None:
        """Pause queries: they miss the rows that arrive until they are resumed."""
        self._registry.pause(checked_names(names, "pause"))

    def resume(self, *names: str) -> None:
        """Resume paused queries with the rows that arrive from now on."""
        self._registry.resume(checked_names(names, "resume"))
        self._start_jobs(self._jobs_wanted())

    def subscribe(self, name: str, callback: Callback) -> None:
        """Pass the results of one query to ``callback``, besides the sink, while this process runs.

        The callback gets an Arrow table in the query's own columns, and the batch, for each
        micro-batch with results. The subscription outlives a replaced or paused query, and ends
        with a dropped one.
        """
        if not callable(callback):
            raise TypeError(f"callback is a function of a table and a batch, not {callback!r}")
        self._subscriptions.add(name, callback, lambda: self._require(name))

    def results(self, name: str) -> DataFrame:
        """Return what a query has put out lately, for those who come later.

        In the query's own columns, and ``batch``, the micro-batch or part of a backfill that a
        result came with. Where the sink is a path these are all results under it; where it is a
        function the latest, as many as ``recent`` says and those of the same batch.

        Raises ``UnknownQueryError``, and ``ValueError`` where no results are kept.
        """
        outputs = self._registry.named(name).template.outputs
        columns = [StructField(column.name, spark_type(column.type)) for column in outputs]
        if self._samples:
            columns.insert(0, StructField(SAMPLE, from_arrow_type(SAMPLE_TYPE)))
        if isinstance(self._sink, ParquetSink):
            return results_under(self._spark, self._sink.path, name, columns)
        if self._recent is None:
            raise ValueError(
                "results are kept under a path, while the queries run, and for a function with "
                "recent=, as in StandingQueries(…, recent=1_000)"
            )
        return recent_frame(self._spark, self._recent.of(name, columns), columns)

    def queries(self) -> DataFrame:
        """Return a table of all queries: state, SQL, and results so far."""
        table = self._introspection.queries(self._registry.running(), self._registry.paused())
        return self._spark.createDataFrame(table)

    def batches(self) -> DataFrame:
        """Return a table of the latest micro-batches: rows in, results and seconds."""
        return self._spark.createDataFrame(self._introspection.batches())

    def windows(self) -> DataFrame:
        """Return a table of the latest closed windows that lost events, of all jobs."""
        return self._spark.createDataFrame(self._introspection.windows())

    def stems(self) -> DataFrame:
        """Return a table of the rows stored for joins, by job, cell and stream."""
        return self._spark.createDataFrame(self._introspection.stems())

    def operators(self) -> DataFrame:
        """Return a table of the time taken by each operator in the tasks."""
        return self._spark.createDataFrame(self._introspection.operators())

    def start(self, sink: Sink | str | Path, *, by_query: bool = False, **trigger: object) -> Self:
        """Run the queries, and pass the results of each micro-batch to ``sink``.

        The sink is a function of a DataFrame and a :class:`~eddyline.standing.sinks.Batch`, or a
        path, under which Parquet files are written for each micro-batch; with ``by_query`` in a
        directory for each query. ``trigger`` is as in ``DataStreamWriter.trigger``:
        ``processingTime="1 second"``, ``availableNow=True``. Where these have ended by themselves
        they may be started again.
        """
        with self._starting:
            self._registry.require_open()
            if self._sink is not None and self._has_failed():
                raise RuntimeError(
                    "a job of the standing queries has failed: stop() them, and make them anew to "
                    "go on from where they were"
                )
            if self._sink is not None and self._have_ended():
                self._halt()
            if self._sink is not None:
                raise RuntimeError("the standing queries run already")
            if unknown := trigger.keys() - _TRIGGERS:
                raise TypeError(f"{min(unknown)} is no trigger of Spark: {', '.join(_TRIGGERS)}")
            self._sink = as_sink(sink, by_query=by_query)
            self._trigger = dict(trigger)
            self._desk = Desk(self._registry.state, self._answer)
            self._old.start()
            try:
                self._start_jobs(self._jobs_wanted())
            except BaseException:
                self._halt()  # so that it can be tried again
                raise
        return self

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the jobs end, at most ``timeout`` seconds; raise the error that ended them.

        Then old data are waited for, as far as their backfills can be done.
        Returns whether they have ended. Where no query has run yet there is nothing to end, unless
        the jobs take only the data that are there.
        """
        if timeout is not None:
            timeout = positive_number(timeout, "timeout", "of seconds")
        while not self._jobs and not self._ends_by_itself:
            if timeout is not None:
                time.sleep(timeout)
                return False
            time.sleep(_GLANCE)
        done = True
        for job in list(self._jobs.values()):
            done = job.await_termination(timeout) and done
        return done and self._old.wait(timeout)

    def _has_failed(self) -> bool:
        return any(job.query.exception() is not None for job in self._jobs.values())

    def _have_ended(self) -> bool:
        return self._ends_by_itself and all(
            job.await_termination(_GLANCE) for job in self._jobs.values()
        )

    @property
    def _ends_by_itself(self) -> bool:
        return bool(self._trigger.get("availableNow") or self._trigger.get("once"))

    def progress(self) -> Progress:
        """Return the work of all jobs since the start, in numbers."""
        return self._introspection.progress

    def stop(self) -> None:
        """Stop the jobs, and release the state directory."""
        self._halt()
        if self._recent is not None:
            self._recent.close()
        self._registry.close()

    def _halt(self) -> None:
        if self._desk is not None:
            self._desk.close()
            self._desk = None
        for job in self._jobs.values():
            job.stop()
        self._old.stop()
        self._jobs.clear()
        self._sink = None

    def __enter__(self) -> Self:
        """Return these queries, which stop at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _add(
        self,
        sql: str,
        table: pa.Table,
        names: tuple[str, ...],
        kinds: Mapping[str, Any],
        instead: Sequence[str] = (),
        backfill: str | dt.timedelta | None = None,
        keep: int | None = None,
    ) -> None:
        self._registry.require_open()
        look_back = None if backfill is None else microseconds_of(backfill)
        text(sql, "a query", "SELECT * FROM events")
        complete = partial(self._with_computed, table, names)
        groups = []
        for branches, rows in written_templates(
            sql,
            lambda text: tuple(b.template for b in self._analysis.read(text, kinds, keep)),
            table,
            kinds,
            range(len(names)),
            PatternParameters(self._spark, complete, names),
        ):
            check_backfill(branches, look_back)
            whole = len(rows) == len(names)
            own_names = names if whole else tuple(names[row] for row in rows)
            own = table if whole else table.take(pa.array(rows))
            groups += [
                self._checked(
                    QueryGroup(
                        0,
                        own_names,
                        template,
                        self._with_computed(own, own_names, template),
                        look_back,
                    )
                )
                for template in branches
            ]
        for group in groups:
            self._columns.take(group.template)
        self._registry.add(*groups, instead=instead)
        self._start_jobs(list(dict.fromkeys(job_of(group.template) for group in groups)))

    def _with_computed(
        self, table: pa.Table, names: Sequence[str], template: QueryTemplate
    ) -> pa.Table:
        """Return parameters of queries with what Spark computes of them for a template."""
        if not template.computed:
            return table
        sources = self._analysis.read_again(template).computed
        return with_computed(self._spark, template, sources, table, names)

    def _checked(self, group: QueryGroup) -> QueryGroup:
        """Return a group whose queries can stand; NotShareableError where one of them cannot."""
        template = group.template
        check_bounded(template, self._analysis.schemas)
        job = job_of(template)
        check_whole(template, group.look_back, samples=self._samples)
        check_step(template, samples=self._samples)
        if group.look_back is not None:
            self._old.check(template, group.look_back)
        if job.keeps_state:
            require_protobuf()
        try:
            constants_of(group)
        except ConstantError as error:
            raise NotShareableError(
                f"the parameters of {group.names[error.position]} give no value: {error.error}"
            ) from error
        check_shown(template, group.parameters)
        return group

    def _answer(self, request: Mapping[str, Any]) -> object:
        """Do what another process asks for: see :mod:`eddyline.standing.requests`."""
        match request:
            case {"do": "add", "name": str(name), "sql": str(sql)}:
                keep = request.get("keep")
                self.add(sql, name=name, backfill=request.get("backfill"), keep=keep)
            case {"do": "replace", "name": str(name), "sql": str(sql)}:
                keep = request.get("keep")
                self.replace(name, sql, backfill=request.get("backfill"), keep=keep)
            case {"do": "drop" | "pause" | "resume" as what, "names": list(names)}:
                {"drop": self.drop, "pause": self.pause, "resume": self.resume}[what](*names)
            case {"do": "list"}:
                running, paused = self._registry.running(), self._registry.paused()
                return self._introspection.queries(running, paused).to_pylist()
            case _:
                raise ValueError(f"this job cannot do {request}")
        return None

    def _table_file(self, name: str) -> str:
        """Return the file with the rows of a table, which is written when it is first needed."""
        path = self._registry.state / "tables" / f"{quote(name, safe='')}.arrow"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            rows = self._tables[name].toArrow()
            hidden = path.with_suffix(".new")
            with pa.OSFile(str(hidden), "wb") as file, pa.ipc.new_file(file, rows.schema) as to:
                to.write_table(rows)
            hidden.rename(path)
        return str(path)

    def _table_frame(self, name: str) -> DataFrame:
        """Return the rows of a table as they were when they were first needed."""
        with pa.memory_map(self._table_file(name)) as file:
            rows = pa.ipc.open_file(file).read_all()
        return self._spark.createDataFrame(rows, self._tables[name].schema)

    def _put_out(
        self, results: DataFrame, batch: Batch, queries: Sequence[StandingQuery], version: int
    ) -> None:
        """Hand the results of a batch to the sink, and to callbacks."""
        also = [SAMPLE] if self._samples else []
        told = self._subscriptions.told((query.name for query in queries), version)
        columns = {
            query.name: [*also, *(column.name for column in query.template.outputs)]
            for query in (queries if told else ())
            if query.name in told
        }
        sink = self._sink
        recent = None if isinstance(sink, ParquetSink) else self._recent
        again = bool(told) or recent is not None
        if again:
            results = results.persist()
        try:
            if sink is not None:
                sink(results, batch)
            if told:
                tell(results, batch, told, columns)
            if recent is not None:
                by_name = {query.name: query for query in queries}
                recent.take(
                    results,
                    batch,
                    lambda name: [*also, *(c.name for c in by_name[name].template.outputs)],
                )
        finally:
            if again:
                results.unpersist()

    def _note(self, record: BatchRecord, queries: Sequence[StandingQuery]) -> None:
        self._introspection.note(record, queries)
        self._subscriptions.ran(record.job)

    def _note_part(self, record: BatchRecord, job: str) -> None:
        self._introspection.note_part(record, job)

    def _at_work(self) -> set[str]:
        """Return the jobs that are in the middle of a batch."""
        return {name for name, job in list(self._jobs.items()) if job.at_work}

    def _require(self, name: str) -> None:
        if not self._registry.has(name):
            raise UnknownQueryError(f"there is no query {name!r}")

    def _jobs_wanted(self) -> list[Job]:
        wanted = [*self._old.jobs, *(job_of(query.template) for query in self._registry.running())]
        return list(dict.fromkeys(wanted))

    def _start_jobs(self, jobs: Sequence[Job]) -> None:
        """Start those of the jobs that do not run yet."""
        with self._starting:
            if self._sink is None:
                return
            begins: RunningJob | None = None
            for job in jobs:
                if job.name in self._jobs:
                    continue
                if begins is not None and job.keeps_state:
                    begins.wait_until_begun()
                running = self._jobs[job.name] = self._started(job)
                begins = running if job.keeps_state else begins

    def _stream(self, name: str) -> DataFrame:
        """Return a stream, or what is exploded of one."""
        if name not in self._streams:
            every = [*self._registry.running(), *(query for query, _ in self._registry.paused())]
            templates = {id(query.template): query.template for query in every}.values()
            reading = (t for t in templates if any(one.name == name for one in t.exploded))
            template = next(reading, None)
            if template is None:
                raise StateError(f"no query reads {name} any more: it was dropped meanwhile")
            source = self._analysis.exploded(name, template)
            self._streams[name] = exploded(classic(self._streams[source.stream.stream]), source)
        return self._streams[name]

    def _streaming(self, job: Job, batches: JoiningBatches) -> DataFrame:
        """Return what a job's cells put out, with all that its queries may ask about.

        Also queries that are paused, and those of a batch that is perhaps to be run again.
        """
        known = [*self._registry.running(), *(query for query, _ in self._registry.paused())]
        known += self._registry.at(self._registry.batches(job.name).newest())
        templates = {id(query.template): query.template for query in known}.values()
        own = [template for template in templates if job_of(template) == job]
        return batches.streaming({name: self._stream(name) for name in job.streams}, own)

    def _started(self, job: Job) -> RunningJob:
        changes = self._registry.log.label
        batches: SelectingBatches | JoiningBatches
        plan: Callable[[], DataFrame]
        if job.keeps_state:
            tables = [self._table_file(name) for name in job.tables]
            cells = cell_labels(self._spark, self._cells)
            batches = JoiningBatches(
                self._analysis,
                job,
                self._analysis.schemas,
                changes,
                self._counts,
                tables,
                cells,
                remember=self._remember,
                samples=self._samples,
                limits=self._limits,
            )
            plan = partial(self._streaming, job, batches)
        else:
            (name,) = job.streams
            schema = self._analysis.schemas[name]
            batches = SelectingBatches(
                self._analysis,
                job,
                schema,
                changes,
                self._counts,
                remember=self._remember,
                samples=self._samples,
                limits=self._limits,
            )
            plan = partial(self._stream, name)
        running = RunningJob(
            self._spark,
            self._registry,
            batches,
            job,
            self._counts,
            Overload(self._on_overload, self._target),
            self._put_out,
            self._note,
            self._limits,
            self._old.seam(job, batches),
        )
        running.start(plan, self._cells, self._trigger)
        return running
