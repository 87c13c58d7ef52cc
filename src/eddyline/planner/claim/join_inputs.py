"""The inputs of a join block, each projected to the columns that it brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.expressions import Argument, Expression, with_arguments
from eddyline.planner.claim.join_claim import JoinClaim


@dataclass(frozen=True)
class Input:
    """One input as it enters the block: its plan, and for each argument its column there.

    Of one whose rows are looked up the plan stands for the table only; ``columns`` are which of
    the table's columns the handles are.
    """

    plan: Plan
    handles: tuple[CatalystExpression, ...]
    columns: tuple[int, ...] = ()


def inputs_of(claim: JoinClaim, plans: Sequence[Plan]) -> tuple[list[Input], dict[int, int]]:
    """Return the inputs, projected, and for each argument of the claim its column's number."""
    inputs = []
    places: dict[int, int] = {}
    offset = 0
    for number, plan in enumerate(plans):
        own = [c for c, column in enumerate(claim.columns) if column.input == number]
        if number in claim.looked_up:
            inputs.append(_looked_up(claim, number, own, plan))
            places.update({c: offset + n for n, c in enumerate(own)})
            offset += len(inputs[-1].handles)
            continue
        if claim.below[number]:
            plan = catalyst.filtered(catalyst.conjunction(claim.below[number]), plan)  # noqa: PLW2901 - the same input
        handles = tuple(claim.columns[c].handle for c in own)
        items = [catalyst.named(handle, f"c{n}") for n, handle in enumerate(handles)]
        # Without columns there would be no rows: a cross product needs to count them.
        items = items or [catalyst.named(catalyst.literal_true(), "c0")]
        inputs.append(Input(catalyst.projected(items, plan), handles))
        places.update({c: offset + n for n, c in enumerate(own)})
        offset += len(items)
    return inputs, places


def _looked_up(claim: JoinClaim, number: int, own: Sequence[int], plan: Plan) -> Input:
    """Return an input of which rows are looked up: with the columns that tell them apart."""
    table = claim.looked_up[number]
    attributes = catalyst.outputs(plan)
    position = {number: n for n, number in enumerate(catalyst.output_numbers(plan))}
    handles = [claim.columns[c].handle for c in own]
    columns = [position[catalyst.identity_number(handle)] for handle in handles]
    missing = [column for column in table.key if column not in columns]
    return Input(
        plan,
        (*handles, *(attributes[column] for column in missing)),
        (*columns, *missing),
    )


def in_relations(expression: Expression, places: Mapping[int, int]) -> Expression:
    """Return an expression with its columns numbered as a query numbers them."""
    return with_arguments(expression, lambda a: Argument(places[a.index], a.type))
