"""The public face: give a DataFrame, get one with the same rows that adapts while it runs.

Over 450 lines: all verbs here make one rewriting, and much of it is what users read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, overload
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from eddyline import catalyst
from eddyline.blocks.chosen_policy import DEFAULT_POLICY, WRITTEN_ORDER, ChosenPolicy, chosen_policy
from eddyline.blocks.decline import LOST, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.join_block import Block, JoinBlock
from eddyline.blocks.lookup_table import LookupTable
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.cascades.calibration import Calibration
from eddyline.checked_values import Joins, checked_seed, joins_named, whole_number, worth_of_money
from eddyline.engine.policies.policy import Policy
from eddyline.explanation import Explanation, explained
from eddyline.host.classic import classic as classic_frame
from eddyline.planner.block_registry import Fused, Maker, Registry, registry_of
from eddyline.planner.calibrating import CascadesInQuery
from eddyline.planner.claim.session_settings import session_settings, task_memory
from eddyline.planner.declare.concurrent_functions import (
    any_declared,
    require_all_placed,
    served,
)
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.declare.measured_scans import learn_scans
from eddyline.planner.operating import operating_of
from eddyline.planner.passes import Making, Rewriting, rewritten_plan
from eddyline.planner.read.chains import fused_commands
from eddyline.planner.read.concurrent_marks import marks_in
from eddyline.planner.read.lookup_leaves import lookup_command
from eddyline.planner.rewrite.block_walk import JoinRules, TableOf
from eddyline.planner.rewrite.filter_rewrite import FusedFunction
from eddyline.planner.rewrite.join_rewrite import JoinBlockContext
from eddyline.planner.rewrite.looked_up_or_scanned import AccessRules
from eddyline.planner.self_check import check_once, left_to_spark
from eddyline.planner.session_rules import tell_limits
from eddyline.planner.stages import StageText, stage_named, told
from eddyline.planner.tiny_queries import AdaptedPart
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.reports.forecast import Forecast

CALLS: Final = 200
"""Calls of each paid function that a forecast may make, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Adapting:
    """What ``adapt`` made of a plan, which was ``given``.

    ``dropped`` are filters that Spark loses and this keeps, ``cascades`` those whose thresholds
    were set.
    """

    rewriting: Rewriting
    dropped: tuple[str, ...]
    fused: tuple[Fused, ...] = ()
    cascades: tuple[Calibration, ...] = ()
    given: catalyst.Plan | None = None


# With the DataFrames that adapt returned: their own plans tell less well what was left, since
# results of claimed functions have lost their names there.
_adaptings: WeakKeyDictionary[DataFrame, Adapting] = WeakKeyDictionary()

