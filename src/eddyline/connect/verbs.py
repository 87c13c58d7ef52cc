"""What users call, for DataFrames and sessions of Spark Connect.

They are the verbs of :mod:`eddyline.planner`, with the same arguments; what each does is said
there, and how far it goes here in ``docs/connect.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from eddyline.blocks.chosen_policy import chosen_policy
from eddyline.blocks.decline import LeftToSpark
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.checked_values import (
    checked_seed,
    joins_named,
    memory_size,
    switch,
    worth_of_money,
)
from eddyline.connect.client_book import ClientBook, SentBlock, book_of
from eddyline.connect.messages import is_ours, python_functions
from eddyline.connect.package_archive import send_once
from eddyline.connect.plan_rewriting import WHOLE, PlanRewriter
from eddyline.connect.plan_walk import Makers, PlanRewriting
from eddyline.connect.sent_functions import needs_driver
from eddyline.connect.server_answers import Server
from eddyline.declaring.called_together import mark_of
from eddyline.engine.policies.policy import Policy
from eddyline.errors import ConnectNotSupportedError, FunctionPlaceError
from eddyline.explanation import Explanation, block_report, explained
from eddyline.quirks.pyspark_at_hand import MINOR
from eddyline.reports.routing_report import RoutingReport

OLDEST: Final = (4, 1)
"""The oldest Spark, at the client and the server, with functions over Arrow's columns."""


Options: TypeAlias = Callable[[int], RoutingOptions]
"""Makes options of the number of a rewriting."""


class AdaptedPlan(LogicalPlan):
    """A plan that has been rewritten: what is sent is ``relation``; columns are those of before."""

    def __init__(
        self, given: LogicalPlan, relation: Relation, left: tuple[LeftToSpark, ...]
    ) -> None:
        super().__init__(given)  # which has what the user observes
        self._root_plan_id = relation.common.plan_id
        self.left: Final = left
        self._relation = relation

    def plan(self, session: SparkConnectClient) -> Relation:  # noqa: ARG002 - the base's
        """Return what is sent."""
        return self._relation


def adapt(
    df: DataFrame,
    *,
    policy: str | Policy = "adaptive",
    pin_order: bool = False,
    seed: int = 0,
    joins: str = "auto",
    memory: int | str | None = None,
    worth: Mapping[str, float] | None = None,
    remember: bool = True,
) -> DataFrame:
    """Return a DataFrame with the same rows whose Python predicates run in eddies.

    Nothing runs yet. Filters over Python functions become blocks: in a block each function is
    called only for rows that the predicates before it have kept, and their order is decided, and
    revised, while the query runs. Joins, text of SQL and views are left to Spark, and ``joins`` and
    ``memory`` make no difference. ``df`` itself is returned where no block pays.

    Raises ``TypeError``, ``ValueError`` and ``UnknownPolicyError`` for other arguments than the
    classic verb takes, ``ConnectNotSupportedError`` for a Spark older than 4.1 and for cascades,
    and ``FunctionPlaceError`` for a concurrent function whose calls cannot be made where it stands.
    """
    options = chosen(policy, seed, joins, memory, worth, remember=remember)
    if switch(pin_order, "pin_order"):
        return df
    client = client_of(df)
    require_running(df._session)
    book = book_of(client)
    rewriting = rewritten(client, relation_of(df), options(book.next_run()))
    require_all_placed(rewriting)
    if not rewriting.changed:
        return df
    plan = AdaptedPlan(df._plan, rewriting.relation, tuple(rewriting.left))
    return DataFrame(plan, df._session)


def explain(df: DataFrame, *, stage: str | None = None, price: bool | int = False) -> Explanation:
    """Return what of a DataFrame runs in eddies, what does not, and why.

    It works on adapted DataFrames, on those derived from them, and on any other, for which it says
    what :func:`adapt` would do. Stages and prices are those of classic DataFrames only:
    ``ConnectNotSupportedError``.
    """
    if stage is not None or price is not False:
        raise ConnectNotSupportedError(
            "A DataFrame of Spark Connect has neither stages nor a price: the client sees no "
            "optimized plan. eddyline.explain(df) says what runs in eddies."
        )
    client = client_of(df)
    require_running(df._session)
    relation = relation_of(df)
    running = tuple(sent.block for sent in book_of(client).blocks_in(relation))
    left = left_in(df)
    claimable: tuple[FilterBlock, ...] = ()
    if left is None:
        rewriting = rewritten(client, relation, RoutingOptions(), send=False)
        there = {block.identity for block in running}
        claimable = tuple(block for block in rewriting.blocks if block.identity not in there)
        left = (*rewriting.left, *rewriter(client, RoutingOptions()).hidden(relation))
    return Explanation(tuple(map(explained, running)), tuple(map(explained, claimable)), left)


