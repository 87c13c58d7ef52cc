"""Analysis of queries by Spark, and of templates with parameters."""

from __future__ import annotations

import re
import threading
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import DataType, StructType

from eddyline import catalyst
from eddyline.blocks.column_types import spark_type
from eddyline.catalyst import Analyst, Plan
from eddyline.errors import NotShareableError, StateError
from eddyline.planner.claim.session_settings import session_settings
from eddyline.standing.derivation import DerivedColumns, DerivedSource
from eddyline.standing.derived_column import DerivedColumn
from eddyline.standing.exploded_streams import ExplodedSource, ExplodedStreams
from eddyline.standing.markers import PARAMETER, markers_in, require_columns, with_markers
from eddyline.standing.query_branches import read_query
from eddyline.standing.query_reading import ReadQuery
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.sequences import markers_within, with_joins
from eddyline.standing.written_parameters import ParameterInsideError

_SELECT: Final = re.compile(r"\s*SELECT\b", re.IGNORECASE)

_IN_ON: Final = "PYTHON_UDF_IN_ON_CLAUSE"
"""What Spark refuses, and advises to write a CROSS JOIN for, which stands no better."""

_OF_BOTH_SIDES: Final = (
    "the value of a :marker that is compared with both sides of an outer join has to be one that "
    "can be written into the query: {}"
)

_READ_OTHERWISE: Final = (
    "{} is read otherwise than it was as it was added: drop it and add it again"
)


class Analysis:
    """Understands queries over streams, in a copy of the session; any thread may ask it."""

    def __init__(
        self, spark: SparkSession, schemas: Mapping[str, StructType], tables: Collection[str] = ()
    ) -> None:
        """Take the session whose functions and settings count, and the columns of each stream.

        Those of ``tables`` are among them.
        """
        self.spark = spark
        self.table_frame: Callable[[str], DataFrame] | None = None
        """What gives the rows of a table."""
        self._table_plans: dict[str, Plan] = {}
        self._tables = frozenset(tables)
        self._schemas = dict(schemas)
        self._streams = {name: s for name, s in schemas.items() if name not in self._tables}
        self.settings = session_settings(spark)
        self._analysts: dict[tuple[tuple[str, str], ...], Analyst] = {}
        self._asking = threading.Lock()
        self._exploded = ExplodedStreams(self._schemas)
        self.schemas = ChainMap(self._exploded.schemas, self._schemas)
        """The columns of all streams, exploded ones too, and tables."""
        self._derived = DerivedColumns(self.schemas)

    @property
    def time_zone(self) -> str:
        """The session's time zone."""
        return self.settings.time_zone

    def read(
        self,
        sql: str,
        parameters: Mapping[str, DataType] | None = None,
        keep: int | None = None,
    ) -> tuple[ReadQuery, ...]:
        """Read the branches of a query; ``keep`` is a template's.

        Its ``parameters`` have these types.
        Raises PySpark's ``ParseException`` and ``AnalysisException``, and NotShareableError.
        """
        types = dict(parameters or {})
        require_columns(sql, types)
        if written := markers_within(sql):
            raise ParameterInsideError(
                f"the value of a :marker in WITHIN has to be a number: {sql}", written
            )
        joined = with_joins(sql, self._streams)
        # What begins so can be nothing but a query, and is parsed with its analysis: 1 ms saved.
        if not _SELECT.match(sql) and not catalyst.is_query(
            self.spark, with_markers(joined, lambda _: "NULL")
        ):
            raise NotShareableError(f"a standing query asks for rows: {sql}")
        called = with_markers(joined, lambda name: f"{PARAMETER}{name}()")
        key = tuple((name, kind.json()) for name, kind in types.items())
        with self._asking:
            known = self._analysts.get(key)
            if known is not None:
                try:
                    return self._read(known, sql, called, types, keep)
                except (AnalysisException, ParseException):
                    pass  # it may be about a function that came since
            fresh = self._analysts[key] = Analyst(
                self.spark,
                self._schemas,
                {f"{PARAMETER}{name}": kind for name, kind in types.items()},
            )
            try:
                return self._read(fresh, sql, called, types, keep)
            except AnalysisException as error:
                if _IN_ON not in str(error):
                    raise
                if written := frozenset(markers_in(sql)):
                    raise ParameterInsideError(_OF_BOTH_SIDES.format(sql), written) from error
                raise NotShareableError(
                    "cannot stand: a Python function of several streams in what must not be there, "
                    f"or must: call it with columns of one stream: {sql}"
                ) from error

    def rows_of_table(self, name: str) -> Plan:
        """Return the rows of a table as a plan, which are the same whenever they are asked for."""
        known = self._table_plans.get(name)
        if known is None:
            if self.table_frame is None:
                raise StateError(f"the rows of {name} are not at hand")
            frame = functions.broadcast(self.table_frame(name))
            known = self._table_plans[name] = catalyst.analyzed_plan(frame)
        return known

    def know(self, templates: Iterable[QueryTemplate], following: Mapping[str, int]) -> None:
        """Take the derived columns of a state directory: see :meth:`DerivedColumns.take`."""
        known = list(templates)
        with self._asking:
            for template in known:
                for stream in template.exploded:
                    self._exploded.take(stream)
            self._derived.take(known, following)

    def exploded(self, name: str, template: QueryTemplate) -> ExplodedSource:
        """Return how an exploded stream is made that a template reads.

        StateError where that cannot be found out any more.
        """
        with self._asking:
            known = self._exploded.source(name)
        if known is None:
            self.read_again(template)
            with self._asking:
                known = self._exploded.source(name)
        if known is None:
            raise StateError(_READ_OTHERWISE.format(template.sql))
        return known

    def source(self, column: DerivedColumn, template: QueryTemplate) -> DerivedSource:
        """Return how a derived column of a template is computed.

        StateError where that cannot be found out any more.
        """
        with self._asking:
            known = self._derived.sources.get(column)
        if known is not None:
            return known
        again = self.read_again(template).template.derived
        # The text by which it is known may have become another one with a new version of Spark.
        if [own.type for own in again] != [own.type for own in template.derived]:
            raise StateError(_READ_OTHERWISE.format(template.sql))
        with self._asking:
            by_key = {new.key: new for new in again}
            for own, new in zip(template.derived, again, strict=True):
                source = self._derived.sources[by_key.get(own.key, new)]
                self._derived.sources.setdefault(own, source)
            return self._derived.sources[column]

    def read_again(self, template: QueryTemplate) -> ReadQuery:
        """Read the query of a template that was read before, be it in another session."""
        parameters = {name: spark_type(kind) for name, kind in template.parameters}
        branches = self.read(template.written or template.sql, parameters, template.keep)
        if len(branches) <= template.branch:
            raise StateError(_READ_OTHERWISE.format(template.sql))
        return branches[template.branch]

    def _read(
        self,
        analyst: Analyst,
        sql: str,
        called: str,
        types: Mapping[str, DataType],
        keep: int | None,
    ) -> tuple[ReadQuery, ...]:
        return read_query(
            analyst,
            called,
            self._schemas,
            self._tables,
            types,
            self.settings,
            self._derived,
            self._exploded,
            shown=sql,
            keep=keep,
        )