_log: Final = logging.getLogger("eddyline")


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

    Nothing runs yet, except where a query calls a :func:`~eddyline.cascade`: its thresholds are set
    by queries over some of the rows, which ask its oracle. Filters over Python functions become
    blocks, together with the inner joins among them. In a block each function is called only for
    rows that the predicates and joins before it have kept, and their order is decided, and revised,
    while the query runs. Everything else stays as Spark planned it. Columns keep their names and
    identities, so ``df.column`` works on the result. ``df`` itself is returned where no block pays;
    :func:`explain` gives the reasons.

    The plan is optimized by this call, so file listings, table versions and ``current_timestamp()``
    are those of this moment.

    - ``policy``: the name of the routing policy, or an object: one of ``eddyline.policies``, with
      parameters, or a :class:`~eddyline.Policy` of your own. Each eddy has a copy of it; where one
      fails, the written order goes on in that task, and the report says so.
    - ``pin_order``: with True the predicates keep their written order, and ``df`` itself is
      returned unless it calls concurrent functions.
    - ``seed``: feeds the policy's random choices, none of which changes the rows.
    - ``joins``: "auto" claims inner joins that are worth what they move, "always" claims all of
      them, "never" none.
    - ``memory``: how much one task of a join may use before it spills to disk, in bytes or as
      ``"200MB"``, at least 1KB. By default it is Spark's ``spark.executor.pyspark.memory`` divided
      by the tasks that run at once, or 512 MB where that is not set (Raman, Deshpande and
      Hellerstein, 2003).
    - ``worth``: how many seconds a unit of money is worth, as in ``{"USD": 600}``. Routing avoids
      calls of :func:`~eddyline.concurrent` functions that cost money accordingly; by default only
      time counts.
    - ``remember``: call a deterministic function once for each distinct tuple of arguments in a
      worker process, where that pays, also where it stands alone in a filter or select list
      (Hellerstein and Naughton, 1996). :func:`~eddyline.forgetful` exempts a function.

    It raises:

    - ``TypeError``: ``df`` is not a DataFrame, or an argument has the wrong type, as a policy that
      lacks a method or cannot be pickled.
    - ``ConnectNotSupportedError``: ``df`` belongs to Spark Connect, older than 4.1.
    - ``UnknownPolicyError``: there is no policy of that name.
    - ``ValueError``: ``seed`` is negative, or ``joins``, ``memory`` or ``worth`` has another value
      than those above.
    - ``FunctionPlaceError``: a concurrent function stands where its calls cannot be made, as in a
      stream.
    - ``UnboundLookupError``: nothing in the query gives values for a lookup table's bind columns,
      or the table stands where no values reach it.

    While the query runs, a join block raises ``SpillError`` where its rows do not fit into
    ``memory`` and cannot be written to disk.
    """
    classic = classic_frame(df)
    catalyst.get_ready()
    chosen = chosen_options(policy, seed, joins, worth, remember)
    check_once(classic.sparkSession, lambda query, claimed: adapt(query, joins=claimed))
    if not isinstance(pin_order, bool):
        raise TypeError(f"pin_order is True or False, not {pin_order!r}.")
    if pin_order and not calls_concurrent_functions(classic):
        return df
    if pin_order:  # somebody must make the calls
        chosen = replace(chosen, policy=WRITTEN_ORDER)
    plan = catalyst.optimized_plan(classic, as_written=True)
    dropped = catalyst.dropped_filters(plan)
    if dropped:
        _log.warning("%s %s", LOST, ", ".join(dropped))
    registry = registry_of(classic.sparkSession.sparkContext)
    run = registry.next_run()
    cascades = CascadesInQuery(classic.sparkSession, adapt)
    rewriting = rewritten(
        classic.sparkSession,
        plan,
        chosen,
        task_memory(classic.sparkSession, memory),
        run,
        streaming=classic.isStreaming,
        fixes_the_clock=classic.isStreaming and catalyst.reads_the_clock(classic),
        cascades=cascades,
    )
    if not rewriting.changed and not dropped:
        return df
    if any_declared() or table_of_session(classic.sparkSession) is not None:
        tell_limits(classic.sparkSession)
    operating_of(classic.sparkSession.sparkContext).begin()
    adapted = catalyst.dataframe_like(classic, rewriting.plan)
    registry.note_adapted(run, adapted, tuple((left.text, left.why) for left in rewriting.left))
    found = tuple(cascades.calibrations)
    _adaptings[adapted] = Adapting(rewriting, dropped, registry.of_run(run), found, plan)
    return adapted


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a user has chosen for :func:`adapt`, checked."""

    policy: ChosenPolicy
    seed: int
    joins: Joins
    worth: tuple[tuple[str, float], ...]
    remember: bool


_DEFAULTS: Final = Chosen(DEFAULT_POLICY, 0, Joins.AUTO, (), remember=True)
"""What ``adapt`` chooses by itself."""


def chosen_options(
    policy: str | Policy,
    seed: int,
    joins: str,
    worth: Mapping[str, float] | None,
    remember: bool,  # noqa: FBT001 - as it is given
) -> Chosen:
    """Check what a user has chosen; raise as :func:`adapt` does."""
    checked_seed(seed)
    if not isinstance(remember, bool):
        raise TypeError(f"remember is True or False, not {remember!r}.")
    return Chosen(chosen_policy(policy), seed, joins_named(joins), worth_of_money(worth), remember)


