"""The whole way of a plan, from what Spark has optimized to what runs in eddies, on one page.

First lookup tables that can be scanned are scanned, or looked up until that costs more
(``with_scans``). Then, form by form until one binds all lookups (``forms``), the plan goes through
:data:`PASSES` in their order. A pass takes a plan and returns one with the same rows and output,
the very same where it has nothing to do; what it finds out goes into the :class:`Passage`, for
passes after it and for its readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from eddyline import catalyst
from eddyline.blocks.decline import DeclineReason, LeftToSpark, worded_beside
from eddyline.blocks.filter_block import FilterBlock, SessionSettings
from eddyline.catalyst import Plan
from eddyline.errors import UnboundLookupError
from eddyline.planner.declare.concurrent_functions import any_declared, refuse_in_streams
from eddyline.planner.declare.declared_cascades import CASCADES
from eddyline.planner.read.concurrent_marks import marks_in
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.read.needed_results import NeededResults
from eddyline.planner.read.twins import NO_TWINS, Twins, twins_of
from eddyline.planner.rewrite.after_limits import with_functions_after_limits
from eddyline.planner.rewrite.asked_attributes import asked_of_twins
from eddyline.planner.rewrite.block_walk import BlockWalk, JoinRules, Judged, TableOf
from eddyline.planner.rewrite.concurrent_apart import with_concurrent_calls_apart
from eddyline.planner.rewrite.filter_rewrite import Fuse
from eddyline.planner.rewrite.handed_down import what_keeps_keys_away
from eddyline.planner.rewrite.looked_up_or_scanned import AccessRules, with_chosen_access
from eddyline.planner.rewrite.own_block import Remember
from eddyline.planner.rewrite.remembered_functions import with_memories
from eddyline.planner.rewrite.scanned_tables import with_scans
from eddyline.planner.rewrite.semijoins import forms


@dataclass(frozen=True, slots=True)
class Making:
    """What plans are rewritten with: the session's settings, and who makes functions of blocks.

    Without ``joins`` these are left to Spark, and without ``remember`` all functions that no block
    takes in; unless all remember, those of them that all rows need. For a stream
    ``fixes_the_clock`` says that it reads the time of each micro-batch. With an ``untested``
    PySpark that gets filters wrong, only what Spark cannot run by itself is adapted. ``decided``
    puts what decides cascades in their place. Without ``accesses`` tables that can be scanned are.
    """

    settings: SessionSettings
    fuse: Fuse
    joins: JoinRules | None = None
    remember: Remember | None = None
    all_remember: bool = True
    table_of: TableOf | None = None
    streaming: bool = False
    fixes_the_clock: bool = False
    untested: bool = False
    decided: Callable[[Plan], Plan] | None = None
    accesses: AccessRules | None = None


@dataclass
class Passage:
    """What is found out about one plan on its way through the passes.

    ``blocks`` are those that it has in the end, ``left`` the predicates and functions that stay
    where Spark put them, ``judged`` the regions and chains that were read, with their claims,
    ``remembering`` the blocks of functions that remember beside these.
    """

    making: Making
    limited: bool
    blocks: list[FilterBlock] = field(default_factory=list)
    left: list[LeftToSpark] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    remembering: list[FilterBlock] = field(default_factory=list)
    claimed: Claimed | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the walk that claims blocks knows of the plan that it was given."""

    plan: Plan
    twins: Twins
    needs: NeededResults
    walk: BlockWalk


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A plan in which every claimable block runs as one function.

    ``plan`` is the one that was given if there is no such block. ``left`` are
    the predicates over Python functions that stay where Spark put them. ``judged`` is what was
    read and claimed on the way, ``remembering`` are those of the blocks that no claim has made (see
    :mod:`eddyline.planner.stages`). Where it ``lasts``, the same becomes of an equal plan.
    """

    plan: Plan
    blocks: tuple[FilterBlock, ...]
    left: tuple[LeftToSpark, ...]
    judged: tuple[Judged, ...] = ()
    remembering: tuple[FilterBlock, ...] = ()
    changed: bool = False
    lasts: bool = False


Pass: TypeAlias = Callable[[Plan, Passage], Plan]


def concurrent_calls_apart(plan: Plan, _: Passage) -> Plan:
    """Take calls of concurrent functions out of the functions that Spark runs in one go."""
    return with_concurrent_calls_apart(plan) if any_declared() else plan


def cascades_decided(plan: Plan, passage: Passage) -> Plan:
    """Put the verdict of the proxy, and the oracle for the rest, in the place of each cascade."""
    decided = passage.making.decided
    return plan if decided is None or not CASCADES.any else decided(plan)


def functions_after_limits(plan: Plan, passage: Passage) -> Plan:
    """Call functions above the sort and the limit that keep some of their rows."""
    return with_functions_after_limits(plan) if passage.limited else plan


def blocks_in_eddies(plan: Plan, passage: Passage) -> Plan:
    """Read regions and chains, claim what pays, and put each block back as one function."""
    making = passage.making
    twins = twins_of(plan) if catalyst.has_join(plan) else NO_TWINS
    needs = NeededResults(plan, twins.sides)
    joins = making.joins
    may = joins is not None and joins.table_of is not None
    looks_up = may and any(True for _ in lookup_leaves(plan))
    shares = making.remember is not None and making.all_remember
    walk = BlockWalk(
        twins, making.settings, making.fuse, making.joins, needs.of, looks_up, shares=shares
    )
    passage.claimed = Claimed(plan, twins, needs, walk)
    rewritten = walk.rewrite(plan)
    passage.blocks += walk.blocks
    passage.left += walk.left
    passage.judged += walk.judged
    return rewritten


def memories_for_the_rest(plan: Plan, passage: Passage) -> Plan:
    """Give a memory to functions that no block has taken in."""
    making, claimed = passage.making, passage.claimed
    if making.remember is None or claimed is None:
        return plan
    walk = claimed.walk
    memories = with_memories(
        plan,
        making.settings,
        making.fuse,
        making.remember,
        claimed.needs,
        walk.values,
        walk.spared,
        asked_of_twins(claimed.plan, claimed.twins),
        walk.above_joins,
        all_remember=making.all_remember,
    )
    passage.blocks += memories.blocks
    passage.remembering += memories.blocks
    remembering = {each.commands for block in memories.blocks for each in block.functions}
    passage.left = [
        *(worded_beside(predicate, remembering) for predicate in passage.left),
        *memories.left,
    ]
    return memories.plan


PASSES: Final[tuple[Pass, ...]] = (
    concurrent_calls_apart,
    cascades_decided,
    functions_after_limits,
    blocks_in_eddies,
    functions_after_limits,  # once more, for those that the blocks leave
    memories_for_the_rest,
)


def through_passes(plan: Plan, making: Making, passes: Sequence[Pass] = PASSES) -> Rewriting:
    """Return what becomes of a plan on its way through the passes."""
    passage = Passage(making, catalyst.has_limit(plan))
    given = plan
    for step in passes:
        plan = step(plan, passage)
    return Rewriting(
        plan,
        tuple(dict.fromkeys(passage.blocks)),
        tuple(dict.fromkeys(passage.left)),
        tuple(passage.judged),
        tuple(dict.fromkeys(passage.remembering)),
        changed=plan is not given,
    )


def rewritten_plan(given: Plan, making: Making) -> Rewriting:
    """Return what becomes of an optimized plan, in the first form that binds all lookups.

    UnboundLookupError where there is none, FunctionPlaceError for a concurrent function in a
    stream.
    """
    plan = with_scans(given, making.table_of, _choosing(making))
    lasts = plan is given and not making.streaming
    if making.streaming and any_declared():
        refuse_in_streams(plan)
    refused: UnboundLookupError | None = None
    for form in (plan,) if making.table_of is None else forms(plan):
        try:
            rewriting = _not_adapted(form, making) or through_passes(form, making)
            _require_no_lookup_left(rewriting, making.table_of)
        except UnboundLookupError as error:
            refused = refused or error
        else:
            changed = rewriting.changed or form is not given
            return replace(rewriting, changed=changed, lasts=lasts)
    if refused is None:
        raise AssertionError("a plan has a form at least")
    if why := what_keeps_keys_away(plan):
        raise UnboundLookupError(f"{refused} {why}") from refused
    raise refused


def _choosing(making: Making) -> Callable[[Plan], Plan] | None:
    """Return what has tables looked up or scanned, as it turns out; None where none is.

    A stream has no end of keys.
    """
    rules, table_of = making.accesses, making.table_of
    if rules is None or table_of is None or making.streaming:
        return None
    return lambda plan: with_chosen_access(plan, rules, table_of)


def _not_adapted(plan: Plan, making: Making) -> Rewriting | None:
    """Return a plan as it is where nothing of it may be adapted, and why; else None."""
    if making.fixes_the_clock:
        reason = DeclineReason.READS_THE_CLOCK
    elif making.untested and not _needs_eddyline(plan, making.table_of):
        reason = DeclineReason.UNTESTED
    elif making.settings.profiled and not _needs_eddyline(plan, making.table_of):
        reason = DeclineReason.PROFILED
    else:
        return None
    left = (LeftToSpark("the whole query", reason, ""),)
    return Rewriting(plan, (), left if catalyst.has_python_function(plan) else ())


def _needs_eddyline(plan: Plan, table_of: TableOf | None) -> bool:
    """Whether Spark could not run a plan by itself: it looks something up, or has calls made."""
    if table_of is not None and next(lookup_leaves(plan), None) is not None:
        return True
    return any_declared() and next(marks_in(plan), None) is not None


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
