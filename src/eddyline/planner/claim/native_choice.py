"""Who joins: Spark, around a filter block over what is reduced, or the eddy; by cost.

Where all functions look at one input, and the others can reduce it natively, no order of joins is
left to find for it: the joins above see what has passed only. Nor is there where one predicate
alone is asked about the rows of one join. The eddy is for what cannot be known beforehand:
functions over several inputs, and joins that may drop rows or make more of them, where no condition
tells. Functions whose values only the result wants are reason enough for reducing what they look
at, and none for an eddy; those that are called above all joins stay there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.filter_block import CALLED_ONCE
from eddyline.catalyst import CatalystExpression
from eddyline.expressions import (
    And,
    Call,
    Case,
    Coalesce,
    Comparison,
    ComparisonOperator,
    Expression,
    Or,
    call_of,
    calls_in,
)
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_edges import JoinEdges, join_edges
from eddyline.planner.claim.reduction import (
    Means,
    Reducer,
    Reduction,
    Reductions,
    Rule,
    Source,
    sources_of,
)
from eddyline.planner.read.chains import EvaluationLink, Tree
from eddyline.planner.read.regions import Region

_SEVERAL: Final = "the eddy joins, as functions look at several inputs"

_IN_ORDER: Final = "one predicate alone is asked about the rows of one join, which has a key"

_UNASKED: Final = "no condition says that rows are dropped for which only values are wanted"


WORTH_WAITING: Final = 32 << 20
"""Bytes of an input's rows from which on it waits for the rows that it is joined with.