def rewritten(
    spark: SparkSession,
    plan: catalyst.Plan,
    chosen: Chosen,
    memory: int,
    run: int,
    *,
    streaming: bool = False,
    fixes_the_clock: bool = False,
    final: bool = False,
    cascades: CascadesInQuery | None = None,
) -> Rewriting:
    """Rewrite an optimized plan such that what pays runs in eddies.

    The number of the ``run`` tells the reports of its tasks from those of others. The plan is
    ``final`` where it is about to run, and nothing can be added to it. Without what has thresholds
    set, the oracles of ``cascades`` decide about every row.
    """
    registry = registry_of(spark.sparkContext)
    telling = registry.learned.for_one_rewriting(registry.asked_at)
    options = RoutingOptions(chosen.policy, chosen.seed, run, memory, chosen.worth, chosen.remember)
    tables = lookup_tables_of(spark.sparkContext)
    asking: list[bool] = []  # whether somebody is to be asked, for each block

    def noted(block: Block) -> None:
        asking.append(block.server is not None)

    def register(block: JoinBlock, command: bytes, make: Maker) -> None:
        noted(block)
        registry.remember(command, block, options, make)

    def fuse(block: FilterBlock) -> FusedFunction:
        told = telling(served(block, tables))
        noted(told)
        return registry.fuse(told, options)

    def scan_seconds(name: str) -> float | None:
        learn_scans(spark, tables, registry.learned)
        return registry.learned.scan_seconds(name)

    context = JoinBlockContext(
        spark,
        options,
        registry.records,
        register,
        lambda: tables.address,
        telling,
    )
    table_of = table_of_session(spark)
    wrong = left_to_spark(spark)
    making = Making(
        session_settings(spark),
        fuse,
        # Joins of streams keep state, which is Spark's.
        None
        if streaming or (AdaptedPart.JOINS in wrong and table_of is None)
        else JoinRules(context, chosen.joins, table_of, final),
        None if AdaptedPart.VALUES in wrong else lambda block: registry.remembered(block, options),
        chosen.remember,
        table_of,
        streaming,
        fixes_the_clock,
        untested=AdaptedPart.FILTERS in wrong,
        decided=(CascadesInQuery(spark, None) if cascades is None else cascades).decided,
        accesses=AccessRules(
            spark,
            run,
            session_settings(spark).time_zone,
            lambda: tables.address,
            tables.choose,
            scan_seconds,
            dict(chosen.worth),
        ),
    )
    rewriting = rewritten_plan(plan, making)
    if wrong:
        left = (LeftToSpark(str(kind), DeclineReason.UNTESTED, how) for kind, how in wrong.items())
        rewriting = replace(rewriting, left=(*rewriting.left, *left))
    if any_declared():
        require_all_placed(rewriting.plan, rewriting.left)
    # What becomes of a plan for which somebody is asked depends on what was registered.
    return replace(rewriting, lasts=rewriting.lasts and not any(asking))


@overload
def explain(df: DataFrame, *, price: bool | int = False) -> Explanation: ...


@overload
def explain(df: DataFrame, *, stage: str) -> StageText: ...


@overload
def explain(df: DataFrame, *, stage: str | None) -> Explanation | StageText: ...


def explain(
    df: DataFrame, *, stage: str | None = None, price: bool | int = False
) -> Explanation | StageText:
    """Return what of a DataFrame runs in eddies, what does not, and why.

    The result shows itself at a prompt and in a notebook; a script prints it. It works on adapted
    DataFrames, on those derived from them, and on any other, for which it says what :func:`adapt`
    would do.

    With a ``stage`` the result is the text of the DataFrame after one stage on its way: "read",
    its regions of joins and chains of functions; "claim", the parts of these that are claimed, and
    the reasons for the rest; "block", the data that travel to the tasks; "plan", the plan that
    Spark runs. Nothing is rewritten again for that.

    With a ``price`` it also says what the query will ask at the driver, before it does: for each
    :func:`~eddyline.concurrent` function the calls, the money and the time, likely values with
    intervals of 95 %, as text and as ``forecast``. Arguments that were answered before and are kept
    count as known. For that, Spark counts rows and distinct arguments, and runs the predicates that
    are free on a sample of the arguments. Paid functions are called where others depend on their
    answers, and for the seconds that a call takes: up to 200 times each, or as often as ``price``
    says, within their ``budget``. These answers are kept where the function keeps answers;
    elsewhere the query pays for them again.

    Raises as :func:`adapt` does, and ``ValueError`` for an unknown stage, for a ``price`` below 0,
    and for both together.
    """
    classic = classic_frame(df)
    chosen = None if stage is None else stage_named(stage)
    calls = calls_for_price(price)
    if chosen is not None and calls is not None:
        raise ValueError("a stage has no price: ask for one of them")
    spark = classic.sparkSession
    check_once(spark, lambda query, claimed: adapt(query, joins=claimed))
    registry = registry_of(spark.sparkContext)
    plan = catalyst.optimized_plan(classic)
    running = _blocks_in(plan, registry)
    adapting = _adaptings.get(df)
    claimable: tuple[Block, ...] = ()
    if adapting is None:
        streaming = classic.isStreaming
        cascades = CascadesInQuery(spark, None)
        rewriting = rewritten(
            spark,
            plan,
            _DEFAULTS,
            task_memory(spark, None),
            registry.next_run(),
            streaming=streaming,
            fixes_the_clock=streaming and catalyst.reads_the_clock(classic),
            cascades=cascades,
        )
        found = tuple(cascades.calibrations)
        adapting = Adapting(rewriting, catalyst.dropped_filters(plan), (), found, plan)
        made = _blocks_in(rewriting.plan, registry) if rewriting.changed else ()
        joins = (block for block, _ in made if isinstance(block, JoinBlock))
        there = {block.identity for block, _ in running}
        candidates: tuple[Block, ...] = (*joins, *rewriting.blocks)
        claimable = tuple(block for block in candidates if block.identity not in there)
        if calls is not None and rewriting.changed:
            plan = catalyst.optimized_plan(catalyst.dataframe_like(classic, rewriting.plan))
    blocks = tuple(block for block, _ in running)
    if chosen is not None:
        return told(chosen, adapting.rewriting, (*blocks, *claimable))
    return Explanation(
        tuple(map(explained, blocks)),
        tuple(map(explained, claimable)),
        adapting.rewriting.left,
        adapting.dropped,
        None if calls is None else _forecast(spark, plan, adapting.given, registry, calls),
        adapting.cascades,
        tuple(map(str, lookup_tables_of(spark.sparkContext).choices_in(adapting.rewriting.plan))),
    )


