"""The public face: give a DataFrame, get one with the same rows that adapts while it runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Final, cast
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from eddyline import catalyst
from eddyline.asking.driver_channel import Address
from eddyline.blocks.decline import DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.lookup_table import LookupTable
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.policies.catalogue import policy_name
from eddyline.errors import UnboundLookupError
from eddyline.host.classic import classic as classic_frame
from eddyline.planner.block_registry import Block, Fused, registry_of
from eddyline.planner.claim.join_choice import pays
from eddyline.planner.claim.native_choice import choose_joiner
from eddyline.planner.claim.session_settings import session_settings, task_memory
from eddyline.planner.declare.concurrent_functions import (
    any_declared,
    refuse_in_streams,
    require_all_placed,
    served,
)
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.explanation import Explanation, explained
from eddyline.planner.read.chains import fused_commands
from eddyline.planner.read.concurrent_marks import marks_in
from eddyline.planner.read.lookup_leaves import lookup_command, lookup_leaves
from eddyline.planner.rewrite.filter_rewrite import Fuse, FusedFunction
from eddyline.planner.rewrite.handed_down import what_keeps_keys_away
from eddyline.planner.rewrite.join_rewrite import JoinBlockContext, rebuilt
from eddyline.planner.rewrite.kept_rows import rebuilt_keeping
from eddyline.planner.rewrite.native_joins import joined_natively
from eddyline.planner.rewrite.reduced_inputs import reduced_inputs
from eddyline.planner.rewrite.remembered_functions import Remember
from eddyline.planner.rewrite.rewrite_plan import JoinRules, Joins, Rewriting, TableOf, rewrite_plan
from eddyline.planner.rewrite.scanned_tables import with_scans
from eddyline.planner.rewrite.semijoins import forms
from eddyline.planner.session_rules import tell_limits
from eddyline.tasks.filter_task import result_type

# What was left in the DataFrames that adapt returned: their own plans tell less
# well, since results of claimed functions have lost their names there.
_left: WeakKeyDictionary[DataFrame, tuple[LeftToSpark, ...]] = WeakKeyDictionary()
_dropped: WeakKeyDictionary[DataFrame, tuple[str, ...]] = WeakKeyDictionary()
_fused: WeakKeyDictionary[DataFrame, tuple[Fused, ...]] = WeakKeyDictionary()

_log: Final = logging.getLogger("eddyline")


def adapt(
    df: DataFrame,
    *,
    policy: str = "adaptive",
    pin_order: bool = False,
    seed: int = 0,
    joins: str = "auto",
    memory: int | str | None = None,
    worth: Mapping[str, float] | None = None,
    remember: bool = True,
) -> DataFrame:
    """Return a DataFrame with the same rows whose Python predicates run in eddies.

    Nothing runs now. Filters over Python functions become blocks, together with the
    inner joins among them; in a block each function is called only for rows that the
    predicates and joins before it have kept, and which comes first is decided, and
    decided anew, while the query runs. Everything else stays as Spark planned it.
    Columns keep their names and their identities, so ``df.column`` works on the result.

    ``policy`` names the routing policy. ``pin_order`` keeps the order as it is
    written: the DataFrame is returned as it is, and so it is where no block pays
    (:func:`explain` tells why). ``seed`` feeds the policy's random choices; no
    choice changes the rows. ``joins`` is "auto" for inner joins that are worth what they
    move, "always" for all of them, "never" for none; ``memory`` is what one task of a join
    may use before it spills to disk, in bytes or as ``"200MB"``: by default Spark's
    ``spark.executor.pyspark.memory`` divided by the tasks that run at once, else 512 MB
    (Raman, Deshpande and Hellerstein, 2003). ``worth`` says how many seconds a unit of money
    is worth, as ``{"USD": 600}``: by that much routing avoids calls of
    :func:`~eddyline.concurrent` functions that cost money; by default it heeds time alone.
    With ``remember`` a deterministic function is called once for each distinct tuple of
    arguments in a worker process, where that pays, and so functions run in eddies that stand
    alone in a filter or in a select list; :func:`~eddyline.forgetful` marks one that is not to be
    remembered (Hellerstein and Naughton, 1996). The
    plan is optimized now, so the tables' current versions and ``current_timestamp()`` are those
    of this moment.

    Raises :class:`ConnectNotSupportedError` on Spark Connect, ``TypeError`` for what is
    not a DataFrame and for arguments of another type, ``UnknownPolicyError`` for a policy
    that there is not, ``ValueError`` for a negative seed, for ``joins``, ``memory`` or
    ``worth`` that are none of these, ``FunctionPlaceError`` (a ``ValueError``) where a
    concurrent function stands where its calls cannot be made, as in a stream.
    """
    classic = classic_frame(df)
    catalyst.get_ready()
    chosen = chosen_options(policy, seed, joins, worth, remember)
    if not isinstance(pin_order, bool):
        raise TypeError(f"pin_order is True or False, not {pin_order!r}.")
    if pin_order and not calls_concurrent_functions(classic):
        return df
    if pin_order:  # somebody must make the calls
        chosen = replace(chosen, policy=policy_name("static"))
    plan = catalyst.optimized_plan(classic, as_written=True)
    dropped = catalyst.dropped_filters(plan)
    if dropped:
        _log.warning("%s %s", catalyst.LOST, ", ".join(dropped))
    registry = registry_of(classic.sparkSession.sparkContext)
    run = registry.next_run()
    rewriting = rewritten(
        classic.sparkSession,
        plan,
        chosen,
        task_memory(classic.sparkSession, memory),
        run,
        streaming=classic.isStreaming,
        fixes_the_clock=classic.isStreaming and catalyst.reads_the_clock(classic),
    )
    if not rewriting.changed and not dropped:
        return df
    if any_declared() or table_of_session(classic.sparkSession) is not None:
        tell_limits(classic.sparkSession)
    adapted = catalyst.dataframe_like(classic, rewriting.plan)
    _left[adapted] = rewriting.left
    _dropped[adapted] = dropped
    _fused[adapted] = registry.of_run(run)
    return adapted


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a user has chosen for :func:`adapt`, checked."""

    policy: str
    seed: int
    joins: Joins
    worth: tuple[tuple[str, float], ...]
    remember: bool