To wait takes two stages more: the rows that are left, and one of these for the large input.
"""


class Joiner(StrEnum):
    """Who joins the inputs of a region."""

    SPARK_AROUND_BLOCK = "Spark joins, and the block is asked about what is reduced"
    SPARK = "Spark joins as it would"
    EDDY = "the eddy joins"


@dataclass(frozen=True)
class NativeJoins:
    """How Spark joins around a filter block over the root of a reduction.

    ``results`` are those attributes that the block is to provide, with its calls. ``broadcast`` are
    inputs to be broadcast beside those that reduce and are joined as they are. Those that are
    ``waiting`` are read when the rows of the root that are left have been measured.
    """

    reduction: Reduction
    sources: Sequence[Source] = field(repr=False)
    edges: JoinEdges = field(repr=False)
    described: tuple[str, ...]
    results: tuple[tuple[CatalystExpression, Call], ...] = ()
    broadcast: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Choice:
    """Who joins, why, and how where it is Spark."""

    joiner: Joiner
    why: str
    natively: NativeJoins | None = None


def choose_joiner(spark: SparkSession, region: Region, claim: JoinClaim) -> Choice:
    """Choose by what the inputs say about themselves: conditions, rows, sizes."""
    results = _below_joins(region, claim)
    root = _asked_about(claim, results)
    if root is None and claim.calls:
        alone = nothing_to_reorder(region, claim)
        return Choice(Joiner.SPARK, _IN_ORDER) if alone else Choice(Joiner.EDDY, _SEVERAL)
    if root is None:
        return Choice(Joiner.SPARK, _UNASKED)
    sources = sources_of(claim, region.inputs)
    edges = join_edges(region)
    reduction = Reductions(spark, edges, sources, joined_above=True).of(root)
    unknown = [omitted for omitted in reduction.left_out if omitted.rule is Rule.NOTHING_SAID]
    names = names_of(sources)
    if not claim.calls and not reduction.selective:
        return Choice(Joiner.SPARK, _UNASKED)
    if unknown and not reduction.selective:
        name = names[unknown[0].number]
        why = (
            f"the eddy joins, as no condition says whether the join with {name} drops rows or "
            f"makes more of them"
        )
        return Choice(Joiner.EDDY, why)
    if not reduction.reducers:
        terms = [predicate for predicate in claim.predicates if calls_in(predicate)]
        why = "no other input can reduce what the functions are asked about"
        if len(terms) <= 1:
            return Choice(Joiner.SPARK, why)
    rest = "rows for which a function fails carry the error above the joins"
    described = (
        f"Spark joins around it, as functions look at {names[root]} only"
        + ("" if reduction.exact else f"; {rest}"),
        *describe(reduction, names),
    )
    small = _root_to_broadcast(spark, reduction, sources, region)
    waiting = frozenset() if small else _read_when_measured(spark, reduction, sources)
    described += tuple(
        f"{names[number]} is read when the rows left of {names[root]} have been measured: few are "
        f"broadcast to it, many are shuffled with it"
        for number in sorted(waiting)
    )
    natively = NativeJoins(reduction, sources, edges, described, results, small, waiting)
    return Choice(Joiner.SPARK_AROUND_BLOCK, "the functions look at one input", natively)


def nothing_to_reorder(region: Region, claim: JoinClaim) -> bool:
    """Whether one predicate alone is asked, about pairs of two inputs that a key joins.

    Its functions look at both inputs: one that looks at a single input Spark calls below the join,
    for all of its rows, and so it does with values that are computed there. In an OR or a CASE
    there would be an order, of its parts. An iterator function remembers only in a block.
    """
    asking = [predicate for predicate in claim.predicates if calls_in(predicate)]
    if len(region.inputs) != 2 or len(asking) != 1 or claim.looked_up:  # noqa: PLR2004 - a pair
        return False
    if any(isinstance(node, And | Or | Case | Coalesce) for node in asking[0].walk()):
        return False
    kinds = {claim.functions[call.function].kind for call in claim.calls}
    return (
        all(len(inputs) > 1 for inputs in claim.inputs_asked_about())
        and kinds <= CALLED_ONCE
        and not any(call not in claim.calls for _, call in _below_joins(region, claim))
        and any(_is_key(predicate, claim) for predicate in claim.predicates)
    )


def _is_key(predicate: Expression, claim: JoinClaim) -> bool:
    """Whether a predicate is an equality of two inputs that no function makes."""
    if not isinstance(predicate, Comparison) or predicate.operator is not ComparisonOperator.EQUAL:
        return False
    sides = [claim.looked_at(predicate.left), claim.looked_at(predicate.right)]
    return (
        not calls_in(predicate) and all(len(side) == 1 for side in sides) and sides[0] != sides[1]
    )


def _below_joins(region: Region, claim: JoinClaim) -> tuple[tuple[CatalystExpression, Call], ...]:
    """Return the results that a block can provide: of its predicates, or called below all joins."""
    asked = frozenset(claim.calls)
    below = {
        result.identity
        for link in region.links
        if isinstance(link, EvaluationLink) and not catalyst.has_join(link.plan)
        for result in link.results
    }
    return tuple(
        (attribute, call)
        for attribute, call in claim.results
        if isinstance(call, Call)  # one for some rows only is made above the joins
        and (call in asked or Tree.of(attribute).identity in below)
    )


def _asked_about(
    claim: JoinClaim, results: Sequence[tuple[CatalystExpression, Call]]
) -> int | None:
    """Return the only input that functions look at; None where there is no such input."""
    if claim.looked_up or claim.above or claim.constants:
        return None
    # A function of another's result needs that where it is called, wherever that is.
    called = [call_of(value) for _, value in claim.results]
    if any(calls_in(argument) for call in called for argument in call.arguments):
        return None
    asking = [predicate for predicate in claim.predicates if calls_in(predicate)]
    each_looks_at = map(claim.looked_at, (*asking, *(call for _, call in results)))
    asked = frozenset[int]().union(*each_looks_at)
    return next(iter(asked)) if len(asked) == 1 else None


def _root_to_broadcast(
    spark: SparkSession, reduction: Reduction, sources: Sequence[Source], region: Region
) -> frozenset[int]:
    """Return the root if it is to be broadcast to inputs that are larger than Spark thinks.

    What is left of it is at most what its rows take once read. Spark's sizes are those of files: it
    would broadcast five million rows that compress to kilobytes. Only where plans are adaptive:
    else Spark gives up a broadcast after ``spark.sql.broadcastTimeout``, and functions may take
    longer.
    """
    if str(spark.conf.get("spark.sql.adaptive.enabled")) != "true":
        return frozenset()
    most = catalyst.bytes_of(str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold")))
    root = sources[reduction.root]
    others = (sources[omitted.number] for omitted in reduction.left_out)
    large = any(source.moved > max(most, root.moved) for source in others)
    if reduction.selective and large and root.moved <= most and len(region.inputs) > 1:
        return frozenset({reduction.root})
    return frozenset()


def _read_when_measured(
    spark: SparkSession, reduction: Reduction, sources: Sequence[Source]
) -> frozenset[int]:
    """Return the inputs that Spark would shuffle, and which might not have to be.

    Their plans wait for those of the rows that functions and reductions leave (see
    :mod:`eddyline.planner.rewrite.measured_rows`), which Spark shuffles for them in any case.
    """
    settings = ("spark.sql.adaptive.enabled", "spark.sql.exchange.reuse")
    if not reduction.selective or any(str(spark.conf.get(name)) != "true" for name in settings):
        return frozenset()
    most = catalyst.bytes_of(str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold")))
    if most <= 0:
        return frozenset()
    joined = {reducer.number for reducer in reduction.all() if reducer.means is Means.JOINED}
    return frozenset(
        number
        for number, source in enumerate(sources)
        if number != reduction.root
        and number not in joined
        and most < source.size
        and max(WORTH_WAITING, most) < source.moved
    )


def names_of(sources: Sequence[Source]) -> list[str]:
    """Return what people call the inputs of a region."""
    return [source.name or f"input {number + 1}" for number, source in enumerate(sources)]


def describe(reduction: Reduction, names: Sequence[str]) -> list[str]:
    """Return in words what reduces an input and what does not."""
    root = names[reduction.root]
    lines = [f"{root} is reduced by {_by(reducer, names)}" for reducer in reduction.reducers]
    lines += [
        f"{names[omitted.number]} does not reduce {root}: {omitted.rule.value}"
        for omitted in reduction.left_out
    ]
    return lines


def _by(reducer: Reducer, names: Sequence[str]) -> str:
    text = f"{names[reducer.number]} {reducer.means.value}"
    if reducer.by:
        text += " (itself reduced by " + ", ".join(_by(below, names) for below in reducer.by) + ")"
    return text