def calls_for_price(price: bool | int) -> int | None:  # noqa: FBT001 - as it is given
    """Return how many calls a forecast may make; None where none is wanted. TypeError, ValueError.

    >>> calls_for_price(False), calls_for_price(True), calls_for_price(0)
    (None, 200, 0)
    """
    if isinstance(price, bool):
        return CALLS if price else None
    return whole_number(price, "price", 0)


def _forecast(
    spark: SparkSession,
    plan: catalyst.Plan,
    given: catalyst.Plan | None,
    registry: Registry,
    calls: int,
) -> Forecast:
    def made(command: bytes) -> Block | None:
        known = registry.made(command)
        return None if known is None else known[0]

    # Only users of concurrent functions have what this needs.
    from eddyline.planner.forecast.forecasting import Foreseen, forecast_of  # noqa: PLC0415

    zone = session_settings(spark).time_zone
    query = Foreseen(spark, plan, given, made, table_of_session(spark), zone)
    return forecast_of(query, lookup_tables_of(spark.sparkContext), registry.next_run(), calls)


def adapted_blocks(df: DataFrame) -> tuple[tuple[Block, RoutingOptions], ...]:
    """Return the distinct blocks that run in a DataFrame, however it was derived."""
    classic = classic_frame(df)
    registry = registry_of(classic.sparkSession.sparkContext)
    return _blocks_in(catalyst.optimized_plan(classic), registry)


def _blocks_in(plan: catalyst.Plan, registry: Registry) -> tuple[tuple[Block, RoutingOptions], ...]:
    known = (registry.made(command) for command in fused_commands(plan))
    return tuple(dict.fromkeys(block for block in known if block is not None))


def is_derived(df: DataFrame) -> bool:
    """Whether a DataFrame was made from an adapted one, by steps that Spark did not know."""
    if df in _adaptings:
        return False
    return next(fused_commands(catalyst.analyzed_plan(classic_frame(df))), None) is not None


def left_in(df: DataFrame) -> tuple[LeftToSpark, ...]:
    """Return what ``adapt`` left to Spark when it made this very DataFrame; else nothing."""
    adapting = _adaptings.get(df)
    return () if adapting is None else adapting.rewriting.left


def cascades_in(df: DataFrame) -> tuple[Calibration, ...]:
    """Return the cascades of which ``adapt`` set thresholds when it made this very DataFrame."""
    adapting = _adaptings.get(df)
    return () if adapting is None else adapting.cascades


def calls_concurrent_functions(df: ClassicDataFrame) -> bool:
    """Whether a query calls a concurrent function anywhere."""
    return (
        any_declared()
        and next(marks_in(catalyst.optimized_plan(df, as_written=True)), None) is not None
    )


def table_of_session(spark: SparkSession) -> TableOf | None:
    """Return what tells the lookup tables of a session; None where there are none."""
    tables = lookup_tables_of(spark.sparkContext)

    fresh: set[bytes] = set()

    def table_of(plan: catalyst.Plan) -> LookupTable | None:
        command = lookup_command(plan)
        if command is None:
            return None
        if command not in fresh:
            fresh.add(command)
            tables.refresh(command)
        return tables.of(command)

    return table_of if tables.any else None