def report(df: DataFrame, *, all: bool = False) -> RoutingReport:  # noqa: A002 - as people say it
    """Return how the eddies of a DataFrame routed its rows in its last action, or in ``all``.

    The server brings what tasks report along with the end of the action.
    """
    every = switch(all, "all")
    client = client_of(df)
    book = book_of(client)
    blocks = sent_blocks(df, book)
    left = tuple((one.text, one.why) for one in left_in(df) or ())
    told = (
        block_report(sent.block, sent.options, book.record(sent, every_action=every))
        for sent in blocks
    )
    return RoutingReport(tuple(told), left)


def sent_blocks(df: DataFrame, book: ClientBook) -> tuple[SentBlock, ...]:
    """Return the blocks that a DataFrame has sent, or that its queries have under ``enable``."""
    own = tuple(book.blocks_in(relation_of(df)))
    if own or book.enabled is None:
        return own
    rewriting = rewritten(client_of(df), relation_of(df), book.enabled)
    return tuple(book.blocks_in(rewriting.relation))


# ---------------------------------------------------------------- what all of them need


def chosen(
    policy: str | Policy,
    seed: int,
    joins: str,
    memory: int | str | None,
    worth: Mapping[str, float] | None,
    *,
    remember: bool,
) -> Options:
    """Return what makes options of the number of a rewriting; raises as :func:`adapt` does.

    ``joins``, and the ``memory`` that they use, are left to Spark, and are checked.
    """
    checked_seed(seed)
    joins_named(joins)
    if memory is not None:
        memory_size(memory)
    routed, rates = chosen_policy(policy), worth_of_money(worth)
    switch(remember, "remember")
    return lambda run: RoutingOptions(routed, seed, run, worth=rates, remember=remember)


def rewriter(client: SparkConnectClient, options: RoutingOptions) -> PlanRewriter:
    """Return what rewrites plans of a client."""
    book = book_of(client)
    remember = (lambda block: book.remembering(block, options)) if options.remember else None
    makers = Makers(
        lambda block: book.filtering(block, options),
        lambda block: book.asking(block, options),
        remember,
    )
    return PlanRewriter(Server(client), makers)


def rewritten(
    client: SparkConnectClient, relation: Relation, options: RoutingOptions, *, send: bool = True
) -> PlanRewriting:
    """Return a relation rewritten, and ``send`` the workers what they need for that."""
    rewriting = rewriter(client, options).rewritten(relation)
    if rewriting.changed and send:
        send_once(client)
    return rewriting


def client_of(df: DataFrame) -> SparkConnectClient:
    """Return the client of a DataFrame; ConnectNotSupportedError where a Spark is too old.

    TypeError for what is no DataFrame.
    """
    if not isinstance(df, DataFrame):
        raise TypeError(expected(DataFrame, df))
    client: SparkConnectClient = df._session.client
    require_version(client)
    return client


def require_running(spark: SparkSession) -> None:
    """Raise RuntimeError for a session that was stopped."""
    if spark.is_stopped:
        raise RuntimeError("This Spark session has been stopped; create a new one.")


def expected(wanted: type, given: object) -> str:
    """Return what is to be said where something of another type is given."""
    kind = type(given)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"A {wanted.__name__} of Spark Connect is expected, not {name}."


def require_version(client: SparkConnectClient) -> None:
    """Raise ConnectNotSupportedError for a Spark that is too old, here or at the server."""
    theirs = book_of(client).version(lambda: Server(client).version)
    oldest = ".".join(map(str, OLDEST))
    for version, whose in ((MINOR, "This PySpark"), (theirs, "The server's Spark")):
        if version < OLDEST:
            raise ConnectNotSupportedError(
                f"{whose} is {'.'.join(map(str, version))}: Eddyline adapts DataFrames of Spark "
                f"Connect from {oldest} on, at the client and at the server."
            )


def require_all_placed(rewriting: PlanRewriting) -> None:
    """Raise where a rewritten relation calls what Spark cannot call.

    FunctionPlaceError for a concurrent function, ConnectNotSupportedError for a cascade.
    """
    for function in python_functions(rewriting.relation):
        command = function.python_udf.command
        if is_ours(function) or not needs_driver(command):
            continue
        name = function.function_name
        if mark_of(command) is None:
            raise ConnectNotSupportedError(
                f"{name} is a cascade, which is proven where the driver is. No task reaches a "
                "client of Spark Connect: use a classic session, or the oracle by itself."
            )
        told = [str(left) for left in rewriting.left if left.text == WHOLE or name in left.text]
        why = f" ({'; '.join(told)})" if told else ""
        raise FunctionPlaceError(
            f"{name} is a concurrent function, and stands where its calls cannot be made{why}. "
            f"Compute it in a select list first, as in "
            f'df.withColumn("value", {name}(...)), and use that column.'
        )


def relation_of(df: DataFrame) -> Relation:
    """Return what a DataFrame sends."""
    return df._plan.plan(df._session.client)


def left_in(df: DataFrame) -> tuple[LeftToSpark, ...] | None:
    """Return what was left to Spark when this very DataFrame was adapted; None where it was not."""
    plan = df._plan
    return plan.left if isinstance(plan, AdaptedPlan) else None
