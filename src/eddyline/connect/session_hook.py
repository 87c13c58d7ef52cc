"""Adapts all that a session of Spark Connect runs, by the hook that a client asks beforehand."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.session import SparkSession

from eddyline.at_work import AtWork, NothingAtWork
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.connect.client_book import book_of
from eddyline.connect.messages import Relation, has_python
from eddyline.connect.verbs import (
    chosen,
    expected,
    require_all_placed,
    require_running,
    require_version,
    rewritten,
)
from eddyline.engine.policies.policy import Policy
from eddyline.errors import (
    ConnectNotSupportedError,
    FunctionForgottenError,
    FunctionPlaceError,
)
from eddyline.learning.learned_file import keep_learned
from eddyline.plugin_switch import PluginSwitch
from eddyline.reports.learned_report import LearnedReport

_log: Final = logging.getLogger("eddyline")


class AdaptingHook:
    """Rewrites the plan of every query of a client; fulfils PySpark's ``SparkSession.Hook``."""

    def __init__(self, client: SparkConnectClient, options: RoutingOptions) -> None:
        """Rewrite with these options."""
        self.client: Final = client
        self.options: Final = options

    def on_execute_plan(self, request: proto.ExecutePlanRequest) -> proto.ExecutePlanRequest:
        """Return a request with what pays in eddies; what goes wrong leaves it to Spark.

        Raises as ``adapt`` does for what only Eddyline can run.
        """
        try:
            # Clones of a session share their hooks with it.
            own = request.session_id == self.client._session_id
            relation = relation_in(request) if own and self._is_at_work() else None
            if relation is not None and has_python(relation):
                rewriting = rewritten(self.client, relation, self.options)
                require_all_placed(rewriting)
                if rewriting.changed:
                    relation.CopyFrom(rewriting.relation)
        except (FunctionPlaceError, ConnectNotSupportedError, FunctionForgottenError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, Spark can run the query
            told = str(error).partition("\n")[0]
            _log.warning("A query is left to Spark: %s: %.200s", type(error).__name__, told)
        return request

    def _is_at_work(self) -> bool:
        """Whether nothing else was begun since that has not ended."""
        return hooks_of(self.client)[-1:] == [self]


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


class EnabledClient(AtWork[AdaptingHook]):
    """A session of Spark Connect whose queries are adapted; as a context manager, until it ends."""

    def __init__(self, spark: SparkSession, hook: AdaptingHook) -> None:
        """Begin to adapt the queries of a session."""
        self.spark: Final = spark
        super().__init__(partial(change_hooks, spark.client), hook)


class DisabledClient(NothingAtWork[AdaptingHook]):
    """A session of Spark Connect that is left to Spark; as a context manager, until it ends."""

    def __init__(self, spark: SparkSession) -> None:
        """End what adapts the queries of a session."""
        super().__init__(partial(change_hooks, spark.client))
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
        super().__exit__(kind, error, trace)


def enable(
    spark: SparkSession | None = None,
    *,
    policy: str | Policy = "adaptive",
    seed: int = 0,
    joins: str = "auto",
    memory: int | str | None = None,
    worth: Mapping[str, float] | None = None,
    remember: bool = True,
    learned: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
) -> EnabledClient:
    """Adapt everything that a session of Spark Connect runs, as ``adapt`` does it.

    Queries and writes are adapted right before they are sent, with two to four requests to the
    server for each that calls Python functions in its plan; others are only inspected. What was
    cached is read from the cache. A query that cannot be adapted runs as it is, and the logger
    ``eddyline`` says why. ``learned`` names a file of the client's machine.

    Raises as ``adapt`` does, ``TypeError`` for a ``learned`` that is no path, ``RuntimeError``
    where there is no session, and ``ConnectNotSupportedError`` for ``keep``, which needs the
    driver.
    """
    if keep is not None:
        raise ConnectNotSupportedError(
            "Answers that are kept are the driver's, which a client of Spark Connect does not "
            "reach: leave out keep."
        )
    session = chosen_client_session(spark)
    client = session.client
    options = chosen(policy, seed, joins, memory, worth, remember=remember)
    require_version(client)
    if learned is not None:
        keep_learned(book_of(client).learned, Path(learned))
    hook = AdaptingHook(client, options(book_of(client).next_run()))
    return EnabledClient(session, hook)


def disable(spark: SparkSession | None = None) -> DisabledClient:
    """Leave the queries of a session of Spark Connect to Spark again.

    A plug-in of the server's leaves them alone, too. The result is a context manager, which limits
    this to a block. Raises ``RuntimeError`` where there is no session; one that was stopped needs
    no call.
    """
    stopped = isinstance(spark, SparkSession) and spark.is_stopped
    session = spark if spark is not None and stopped else chosen_client_session(spark)
    book_of(session.client).learned.save()
    return DisabledClient(session)


def learned(spark: SparkSession | None = None) -> LearnedReport:
    """Return what a client of Spark Connect knows of predicates and functions from its queries."""
    return book_of(chosen_client_session(spark).client).learned.report()


def chosen_client_session(spark: SparkSession | None) -> SparkSession:
    """Return a session, by default the active one.

    RuntimeError where there is none or it was stopped, TypeError for what is no session.
    """
    session = SparkSession.getActiveSession() if spark is None else spark
    if session is None:
        raise RuntimeError("There is no active Spark session; create one, or pass one.")
    if not isinstance(session, SparkSession):
        raise TypeError(expected(SparkSession, session))
    require_running(session)
    return session


_changing: Final = threading.Lock()


def change_hooks(
    client: SparkConnectClient,
    changed: Callable[[list[AdaptingHook]], list[AdaptingHook]],
) -> list[AdaptingHook]:
    """Let a client have other hooks of ours, the last of which is at work; return the former ones.

    They stand in the list that the client asks, and nowhere else: they end with it.
    """
    with _changing:
        before = hooks_of(client)
        ours = changed(before[:])
        hooks: list[Any] = client._session_hooks
        hooks[:] = [*(hook for hook in hooks if hook not in before), *ours]
        book_of(client).enabled = ours[-1].options if ours else None
        return before


def hooks_of(client: SparkConnectClient) -> list[AdaptingHook]:
    """Return what was begun for a client and has not ended.

    Its clones have the same list of hooks, and their own in it.
    """
    hooks: list[Any] = client._session_hooks
    return [hook for hook in hooks if isinstance(hook, AdaptingHook) and hook.client is client]
