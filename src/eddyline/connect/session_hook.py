"""Adapts all that a session of Spark Connect runs, by the hook that a client asks beforehand."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.session import SparkSession

from eddyline.blocks.routing_options import RoutingOptions
from eddyline.connect.client_book import book_of
from eddyline.connect.messages import Relation, has_python
from eddyline.connect.verbs import chosen, require_version, rewritten
from eddyline.engine.policies.policy import Policy
from eddyline.errors import ConnectNotSupportedError
from eddyline.plugin_switch import PluginSwitch

_log: Final = logging.getLogger("eddyline")


class AdaptingHook:
    """Rewrites the plan of every query of a client; fulfils PySpark's ``SparkSession.Hook``."""

    def __init__(self, client: SparkConnectClient, options: RoutingOptions) -> None:
        """Rewrite with these options."""
        self._client = client
        self.options: Final = options

    def on_execute_plan(self, request: proto.ExecutePlanRequest) -> proto.ExecutePlanRequest:
        """Return a request with what pays in eddies; what goes wrong leaves it to Spark."""
        try:
            # Clones of a session share their hooks with it.
            own = request.session_id == self._client._session_id
            relation = relation_in(request) if own else None
            if relation is not None and has_python(relation):
                rewriting = rewritten(self._client, relation, self.options)
                if rewriting.changed:
                    relation.CopyFrom(rewriting.relation)
        except Exception as error:  # noqa: BLE001 - whatever it is, Spark can run the query
            told = str(error).partition("\n")[0]
            _log.warning("A query is left to Spark: %s: %.200s", type(error).__name__, told)
        return request


def relation_in(request: proto.ExecutePlanRequest) -> Relation | None:
    """Return the relation that a request runs, to be changed in place; None where it has none.

    Views are left as they are: a query over one would keep what was enabled when it was made.
    """
    plan = request.plan
    if plan.HasField("root"):
        return plan.root
    if plan.HasField("command"):
        kind = plan.command.WhichOneof("command_type")
        if kind in {"write_operation", "write_operation_v2"}:
            written: Any = getattr(plan.command, kind)
            relation: Relation = written.input
            return relation
    return None


class EnabledClient(contextlib.AbstractContextManager["EnabledClient"]):
    """A session of Spark Connect whose queries are adapted; as a context manager, until it ends."""

    def __init__(self, spark: SparkSession, hook: AdaptingHook) -> None:
        """Take a session and what adapts its queries."""
        self.spark: Final = spark
        self._hook: Final = hook
        self._begin()

    def _begin(self) -> None:
        hooks = hooks_of(self.spark.client)
        self._before = [hook for hook in hooks if isinstance(hook, AdaptingHook)]
        _put(self.spark.client, [self._hook])

    def __enter__(self) -> Self:
        """Return this; where it has ended it begins again."""
        if self._hook not in hooks_of(self.spark.client):
            self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put back what was enabled before."""
        if self._hook in hooks_of(self.spark.client):
            _put(self.spark.client, self._before)

    def __repr__(self) -> str:
        return "Eddyline adapts what this session runs; eddyline.disable() ends it."


class DisabledClient(contextlib.AbstractContextManager["DisabledClient"]):
    """A session of Spark Connect that is left to Spark; as a context manager, until it ends."""

    def __init__(self, spark: SparkSession) -> None:
        """Take a session, and end what adapts its queries."""
        self._spark: Final = spark
        hooks = hooks_of(spark.client)
        self._before = [hook for hook in hooks if isinstance(hook, AdaptingHook)]
        _put(spark.client, [])
        self._plugin: Final = PluginSwitch(spark)
        with contextlib.suppress(PySparkException):  # some servers let nobody ask for settings
            self._plugin.turn_off()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Have at work what was so before, unless something else has begun since."""
        with contextlib.suppress(PySparkException):
            self._plugin.turn_back()
        hooks = hooks_of(self._spark.client)
        if self._before and not any(isinstance(hook, AdaptingHook) for hook in hooks):
            _put(self._spark.client, self._before)

    def __repr__(self) -> str:
        return "What this session runs is left to Spark; eddyline.enable() changes that."


def enable(
    spark: SparkSession | None = None,
    *,
    policy: str | Policy = "adaptive",
    seed: int = 0,
    joins: str = "auto",  # noqa: ARG001 - joins are left to Spark
    memory: int | str | None = None,  # noqa: ARG001 - which joins use
    worth: Mapping[str, float] | None = None,
    remember: bool = True,
    learned: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
) -> EnabledClient:
    """Adapt everything that a session of Spark Connect runs, as ``adapt`` does it.

    Queries and writes are adapted right before they are sent, with two to four requests to the
    server for each that calls Python functions in its plan; others are only inspected. What was
    cached is read from the cache. A query that cannot be adapted runs as it is, and the logger
    ``eddyline`` says why.

    Raises as ``adapt`` does, ``RuntimeError`` where there is no session, and
    ``ConnectNotSupportedError`` for ``learned`` and ``keep``, which need the driver.
    """
    if learned is not None or keep is not None:
        raise ConnectNotSupportedError(
            "What is learned, and answers that are kept, are the driver's, which a client of Spark "
            "Connect does not reach: leave out learned and keep."
        )
    session = chosen_client_session(spark)
    client = session.client
    options = chosen(policy, seed, worth, remember=remember)
    require_version(client)
    hook = AdaptingHook(client, options(book_of(client).next_run()))
    return EnabledClient(session, hook)


def disable(spark: SparkSession | None = None) -> DisabledClient:
    """Leave the queries of a session of Spark Connect to Spark again.

    A plug-in of the server's leaves them alone, too. The result is a context manager, which limits
    this to a block. Raises ``RuntimeError`` where there is no session.
    """
    return DisabledClient(chosen_client_session(spark))


def chosen_client_session(spark: SparkSession | None) -> SparkSession:
    """Return a session, by default the active one; RuntimeError where there is none."""
    session = SparkSession.getActiveSession() if spark is None else spark
    if session is None:
        raise RuntimeError("There is no active Spark session; create one, or pass one.")
    return session


def hooks_of(client: SparkConnectClient) -> list[Any]:
    """Return the hooks of a client, in the list that it asks."""
    hooks: list[Any] = client._session_hooks
    return hooks


def _put(client: SparkConnectClient, ours: list[AdaptingHook]) -> None:
    """Have these hooks of ours at work, and no others of ours; the last one counts."""
    hooks = hooks_of(client)
    hooks[:] = [hook for hook in hooks if not isinstance(hook, AdaptingHook)] + ours[-1:]
    book_of(client).enabled = ours[-1].options if ours else None