def chosen_options(
    policy: str,
    seed: int,
    joins: str,
    worth: Mapping[str, float] | None,
    remember: bool,  # noqa: FBT001 - as it is given
) -> Chosen:
    """Check what a user has chosen; raise as :func:`adapt` does."""
    checked_seed(seed)
    if not isinstance(remember, bool):
        raise TypeError(f"remember is True or False, not {remember!r}.")
    return Chosen(policy_name(policy), seed, joins_named(joins), worth_of_money(worth), remember)


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
) -> Rewriting:
    """Rewrite an optimized plan such that what pays runs in eddies.

    What its tasks report is told from what others do by the number of the ``run``. The plan is
    ``final`` where it is about to run, and nothing can be added to it.
    """
    registry = registry_of(spark.sparkContext)
    options = RoutingOptions(chosen.policy, chosen.seed, run, memory, chosen.worth, chosen.remember)
    workshop = JoinBlockContext(
        spark,
        options,
        registry.records,
        lambda block, command, make: registry.remember(command, block, options, make),
        lambda: lookup_tables_of(spark.sparkContext).address,
    )
    tables = lookup_tables_of(spark.sparkContext)
    rewriting = _rewrite(
        spark,
        plan,
        lambda block: registry.fuse(served(block, tables), options),
        _join_rules(spark, chosen.joins, workshop, final=final),
        lambda block: registry.remembered(block, options),
        all_remember=chosen.remember,
        streaming=streaming,
        fixes_the_clock=fixes_the_clock,
    )
    if any_declared():
        require_all_placed(rewriting.plan, rewriting.left)
    return rewriting


def _join_rules(
    spark: SparkSession, joins: Joins, workshop: JoinBlockContext, *, final: bool = False
) -> JoinRules:
    return JoinRules(
        joins,
        partial(rebuilt, workshop),
        partial(rebuilt_keeping, workshop),
        partial(pays, spark),
        partial(choose_joiner, spark),
        partial(joined_natively, spark),
        partial(reduced_inputs, spark),
        table_of_session(spark),
        final,
    )


def explain(df: DataFrame) -> Explanation:
    """Return what of a DataFrame runs in eddies, what does not, and why.

    Whoever has the value shows it: ``print``, a prompt, a notebook. Works on adapted DataFrames,
    on what was derived from them, and on any other, for which it tells what :func:`adapt` would
    do. Raises as :func:`adapt` does.
    """
    classic = classic_frame(df)
    joined: list[JoinBlock] = []
    workshop = JoinBlockContext(
        classic.sparkSession,
        RoutingOptions(),
        registry_of(classic.sparkSession.sparkContext).records,
        lambda block, *_: joined.append(block),
        lambda: Address("", 0, ""),
    )
    spark = classic.sparkSession
    plan = catalyst.optimized_plan(classic)
    rewriting = _rewrite(
        spark,
        plan,
        _only_described,
        _join_rules(spark, Joins.AUTO, workshop),
        lambda _: b"",
        streaming=classic.isStreaming,
        fixes_the_clock=classic.isStreaming and catalyst.reads_the_clock(classic),
    )
    return Explanation(
        tuple(explained(block) for block, _ in adapted_blocks(df)),
        (*map(explained, joined), *map(explained, rewriting.blocks)),
        _left.get(df, rewriting.left),
        _dropped.get(df, catalyst.dropped_filters(plan)),
    )


def adapted_blocks(df: DataFrame) -> tuple[tuple[Block, RoutingOptions], ...]:
    """Return the distinct blocks that run in a DataFrame, however it was derived."""
    classic = classic_frame(df)
    registry = registry_of(classic.sparkSession.sparkContext)
    commands = fused_commands(catalyst.optimized_plan(classic))
    found = (registry.made(command) for command in commands)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def is_derived(df: DataFrame) -> bool:
    """Whether a DataFrame was made from an adapted one, by what Spark did not know of then."""
    return df not in _left and bool(fused_commands(catalyst.analyzed_plan(classic_frame(df))))


