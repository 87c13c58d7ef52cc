"""The inputs of a join block: what they are called, and each projected to the columns it brings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.expressions import (
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    with_arguments,
)
from eddyline.planner.claim.join_claim import JoinClaim


@dataclass(frozen=True)
class Input:
    """One input as it enters the block: its plan, and for each argument its column there.

    Where rows are looked up, the plan stands for the table only, and ``columns`` says which of
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
    """Return an input whose rows are looked up, with the columns that tell them apart."""
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


def told_apart(names: Sequence[str], inputs: Sequence[Input]) -> list[str]:
    """Return a name for each input: its table's or file's, its alias, or its number.

    ``names`` are those of tables and files, empty where there is none. Where several inputs are of
    one table, each has its alias; where that does not tell them apart either, a number follows.
    """
    counted = Counter(names)
    labels = []
    for number, (name, source) in enumerate(zip(names, inputs, strict=True), start=1):
        if not name or counted[name] > 1:
            name = _alias(source) or name  # noqa: PLW2901 - the same input
        labels.append(name or f"input {number}")
    taken: Counter[str] = Counter()
    for place, name in enumerate(labels):
        taken[name] += 1
        if taken[name] > 1:
            labels[place] = f"{name} ({taken[name]})"
    return labels


def _alias(each: Input) -> str:
    """Return the alias under which the query knows an input; empty where it has none."""
    return catalyst.qualifier(each.handles[0]).rpartition(".")[2] if each.handles else ""


def qualified(
    predicate: Expression, text: str, inputs: Sequence[str], columns: Sequence[Sequence[str]]
) -> str:
    """Return a predicate's text that names the inputs of its columns.

    Both sides of a key have that, and columns that several inputs have by one name;
    ``columns`` are the names of each input's. Arguments count through all inputs.
    """
    places = [(name, column) for name, own in zip(inputs, columns, strict=True) for column in own]
    owners: dict[str, set[str]] = {}
    for name, column in places:
        owners.setdefault(column, set()).add(name)
    match predicate:
        case Comparison(ComparisonOperator.EQUAL, Argument(index=left), Argument(index=right)):
            return " = ".join(".".join(places[index]) for index in (left, right))
    meant: dict[str, list[str]] = {}
    for name, column in (places[index] for index in _arguments(predicate)):
        if len(owners[column]) > 1 and column.isidentifier():
            meant.setdefault(column, []).append(f"{name}.{column}")
    for column, full in meant.items():
        pieces = re.split(rf"(?<![\w.]){column}(?![\w(])", text)
        if len(set(full)) == 1:
            text = full[0].join(pieces)
        elif len(pieces) == len(full) + 1:  # else nobody knows which is which
            text = pieces[0] + "".join(map(str.__add__, full, pieces[1:]))
    return text


def _arguments(predicate: Expression) -> Iterator[int]:
    """Yield the arguments of an expression by number, as its text has them."""
    for node in predicate.walk():
        if isinstance(node, Argument):
            yield node.index
