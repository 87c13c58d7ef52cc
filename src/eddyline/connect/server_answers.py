"""What a client asks the server about a plan before it rewrites it: nothing runs for that.

An expression's type, and whether it is deterministic, are told by the analysis of an aggregate over
it: Spark gives its type, and refuses what is not deterministic under an aggregate function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql.connect import proto
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.types import StructField
from pyspark.storagelevel import StorageLevel

from eddyline.blocks.decline import DeclinedError, DeclineReason, not_understood
from eddyline.blocks.filter_block import JavaRuntime, SessionSettings
from eddyline.connect.messages import Expression, Relation, aliased, called, without_place
from eddyline.quirks.minor_versions import minor_version
from eddyline.tasks.action_settings import KEYS, settings_from

_PROFILER: Final = "spark.sql.pyspark.udf.profiler"
_ANSI: Final = "spark.sql.ansi.enabled"
_ANALYZED: Final = "== Analyzed Logical Plan =="
_OPTIMIZED: Final = "== Optimized Logical Plan =="

_PARTING: Final = re.compile(
    r"^[\s:+|-]*(?:Aggregate|AsOfJoin|Expand|Generate|Join|LateralJoin|Window)\b", re.MULTILINE
)
_CACHED: Final = "InMemoryRelation"
_STREAM: Final = re.compile(r"\bStreaming(?:DataSource|Execution|Relation)")


@dataclass(frozen=True, slots=True)
class ExplainedPlan:
    """What Spark's own words about a plan tell.

    It has ``parting`` nodes where a filter above them may go below, or not, by what it looks at;
    ``caches`` that it reads; ``streams``; ``python`` functions, wherever they stand.
    """

    parting: bool
    caches: bool
    streams: bool
    python: bool


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a session has set.

    ``of_functions`` is what they are called under; with ``ansi`` arithmetic raises where it has no
    result.
    """

    of_functions: SessionSettings
    ansi: bool


class Server:
    """The server of one client, asked about plans."""

    def __init__(self, client: SparkConnectClient) -> None:
        """Ask as the session of a client."""
        self._client = client

    @property
    def version(self) -> tuple[int, int]:
        """The minor version of its Spark; one request."""
        told: Any = self._client._analyze(method="spark_version")
        return minor_version(str(told.spark_version))

    def settings(self) -> ServerSettings:
        """Return what the session has set, or else the server's defaults; one request.

        What a client cannot know is the JVM of the server: only the text of some objects depends
        on that which plain functions return in place of the declared strings.
        """
        keys = (*KEYS, _PROFILER, _ANSI)
        # As what they are or else the server's defaults, and without those that it does not know.
        asked = proto.ConfigRequest.Operation(get_option=proto.ConfigRequest.GetOption(keys=keys))
        told = self._client.config(asked).pairs
        known = {key: value for key, value in told if value is not None}
        given = {key: value for key, value in known.items() if key in KEYS}
        settings = settings_from(given.get, given, JavaRuntime())
        return ServerSettings(
            replace(settings, profiled=bool(known.get(_PROFILER))),
            ansi=known.get(_ANSI) == "true",
        )

    def types(
        self, below: Relation, expressions: Mapping[bytes, Expression], others: Sequence[Expression]
    ) -> dict[bytes, str]:
        """Return the types of expressions over a relation, as JSON; one request.

        DeclinedError where one of them, or of the ``others``, is not deterministic, or has a
        meaning in its place only.
        """
        asked = [called("first", without_place(one)) for one in expressions.values()]
        asked.extend(called("count", without_place(one)) for one in others)
        items = [aliased(one, f"c{n}") for n, one in enumerate(asked)]
        if not items:
            return {}
        plan = proto.Plan()
        plan.root.common.plan_id = LogicalPlan._fresh_plan_id()
        aggregate = plan.root.aggregate
        aggregate.input.CopyFrom(below)
        aggregate.group_type = proto.Aggregate.GroupType.GROUP_TYPE_GROUPBY
        aggregate.aggregate_expressions.extend(items)
        try:
            fields = self._client.schema(plan).fields
        except Exception as error:  # noqa: BLE001 - gRPC's, or the analyser's: it is left to Spark
            raise _as_told(error) from None
        return {key: field.dataType.json() for key, field in zip(expressions, fields, strict=False)}

    def fields(self, relation: Relation) -> list[StructField]:
        """Return the columns of a relation; one request. DeclinedError where there are none."""
        plan = proto.Plan()
        plan.root.CopyFrom(relation)
        try:
            return list(self._client.schema(plan).fields)
        except Exception as error:  # noqa: BLE001 - gRPC's, or the analyser's: it is left to Spark
            raise _as_told(error) from None

    def explained(self, relation: Relation) -> ExplainedPlan:
        """Return what Spark's words about a relation tell; one request, which optimizes it."""
        plan = proto.Plan()
        plan.root.CopyFrom(relation)
        text = self._client.explain_string(plan, "extended")
        analyzed = text.partition(_ANALYZED)[2].partition(_OPTIMIZED)[0]
        planned = text.partition(_OPTIMIZED)[2]
        return ExplainedPlan(
            parting=_PARTING.search(analyzed) is not None,
            caches=_CACHED in planned,
            streams=_STREAM.search(analyzed) is not None,
            python="EvalPython" in planned,
        )

    def is_cached(self, relation: Relation) -> bool:
        """Whether somebody has asked Spark to cache just this relation; one request."""
        told: Any = self._client._analyze(method="get_storage_level", relation=relation)
        return bool(told.storage_level != StorageLevel.NONE)


def _as_told(error: Exception) -> DeclinedError:
    """Return what an answer that is none declines."""
    told = str(error).partition("\n")[0]
    if "NONDETERMINISTIC" in told.replace("_", ""):
        return DeclinedError(DeclineReason.NON_DETERMINISTIC, "as the server says")
    return not_understood(f"the server says: {told:.120}")