def left_in(df: DataFrame) -> tuple[LeftToSpark, ...]:
    """Return what ``adapt`` left to Spark when it made this very DataFrame; else nothing."""
    return _left.get(df, ())


def checked_seed(seed: int) -> None:
    """Raise TypeError, ValueError for what is no seed."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"A seed is a whole number from 0 on, not {seed!r}.")
    if seed < 0:
        raise ValueError(f"A seed is a whole number from 0 on, not {seed}.")


def worth_of_money(worth: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    """Return what units of money are worth, in seconds; TypeError, ValueError for no numbers."""
    if worth is None:
        return ()
    if not isinstance(worth, Mapping):
        raise TypeError(f'worth is a mapping, as {{"USD": 600}}, not {worth!r}.')
    found = []
    for unit, given in cast("Mapping[str, object]", worth).items():
        if not isinstance(unit, str):
            raise TypeError(f'worth is a mapping, as {{"USD": 600}}, not {worth!r}.')
        if (
            isinstance(given, bool)
            or not isinstance(given, Real)
            or not 0 <= float(given) < math.inf
        ):
            raise ValueError(f"A {unit} is worth a number of seconds from 0 on, not {given!r}.")
        found.append((unit, float(given)))
    return tuple(found)


def joins_named(name: str) -> Joins:
    """Return the choice of joins of that name; ValueError where there is none."""
    try:
        return Joins(name)
    except ValueError:
        known = ", ".join(repr(str(choice)) for choice in Joins)
        raise ValueError(f"joins is one of {known}, not {name!r}") from None


def calls_concurrent_functions(df: ClassicDataFrame) -> bool:
    """Whether a query calls a concurrent function anywhere."""
    return (
        any_declared()
        and next(marks_in(catalyst.optimized_plan(df, as_written=True)), None) is not None
    )


def _rewrite(
    spark: SparkSession,
    found: catalyst.Plan,
    fuse: Fuse,
    rules: JoinRules | None,
    remember: Remember,
    *,
    streaming: bool,
    fixes_the_clock: bool,
    all_remember: bool = True,
) -> Rewriting:
    """Rewrite an optimized plan, in the first form of which all lookup tables are bound."""
    table_of = None if rules is None else rules.table_of
    plan = with_scans(found, table_of)
    if streaming and any_declared():
        refuse_in_streams(plan)
    if streaming:  # joins of streams keep state, which is Spark's
        rules = None
    settings = session_settings(spark)
    refused: UnboundLookupError | None = None
    for form in (plan,) if table_of is None else forms(plan):
        try:
            if fixes_the_clock:
                rewriting = _declined(form, DeclineReason.READS_THE_CLOCK, "")
            elif settings.profiled and not _needs_eddyline(form, table_of):
                rewriting = _declined(form, DeclineReason.PROFILED, "")
            else:
                rewriting = rewrite_plan(
                    form, settings, fuse, rules, remember, all_remember=all_remember
                )
            _require_no_lookup_left(rewriting, table_of)
        except UnboundLookupError as error:
            refused = refused or error
        else:
            return replace(rewriting, changed=rewriting.changed or form is not found)
    if refused is None:
        raise AssertionError("a plan has a form at least")
    if why := what_keeps_keys_away(plan):
        raise UnboundLookupError(f"{refused} {why}") from refused
    raise refused


def _needs_eddyline(plan: catalyst.Plan, table_of: TableOf | None) -> bool:
    """Whether Spark could not run a plan by itself: it looks something up, or has calls made."""
    if table_of is not None and next(lookup_leaves(plan), None) is not None:
        return True
    return any_declared() and next(marks_in(plan), None) is not None


def table_of_session(spark: SparkSession) -> TableOf | None:
    """Return what tells the lookup tables of a session; None where there are none."""
    tables = lookup_tables_of(spark.sparkContext)

    def table_of(plan: catalyst.Plan) -> LookupTable | None:
        command = lookup_command(plan)
        return None if command is None else tables.of(command)

    return table_of if tables.any else None


def _require_no_lookup_left(rewriting: Rewriting, table_of: TableOf | None) -> None:
    """Raise UnboundLookupError where a lookup table stands where no values reach it."""
    for leaf in () if table_of is None else lookup_leaves(rewriting.plan):
        table = None if table_of is None else table_of(leaf)
        name = "a lookup table" if table is None else table.name
        why = "; ".join(map(str, rewriting.left))
        raise UnboundLookupError(
            f"{name} is looked up only in joins and filters that give values for it, and not in "
            f"streams; here it stands where no values reach it{f': {why}' if why else ''}."
        )


def _only_described(block: FilterBlock) -> FusedFunction:
    """Stand for a block's function in a plan that never runs."""
    return FusedFunction(b"", result_type(block).json())


def _declined(plan: catalyst.Plan, reason: DeclineReason, detail: str) -> Rewriting:
    left = (LeftToSpark("the whole query", reason, detail),)
    return Rewriting(plan, (), left if catalyst.has_python_function(plan) else ())
