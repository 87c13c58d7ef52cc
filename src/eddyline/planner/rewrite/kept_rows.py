"""Rebuilds a join that keeps the rows of one side, whatever they match on the other.

The rows that are kept stay in the JVM. A function finds the matches of each, in an eddy over the
join block, as an array; an outer join has a row for each of them, or one with NULLs where there
is none, a semijoin keeps the rows that have any, an antijoin those that have none, and where
EXISTS is part of a larger condition each row is told whether it has any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline import catalyst
from eddyline.blocks.join_block import Counted
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.errors import UnboundLookupError
from eddyline.planner.claim.join_choice import possible_drivers
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_inputs import inputs_of
from eddyline.planner.claim.session_settings import session_settings
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.regions import KeptSide
from eddyline.planner.rewrite.join_rewrite import (
    MATCHES,
    JoinBlockContext,
    constant_inputs,
    join_block,
    with_matches,
    with_small_inputs,
)
from eddyline.planner.rewrite.steps import as_nullable_as
from eddyline.tasks.matches import LeftBehind, left_behind

KEPT: int = 0
"""The number of the input whose rows are kept."""

_COUNTED: Final = {
    KeptSide.ALL: Counted.MATCHES_OR_ROW,
    KeptSide.MATCHED: Counted.MATCHED,
    KeptSide.UNMATCHED: Counted.UNMATCHED,
    KeptSide.MARKED: Counted.ROWS,
}


def rebuilt_keeping(
    context: JoinBlockContext, join: Plan, kept: KeptSide, claim: JoinClaim, plans: Sequence[Plan]
) -> Plan:
    """Return a join over its inputs, the first of which is the side that is kept."""
    wide, plan = _with_small_inputs(context, claim, plans, kept)
    own = catalyst.outputs(plans[KEPT])
    names = [f"l{number}" for number in range(len(own))]
    columns = catalyst.outputs(plan)
    travelling = [columns[len(own) + column] for column in wide.columns]
    kept_columns = columns[: len(own)]
    matched = with_matches(
        context, wide.block, KEPT, plan, travelling, kept_columns, _environments(context, claim)
    )
    rows = catalyst.dataframe_over(context.spark, matched)
    if kept is KeptSide.MARKED:
        marked = rows.select(*names, (F.size(MATCHES) > 0).alias("exists"))
        return _as([*own, catalyst.existence(join)], marked)
    if kept is not KeptSide.ALL:
        wanted = F.size(MATCHES) > 0 if kept is KeptSide.MATCHED else F.size(MATCHES) == 0
        return _as(own, rows.where(wanted).select(*names))
    return _outer(join, claim, own, rows.select(*names, F.inline_outer(MATCHES)))


def _with_small_inputs(
    context: JoinBlockContext, claim: JoinClaim, plans: Sequence[Plan], kept: KeptSide
) -> tuple[LeftBehind, Plan]:
    """Return the block, and the rows that are kept with what it needs of them and of the others."""
    spark = context.spark
    inputs, places = inputs_of(claim, plans)
    inputs += constant_inputs(spark, claim)
    block = join_block(claim, plans, inputs, places, session_settings(spark))
    names = [relation.name for relation in block.query.relations]
    if KEPT not in possible_drivers(spark, block.sizes, block.scanned):
        raise UnboundLookupError(
            f"{' and '.join(block.query.relations[r].name for r in claim.looked_up)} cannot be "
            f"asked for the rows of {names[KEPT]} in a {kept.value} join with tables that are "
            f"scanned: these are larger than spark.sql.autoBroadcastJoinThreshold"
        )
    block = replace(
        block,
        server=context.server(),
        layout=f"no shuffle: {kept.value} join, the rows of {names[KEPT]} stay in place",
        counted=_COUNTED[kept],
    )
    wide = left_behind(block, KEPT, worth=0, marked=any(map(_is_computed, claim.items)))
    if wide is None:
        raise AssertionError("what binds no lookup was refused before")
    own = [
        catalyst.named(attribute, f"l{number}")
        for number, attribute in enumerate(catalyst.outputs(plans[KEPT]))
    ]
    given = [catalyst.named(handle, f"c{n}") for n, handle in enumerate(inputs[KEPT].handles)]
    plan = catalyst.projected([*own, *given], plans[KEPT])
    environments = _environments(context, claim)
    return wide, with_small_inputs(context, wide.block, inputs, KEPT, plan, environments)


def _environments(
    context: JoinBlockContext, claim: JoinClaim
) -> Sequence[catalyst.PickledFunction]:
    return claim.environments or (catalyst.plain_environment(context.spark.sparkContext),)


def _as(attributes: Sequence[CatalystExpression], rows: DataFrame) -> Plan:
    plan = catalyst.analyzed_plan(rows)
    items = [
        catalyst.attribute_like(attribute, as_nullable_as(attribute, column))
        for attribute, column in zip(attributes, catalyst.outputs(plan), strict=True)
    ]
    return catalyst.projected(items, plan)


def _outer(
    join: Plan, claim: JoinClaim, own: Sequence[CatalystExpression], rows: DataFrame
) -> Plan:
    """Return the output of an outer join, in its order, over a row for each match."""
    plan = catalyst.analyzed_plan(rows)
    columns = catalyst.outputs(plan)
    attributes = [*own, *(attribute for attribute, _ in claim.outputs)]
    values = [
        catalyst.attribute_like(attribute, column)
        for attribute, column in zip(attributes, columns, strict=False)
    ]
    present = columns[-1]
    plan = catalyst.projected([*values, catalyst.named(present, "present")], plan)
    present = catalyst.outputs(plan)[-1]
    # What is computed of a match is NULL where there is none, whatever it makes of NULLs.
    items = {catalyst.identity_number(attribute): attribute for attribute in own}
    for item in claim.items:
        value = catalyst.value_beside(present, item) if _is_computed(item) else item
        items[catalyst.identity_number(item)] = value
    order = map(catalyst.identity_number, catalyst.outputs(join))
    return catalyst.projected([items[number] for number in order], plan)


def _is_computed(item: CatalystExpression) -> bool:
    return Tree.of(item).name == "Alias"
